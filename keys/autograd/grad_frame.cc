// A call within a grad frame: through Autograd's kernel if something is to be recorded,
// else straight to the parent.
#include "keys/autograd/grad_frame.h"

#include "keys/autograd/meta.h"

namespace mica::autograd {
namespace {

void RunGrad(const BoxedKernel&, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
             MicaValue* results) {
  const frames::Frame& frame = *frames::Current();
  const ThreadState& thread = CurrentThread();
  bool recorded = false;
  if (thread.grad_enabled && !thread.exclude.has(keys::kAutograd)) {
    frames::ForEachTensor(args, n, [&](const Tensor& t, int64_t) {
      recorded = recorded || (frames::Own(t, frame) && RequiresGrad(t));
    });
  }
  if (!recorded) return frames::CallInParent(op, args, n, results);
  // What requires grad at an outer level alone is a constant at this one.
  const frames::ReplacedArguments own(args, n, [&](const Tensor& t) {
    return frames::Own(t, frame) || !RequiresGrad(t) ? t : frames::Wrap(t, frame);
  });
  const KeySet here = KeySet::Of(keys::kAutograd) | KeySet::Of(keys::kFrameBelow);
  op.RedispatchBoxed(here | (keys & keys::kBackends), own.data(), n, results);
}

bool IsConstant(const Tensor& t, const frames::Wrapper&) { return !RequiresGrad(t); }

}  // namespace

namespace {
int g_kind = -1;
}  // namespace

int GradKind() { return g_kind; }

Tensor MakeGradInput(Tensor value, const frames::Frame& frame) {
  Tensor input = frames::Wrap(std::move(value), frame);
  if (IsDifferentiable(input.dtype())) SetRequiresGrad(input, true);
  return input;
}

void RegisterGradFrame(Scope& scope) {
  g_kind = scope.BringKind({.name = "grad",
                            .after_escape = "Return it from the function (has_aux=True returns values beside "
                                            "the output), or store x.detach().",
                            .own_autograd = true,
                            .is_constant = &IsConstant,
                            .settle = &frames::Mirror});
  scope.AddBoxedFallback("grad", {&RunGrad, nullptr, nullptr}, {__FILE__, __LINE__});
}

}  // namespace mica::autograd
