// The plugin's entry: registers the generated kernels, the hand-written ones and
// the table that others see.
//
// A layer of this repository: C++ against libmica of the same build, so the
// registrar's context is the plugin's Scope.
#include <mica/plugin.h>

#include "keys/autograd/forward_kernel.h"
#include "keys/autograd/grad_frame.h"
#include "keys/autograd/hand_kernels.h"
#include "keys/autograd/table.h"
#include "mica/fingerprint.h"

namespace mica::autograd {

// In the generated shards, build/generated/mica/autograd_<i>.cc.
void RegisterShard0(Scope&);
void RegisterShard1(Scope&);
void RegisterShard2(Scope&);
void RegisterShard3(Scope&);

namespace {

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  auto& scope = *static_cast<Scope*>(registrar->context);
  RegisterHandKernels(scope);
  for (auto* shard : {&RegisterShard0, &RegisterShard1, &RegisterShard2, &RegisterShard3}) shard(scope);
  RegisterGradFrame(scope);
  forward::RegisterForwardMode(scope);
  forward::RegisterForwardRules(scope);
  plugin::Registrar(registrar, "").Extension(MICA_AUTOGRAD_EXTENSION, &kTable.table);
}

}  // namespace
}  // namespace mica::autograd

MICA_PLUGIN("autograd", "Mica", "0.1", "", MICA_CORE_BUILD,
            "layer:Autograd,layer:grad,layer:jvp,extension:mica.autograd", ::mica::autograd::Init)
