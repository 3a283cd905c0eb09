// The layer's kernel, one boxed function for all operators that have a policy, and the
// plugin's entry.
//
// The operator runs with its cast arguments and without this layer. Composites without a
// policy decompose here, so that their parts get their own (docs/design.md, "Composites").
#include <mica/plugin.h>

#include <deque>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/layers/autocast.h"
#include "dispatcher/registration/registration.h"
#include "keys/autocast/cache.h"

namespace mica::autocast {

// In the generated file, build/generated/mica/autocast.cc.
void RegisterPolicies(Scope& scope);

namespace {

bool IsEligible(const Tensor& t) {
  if (!t.defined()) return false;
  const DType d = t.dtype();
  const int backend = t.device().backend;
  return (d == DType::kF32 || d == DType::kF16 || d == DType::kBF16) && backend >= 0 &&
         (CurrentAutocast().enabled >> backend & 1) != 0;
}

// Calls `visit` with each tensor among the arguments.
template <typename Visit>
void ForEachTensor(const MicaValue* args, int64_t n, Visit&& visit) {
  for (int64_t i = 0; i < n; ++i) {
    if (args[i].tag == MICA_VALUE_TENSOR) {
      visit(Tensor::Ref(args[i].u.tensor));
    } else if (args[i].tag == MICA_VALUE_TENSORS) {
      for (int64_t j = 0; j < args[i].u.tensors.size; ++j) visit(Tensor::Ref(args[i].u.tensors.data[j]));
    }
  }
}

// The policy of a call, and the dtype that its tensors are cast to.
struct Decision {
  AutocastPolicy policy = AutocastPolicy::kNone;
  DType dtype = DType::kF32;
};

Decision Decide(uintptr_t packed, const MicaValue* args, int64_t n) {
  int backend = -1;
  bool has_float32 = false;
  ForEachTensor(args, n, [&](const Tensor& t) {
    if (!IsEligible(t)) return;
    if (backend < 0) backend = t.device().backend;
    has_float32 |= t.dtype() == DType::kF32;
  });
  Decision d;
  if (backend < 0) return d;
  d.policy = static_cast<AutocastPolicy>(backend == keys::kCpu ? packed & 0xff : packed >> 8 & 0xff);
  const bool lower =
      d.policy == AutocastPolicy::kLower || (d.policy == AutocastPolicy::kPromote && !has_float32);
  if (lower) d.dtype = CurrentAutocast().dtypes[static_cast<size_t>(backend)];
  return d;
}

// The arguments of one call with their tensors cast.
class CastArguments {
 public:
  CastArguments(const MicaValue* args, int64_t n, DType dtype) : values_(args, args + n) {
    for (MicaValue& v : values_) {
      if (v.tag == MICA_VALUE_TENSOR) {
        v.u.tensor = Cast(v.u.tensor, dtype);
      } else if (v.tag == MICA_VALUE_TENSORS) {
        std::vector<MicaTensor*>& list = lists_.emplace_back();
        for (int64_t j = 0; j < v.u.tensors.size; ++j) list.push_back(Cast(v.u.tensors.data[j], dtype));
        v.u.tensors.data = list.data();
      }
    }
  }
  const MicaValue* data() const { return values_.data(); }

 private:
  MicaTensor* Cast(MicaTensor* t, DType dtype) {
    const Tensor& tensor = Tensor::Ref(t);
    if (!IsEligible(tensor) || tensor.dtype() == dtype) return t;
    return kept_.emplace_back(CachedCast(tensor, dtype)).impl();
  }

  absl::InlinedVector<MicaValue, 12> values_;
  absl::InlinedVector<Tensor, 4> kept_;
  std::deque<std::vector<MicaTensor*>> lists_;  // keeps addresses
};

void Run(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
         MicaValue* results) {
  const Decision decision = Decide(reinterpret_cast<uintptr_t>(k.context), args, n);
  const KeySet below = KeySet::Below(keys::kAutocast);
  if (decision.policy == AutocastPolicy::kNone) return op.RedispatchBoxed(keys & below, args, n, results);
  if (decision.policy == AutocastPolicy::kParts)
    return op.spec().adapters->call_slot({op.spec().composite, nullptr}, keys, args, results);
  if (decision.policy == AutocastPolicy::kWhole) {
    const NoAutocast guard;
    return op.RedispatchBoxed(keys & below, args, n, results);
  }
  const CastArguments cast(args, n, decision.dtype);
  const NoAutocast guard;
  const ThreadState& thread = CurrentThread();
  const KeySet now = (op.KeysOf(cast.data(), n) | thread.include) - thread.exclude;
  op.RedispatchBoxed(now & below, cast.data(), n, results);
}

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  auto& scope = *static_cast<Scope*>(registrar->context);
  scope.DecomposeAt("Autocast");
  RegisterPolicies(scope);
  static const AutocastLayer layer = {&Run, &ClearCache};
  scope.AddExtension(kAutocastExtension, &layer);
}

}  // namespace
}  // namespace mica::autocast

MICA_PLUGIN("autocast", "Mica", "0.1", "", "", "layer:Autocast", ::mica::autocast::Init)
