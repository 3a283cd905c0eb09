// Adding to .grad.
#include "mica/keys/autograd/accumulate.h"

#include "mica/dispatcher/thread_state.h"
#include "mica/keys/autograd/engine_ops.h"
#include "mica/keys/autograd/meta.h"

namespace mica::autograd {

AccumulateGrad::AccumulateGrad(TensorImpl* leaf) {
  sequence_ = UINT64_MAX;  // as soon as its gradient is complete: frees memory
  leaf_ = leaf;
  AddOutput(*variable());
}

void AccumulateGrad::Refresh() { output(0).Set(*variable()); }

namespace {

// Whether the caller's reference to `t` is the only way to its memory: nobody
// else holds it, or the tensor that it is a view of, and it is no foreign memory.
bool IsAlone(const Tensor& t) {
  if (t.impl()->refs().load(std::memory_order_relaxed) != 1 || !t.impl()->storage->resizable()) return false;
  if (!t.is_view()) return t.impl()->storage->use_count() == 1;
  return t.impl()->storage->use_count() == 2 &&
         t.impl()->extra->view_base->refs().load(std::memory_order_relaxed) == 1;
}

// Whether `grad` can stay as it is: with the leaf's strides, or contiguous where the leaf's
// elements share memory or leave gaps, as what is added later is written into it.
bool HasLayoutOf(const Tensor& grad, const Tensor& leaf) {
  if (leaf.is_contiguous() || IsNonOverlappingAndDense(leaf.sizes(), leaf.strides()))
    return grad.strides() == leaf.strides();
  return grad.is_contiguous();
}

// The sum where a mode or a subclass sees it made, which is Python's code: the lock is not
// held meanwhile, since whoever holds the interpreter may wait for it in `x.grad`.
void AddSeen(Meta& meta, const Tensor& leaf, const Tensor& grad) {
  while (true) {
    Tensor before;
    {
      std::lock_guard lock(LockOf(leaf.impl()));
      before = meta.grad;
    }
    const bool recorded = CurrentThread().grad_enabled && RequiresGrad(grad);
    const bool taken = !recorded && IsAlone(grad) && HasLayoutOf(grad, leaf);
    Tensor sum = before;
    if (!before.defined())
      sum = taken ? DetachedAlias(grad) : ops::CloneLike(grad, leaf);
    else if (CurrentThread().grad_enabled)
      sum = ops::Add(before, grad);
    else
      ops::AddInPlace(before, grad);
    std::lock_guard lock(LockOf(leaf.impl()));
    if (sum.is_same(before)) return;
    if (meta.grad.is_same(before)) {
      meta.grad = std::move(sum);
      return;
    }
  }
}

}  // namespace

void AccumulateGrad::Add(const Tensor& grad) {
  Meta& meta = EnsureMeta(*variable());
  if (__builtin_expect(IsSeen(grad) || IsSeen(*variable()), 0)) return AddSeen(meta, *variable(), grad);
  std::lock_guard lock(LockOf(leaf_));
  if (!meta.grad.defined()) {
    const bool recorded = CurrentThread().grad_enabled && RequiresGrad(grad);
    if (!recorded && IsAlone(grad) && HasLayoutOf(grad, *variable())) {
      meta.grad = grad.requires_grad() || grad.is_view() ? DetachedAlias(grad) : grad;
    } else {
      meta.grad = ops::CloneLike(grad, *variable());
    }
  } else if (CurrentThread().grad_enabled) {
    meta.grad = ops::Add(meta.grad, grad);
  } else {
    ops::AddInPlace(meta.grad, grad);
  }
}

void AccumulateGrad::Apply(const Tensor* grads, Tensor*) {
  if (grads[0].defined()) Add(grads[0]);
  if (__builtin_expect(!extra() || extra()->accumulated.empty(), 1)) return;
  const std::vector<NodeExtra::Accumulated> hooks = extra()->accumulated;  // a hook may remove itself
  for (const NodeExtra::Accumulated& h : hooks) h.hook(*variable());
}

}  // namespace mica::autograd
