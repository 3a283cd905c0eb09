// Meta: the autograd state of a tensor, and the functions that give a tensor its
// history. Generated kernels and the interface use them.
//
// A tensor without a Meta is a leaf without gradient. kRequiresGrad in the
// tensor's flags says that it is a leaf that requires grad or has a grad_fn; the
// Autograd key stands on it then. A view has its own grad_fn while its
// `attr_version` is the storage's version; when the base was written since, the
// grad_fn is made anew from the base's (Note [Views and writes]).
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "keys/autograd/node.h"

namespace mica::autograd {

// Note [Views and writes]
// A write through a view V of base B (both floating) gives B a new grad_fn,
// CopySlices, which cuts the gradient of V's part out of B's gradient, runs the
// writing operator's node on it, and puts the result back. V and all other views
// of B then hold an outdated grad_fn; GradFn() sees it by the version and takes
// the grad_fn of the view computed again from B (as_strided, since every view is
// one; a view of another dtype goes through view_as_real or view_as_complex).

struct Meta final : LayerState {
  ~Meta() override;
  Tensor grad;
  NodeRef grad_fn;
  std::atomic<Node*> accumulator{nullptr};  // an AccumulateGrad, owned; made on first use
  uint32_t output_nr = 0;
  uint32_t attr_version = 0;  // views: the version that grad_fn belongs to
  std::shared_ptr<RetainedGrad> retained;

  static void* operator new(size_t size) {
    return internal::SmallAllocate(internal::SmallClass(static_cast<int64_t>(size)));
  }
  static void operator delete(void* p) noexcept {
    internal::SmallFree(p, internal::SmallClass(sizeof(Meta)));
  }
};

inline Meta* GetMeta(const Tensor& t) {
  const TensorExtra* extra = t.impl()->extra;
  return extra ? static_cast<Meta*>(extra->layer_state) : nullptr;
}
Meta& EnsureMeta(const Tensor& t);
// The lock for what threads share of a tensor (accumulator, grad, a view's
// grad_fn); one of a fixed set. Hold no other lock and call no user code in it.
std::mutex& LockOf(const void* p);

// A view that follows its base: floating or complex, of the base's dtype or its
// real or complex counterpart.
inline bool IsDifferentiableView(const Tensor& t) {
  const TensorExtra* extra = t.impl()->extra;
  return extra && extra->view_base && IsDifferentiable(t.dtype()) &&
         RealOf(t.dtype()) == RealOf(extra->view_base->dtype());
}
inline bool RequiresGrad(const Tensor& t) {
  if (t.impl()->has_flag(tensor_flags::kRequiresGrad)) return true;
  return t.is_view() && IsDifferentiableView(t) &&
         t.impl()->extra->view_base->has_flag(tensor_flags::kRequiresGrad);
}
// NULL on leaves.
NodeRef GradFn(const Tensor& t);
inline bool IsLeaf(const Tensor& t) { return !RequiresGrad(t) || !GradFn(t); }
// Makes a view an ordinary tensor: the history that it has through its base becomes its own.
void LeaveBase(const Tensor& view);
// Where the gradient of `t` goes; an empty edge if it requires none.
Edge GradientEdge(const Tensor& t);
// The node that adds to the leaf's grad.
NodeRef Accumulator(const Tensor& leaf);
// After `t` got another shape, dtype or device by other ways than operators.
void RefreshAccumulator(const Tensor& t);

// `result` becomes output `node->num_outputs()` of `node`, which is its grad_fn
// from now on. Of dtypes without gradient only the output is counted. A kernel
// that returned its input gets an alias in `result`, so that the input's own
// history stays.
void SetHistory(Tensor& result, Node& node);
// The same for a tensor that `node`'s operator wrote, which belongs to edge `edge` of `node`.
void RebaseHistory(const Tensor& written, Node& node, int edge = 0);
void SetGradFn(const Tensor& t, NodeRef node, uint32_t output_nr);
// Throws if `t` must not be written while gradients are recorded: a leaf that
// requires grad, a view of one, a view made under no_grad, one of many views.
void CheckInplace(const Tensor& t, const char* op);
void SetRequiresGrad(const Tensor& t, bool requires_grad);
// An alias without history; shares the version.
Tensor DetachedAlias(const Tensor& t);

// A view's place within its base.
struct ViewGeometry {
  Dims sizes, strides;
  int64_t offset = 0;  // from the base's first element, in elements of `dtype`
  DType dtype = DType::kF32;
  KeySet flips;  // whether it shows its base's elements conjugated or negated, of keys::kLazy
  static ViewGeometry Of(const Tensor& base, const Tensor& view);
};
// A view of the same memory that is conjugated or negated as `lazy` says.
Tensor WithLazy(Tensor t, KeySet lazy);
// The same view of another tensor that stands for the base, with history.
Tensor ReplayView(const Tensor& base, const ViewGeometry& view);

}  // namespace mica::autograd
