// The layer's kernel, one boxed function for all operators that have a policy, its rule, and the
// plugin's entry.
//
// The operator runs with its cast arguments and without this layer. Composites without a
// policy decompose here, so that their parts get their own (docs/design.md, "Composites").
#include <string_view>
#include <utility>

#include <mica/frame.h>
#include <mica/layer.h>
#include "keys/autocast/cache.h"
#include "keys/autocast/state.h"

namespace mica::autocast {
namespace {

// What happens to the floating tensors among an operator's arguments; float64 stays.
enum class Policy : uint8_t {
  kNone,     // nothing
  kLower,    // to the device's lower dtype
  kFloat32,  // to float32
  kPromote,  // to float32 where one of them is float32, else to the lower dtype
  kParts,    // nothing itself: a composite that decomposes at the layer, where each part has its own
  kWhole,    // nothing, nor to its parts
};

Policy PolicyNamed(std::string_view name) {
  return name == "lower"     ? Policy::kLower
         : name == "float32" ? Policy::kFloat32
         : name == "promote" ? Policy::kPromote
         : name == "parts"   ? Policy::kParts
         : name == "whole"   ? Policy::kWhole
                             : Policy::kNone;
}

bool IsEligible(plugin::TensorRef t) {
  const int32_t d = t.dtype();
  return (d == MICA_F32 || d == MICA_F16 || d == MICA_BF16) && CurrentState().is_on(t.backend());
}

// The policy of a call, and the dtype that its tensors are cast to.
struct Decision {
  Policy policy = Policy::kNone;
  int32_t dtype = MICA_F32;
};

Decision Decide(const layer::Call& call) {
  int32_t backend = -1;
  bool has_float32 = false;
  call.ForEachTensor([&](plugin::TensorRef t, int64_t) {
    if (!IsEligible(t)) return;
    if (backend < 0) backend = t.backend();
    has_float32 |= t.dtype() == MICA_F32;
  });
  Decision d;
  if (backend < 0) return d;
  // The kernel's context: the CPU's policy and that of accelerators, a byte each.
  const auto packed = reinterpret_cast<uintptr_t>(call.context<void>());
  d.policy = static_cast<Policy>(backend == 0 ? packed & 0xff : packed >> 8);
  const bool lower = d.policy == Policy::kLower || (d.policy == Policy::kPromote && !has_float32);
  if (lower) d.dtype = CurrentState().lower[backend];
  return d;
}

formula::Tensor Cast(formula::Tensor t, int32_t dtype) {
  if (!IsEligible(t.get()) || plugin::TensorRef(t.get()).dtype() == dtype) return t;
  return CachedCast(t.get(), dtype);
}

void Run(layer::Call& call) {
  const Decision decision = Decide(call);
  const uint64_t below = call.keys() & layer::Below(Bit());
  if (decision.policy == Policy::kParts) return call.Decompose();
  if (decision.policy == Policy::kNone) return call.Redispatch(below, call.args());
  if (decision.policy == Policy::kWhole) {
    const NoAutocast guard;
    return call.Redispatch(below, call.args());
  }
  const layer::ReplacedArguments cast(call.args(), call.size(),
                                      [&](formula::Tensor t) { return Cast(std::move(t), decision.dtype); });
  const NoAutocast guard;
  call.NextOf(Bit(), cast.data());
}

// Of an operator that says nothing, and of what writes: a composite decomposes, others pass.
void Rule(void* op, MicaLayerChoice* out) {
  const char* const text = layer::Table()->operator_policy(op, "autocast");
  if (!text || layer::Table()->operator_info(op)->form != MICA_FORM_FUNCTIONAL) return;
  const char* const of_cpu = layer::Table()->operator_policy(op, "autocast.cpu");
  const Policy other = PolicyNamed(text), cpu = of_cpu ? PolicyNamed(of_cpu) : other;
  if (cpu == other && cpu == Policy::kParts) return;
  if (cpu == other && cpu == Policy::kNone) return layer::Pass(out);
  const auto packed = static_cast<uintptr_t>(cpu) | static_cast<uintptr_t>(other) << 8;
  layer::Choose<&Run>(out, reinterpret_cast<void*>(packed));
}

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  layer::Layer autocast(registrar, "Autocast", {});
  autocast.Rule<&Rule>().Decompose();
  SetBit(autocast.number());
  plugin::Registrar(registrar, "").Extension(MICA_AUTOCAST_EXTENSION, &kTable.table);
}

}  // namespace
}  // namespace mica::autocast

MICA_PLUGIN("autocast", "Mica", "0.1", "", "", "layer:Autocast,extension:mica.autocast",
            ::mica::autocast::Init)
