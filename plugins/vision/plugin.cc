// vision: the operators of torchvision's namespace on the CPU, opened when one is first asked for.
#include <operators.h>

#include <mica/plugin.h>

#include "plugins/vision/boxes.h"
#include "plugins/vision/pooling.h"

namespace {

// None: what torchvision takes -1 for.
void CudaVersion(const MicaCall*, const MicaValue*, int64_t, MicaValue* results, int64_t) {
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = -1;
}

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  torchvision::RegisterOperators(registrar);
  mica::plugin::Registrar cpu(registrar, "cpu");
  cpu.Boxed<&CudaVersion>("torchvision::_cuda_version");
  mica::vision::RegisterBoxes(cpu);
  mica::vision::RegisterPooling(cpu);
}

}  // namespace

MICA_PLUGIN("vision", "Mica", "0.1", "", "", "operators:torchvision", Init)
