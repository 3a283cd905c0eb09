// Adding to .grad.
#include "keys/autograd/accumulate.h"

#include <mutex>

#include "dispatcher/calls/thread_state.h"
#include "dispatcher/plugins/status.h"
#include "keys/autograd/engine_ops.h"
#include "keys/autograd/hooks.h"
#include "keys/autograd/meta.h"

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

// One thread at a time adds to a leaf; recursive, since a signal's handler, which runs in the middle
// of a sum, may add, too.
std::recursive_mutex& SumLockOf(const void* leaf) {
  static std::recursive_mutex locks[64];
  return locks[(reinterpret_cast<uintptr_t>(leaf) >> 6) % 64];
}

// Takes `grad` itself for the leaf's, which has none; false where that cannot be.
bool Take(Meta& meta, const Tensor& leaf, const Tensor& grad, bool seen) {
  if (CurrentThread().grad_enabled && RequiresGrad(grad)) return false;
  if (!IsAlone(grad) || !HasLayoutOf(grad, leaf)) return false;
  const Tensor taken = seen || grad.requires_grad() || grad.is_view() ? DetachedAlias(grad) : grad;
  std::lock_guard lock(LockOf(leaf.impl()));
  if (meta.grad.defined()) return false;
  meta.grad = taken;
  return true;
}

// Adds with operators, which LockOf is not held for: they may take it for another tensor, and run
// code that looks at `x.grad` (a mode's, a subclass's, a signal's handler).
void Sum(Meta& meta, const Tensor& leaf, const Tensor& grad) {
  while (true) {
    Tensor before;
    {
      std::lock_guard lock(LockOf(leaf.impl()));
      before = meta.grad;
    }
    if (before.defined() && !CurrentThread().grad_enabled) return ops::AddInPlace(before, grad);
    Tensor sum = before.defined() ? ops::Add(before, grad) : ops::CloneLike(grad, leaf);
    std::lock_guard lock(LockOf(leaf.impl()));
    if (!meta.grad.is_same(before)) continue;  // somebody added meanwhile
    meta.grad = std::move(sum);
    return;
  }
}

}  // namespace

void AccumulateGrad::Add(const Tensor& grad) {
  const Tensor& leaf = *variable();
  Meta& meta = EnsureMeta(leaf);
  const bool seen = IsSeen(grad) || IsSeen(leaf);
  if (!meta.grad.defined() && Take(meta, leaf, grad, seen)) return;
  // Python's code may wait for another thread's: its sums go without the lock.
  if (__builtin_expect(seen, 0)) return Sum(meta, leaf, grad);
  std::lock_guard lock(SumLockOf(leaf_));
  Sum(meta, leaf, grad);
}

void AccumulateGrad::Apply(const Tensor* grads, Tensor*) {
  if (!variable()->requires_grad()) return;  // detached since the graph was recorded
  if (grads[0].defined()) Add(grads[0]);
  if (__builtin_expect(!extra() || extra()->accumulated.empty(), 1)) return;
  for (const NodeExtra::Accumulated& h : CopyOf(extra()->accumulated))
    ThrowIfError(h.hook.function(h.hook.held.object(), variable()->impl()));
}

}  // namespace mica::autograd
