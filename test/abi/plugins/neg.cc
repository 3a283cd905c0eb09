// A plugin with the kernel of neg_kernel.h at cpu, through the SDK's thunk.
#include "test/abi/plugins/neg_kernel.h"

#include <mica/plugin.h>

namespace {

void Neg(const MicaCall*, MicaTensor* self, MicaTensor* out) { NegateFloats(self, out); }

void Init(const MicaHost*, const MicaRegistrar* r) {
  mica::plugin::Registrar registrar(r, "cpu");
  MICA_KERNEL(registrar, &Neg, "mica::neg.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)");
}

}  // namespace

MICA_PLUGIN("neg", "Mica tests", "1.0", "", "", "kernels:neg", Init)
