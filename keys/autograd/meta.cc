// History: reading and giving grad_fn, gradient edges, views that follow writes.
#include "keys/autograd/meta.h"

#include "absl/strings/str_cat.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/frames/frames.h"
#include "keys/autograd/accumulate.h"
#include "keys/autograd/copy_slices.h"
#include "keys/autograd/engine_ops.h"
#include "keys/autograd/forward.h"
#include "tensor/shape.h"

namespace mica::autograd {
namespace {

void MarkRequiresGrad(const Tensor& t) {
  t.impl()->set_flag(tensor_flags::kRequiresGrad, true);
  t.impl()->keys = t.impl()->keys | KeySet::Of(keys::kAutograd);
}

// retain_grad() follows a tensor that is written in place to its new node.
void MoveRetainedGrad(Meta& meta, Node& to, uint32_t output_nr) {
  if (meta.grad_fn && meta.grad_fn->extra()) {
    std::erase_if(meta.grad_fn->extra()->retain,
                  [&](const NodeExtra::Retain& r) { return r.slot == meta.retained; });
  }
  to.EnsureExtra().retain.push_back({output_nr, meta.retained});
}

void Assign(Meta& meta, const Tensor& t, NodeRef node, uint32_t output_nr) {
  if (meta.retained) MoveRetainedGrad(meta, *node, output_nr);
  meta.grad_fn = std::move(node);
  meta.output_nr = output_nr;
  if (!t.is_inference()) meta.attr_version = t.version();
}

// Throws if a write leaves open what the gradient of the view is: `op` writes the view itself or, where it
// is NULL, something wrote its base since.
void CheckViewWrite(const Tensor& view, const char* op) {
  const auto creation = static_cast<ViewCreation>(view.impl()->extra->view_creation);
  if (__builtin_expect(creation == ViewCreation::kDefault, 1)) return;
  const std::string written = op ? absl::StrCat("is being modified inplace, by ", op)
                                 : "its base or another view of its base has been modified inplace";
  if (creation == ViewCreation::kMultiOutput) {
    MICA_CHECK(
        !op, "A view ", written,
        ". This view is the output of a function that returns multiple views. Such functions do not "
        "allow the output views to be modified inplace. Use the operator that is not in-place, or make "
        "the view by itself (select, narrow).");
    return;
  }
  if (creation == ViewCreation::kCustomFunction) {
    const Meta* meta = GetMeta(view);
    MICA_CHECK(!op && !(meta && meta->grad_fn), "A view ", written,
               ". This view was created inside a custom Function, whose backward would be lost. Clone the "
               "view inside the Function, or write before calling it.");
    return;
  }
  const bool no_grad = creation == ViewCreation::kNoGrad;
  MICA_CHECK(false, "A view was created in ", no_grad ? "no_grad" : "inference", " mode and ", written,
             no_grad ? " with grad mode enabled" : " in normal mode",
             "; whether gradients flow through it, or through a view of a view that was made so and is being "
             "modified, is ambiguous. Move both the view and the write inside the ",
             no_grad ? "no_grad" : "inference_mode",
             " block (the write is not recorded) or both outside (it is).");
}

// What a view is replayed from: of a base that was detached in place, a leaf of its own, at which gradients
// end.
Tensor ReplaySource(const Tensor& base) {
  if (base.requires_grad()) return base;
  const Tensor end = DetachedAlias(base);
  SetRequiresGrad(end, true);
  return end;
}

// A view whose base was written since: the grad_fn of the view taken anew.
NodeRef RegenerateGradFn(const Tensor& view) {
  frames::Settle(view);
  const Tensor base = view.view_base();
  std::mutex& mutex = LockOf(view.impl());
  {
    std::lock_guard lock(mutex);
    const Meta* meta = GetMeta(view);
    if ((!meta || !meta->grad_fn) && !base.requires_grad()) return nullptr;
    if (meta && meta->attr_version == view.version()) return meta->grad_fn;
  }
  CheckViewWrite(view, nullptr);
  // Without the lock, since operators run here.
  const uint32_t version = view.version();
  const Tensor again = ReplayView(ReplaySource(base), ViewGeometry::Of(base, view));
  Meta& meta = EnsureMeta(view);
  std::lock_guard lock(mutex);
  if (meta.attr_version != version || !meta.grad_fn) {
    const Meta* replayed = GetMeta(again);
    if (!replayed || !replayed->grad_fn) return meta.grad_fn;
    Assign(meta, view, replayed->grad_fn, replayed->output_nr);
    meta.attr_version = version;
  }
  return meta.grad_fn;
}

}  // namespace

Meta& EnsureMeta(const Tensor& t) {
  TensorExtra& extra = t.impl()->EnsureExtra();
  if (!extra.layer_state) extra.layer_state = new Meta();
  return *static_cast<Meta*>(extra.layer_state);
}

std::mutex& LockOf(const void* p) {
  static std::mutex locks[64];
  return locks[(reinterpret_cast<uintptr_t>(p) >> 6) % 64];
}

NodeRef GradFn(const Tensor& t) {
  if (__builtin_expect(t.is_view(), 0) && IsDifferentiableView(t)) return RegenerateGradFn(t);
  const Meta* meta = GetMeta(t);
  return meta ? meta->grad_fn : nullptr;
}

void LeaveBase(const Tensor& view) {
  const bool requires_grad = RequiresGrad(view);
  const Meta* meta = GetMeta(view);
  if (!meta || !meta->grad_fn || meta->attr_version != view.version())
    GradFn(view);  // found now, while the base says it
  std::exchange(view.impl()->extra->view_base, nullptr)->Release();
  if (requires_grad) MarkRequiresGrad(view);
}

Edge GradientEdge(const Tensor& t) {
  if (!t.defined() || !RequiresGrad(t)) return {};
  if (NodeRef fn = GradFn(t)) return {std::move(fn), GetMeta(t)->output_nr};
  return {Accumulator(t), 0};
}

Meta::~Meta() { delete static_cast<AccumulateGrad*>(accumulator.load(std::memory_order_relaxed)); }

NodeRef Accumulator(const Tensor& leaf) {
  Meta& meta = EnsureMeta(leaf);
  Node* node = meta.accumulator.load(std::memory_order_acquire);
  if (__builtin_expect(!node, 0)) {
    std::lock_guard lock(LockOf(leaf.impl()));
    node = meta.accumulator.load(std::memory_order_relaxed);
    if (!node) {
      node = new AccumulateGrad(leaf.impl());
      meta.accumulator.store(node, std::memory_order_release);
    }
  }
  return NodeRef::Borrow(node);
}

void RefreshAccumulator(const Tensor& t) {
  const Meta* meta = GetMeta(t);
  if (!meta) return;
  if (Node* node = meta->accumulator.load(std::memory_order_acquire))
    static_cast<AccumulateGrad*>(node)->Refresh();
}

void SetGradFn(const Tensor& t, NodeRef node, uint32_t output_nr) {
  Assign(EnsureMeta(t), t, std::move(node), output_nr);
  MarkRequiresGrad(t);
}

// An object of a Python subclass that asked for a gradient as it was made, and whose
// history comes now.
static bool IsFreshSubclass(const Tensor& t) {
  const Meta* meta = t.keys().has(keys::kPythonSubclass) ? GetMeta(t) : nullptr;
  return meta && !meta->grad_fn && !meta->accumulator.load(std::memory_order_acquire);
}

void SetHistory(Tensor& result, Node& node) {
  if (!result.defined() || !IsDifferentiable(result.dtype())) {
    node.AddOutput(Tensor());
    return;
  }
  if (__builtin_expect(result.requires_grad(), 0) && !IsFreshSubclass(result)) {
    result = frames::IsWrapper(result) ? frames::Alias(result)
                                       : MakeView(result, result.sizes(), result.strides(),
                                                  result.storage_offset() * result.itemsize());
  }
  SetGradFn(result, NodeRef::Borrow(&node), node.AddOutput(result));
}

void RebaseHistory(const Tensor& written, Node& node, int edge) {
  if (!IsDifferentiable(written.dtype())) return;
  const uint32_t output_nr = node.AddOutput(written);
  if (!IsDifferentiableView(written)) {
    SetGradFn(written, NodeRef::Borrow(&node), output_nr);
    return;
  }
  const Tensor base = written.view_base();
  SetGradFn(base, MakeNode<CopySlices>(base, ViewGeometry::Of(base, written), NodeRef::Borrow(&node), edge),
            0);
  EnsureMeta(written).attr_version = written.version() - 1;  // also if it was asked for since the write
  GradFn(written);                                           // takes the new history now, in this version
  MarkRequiresGrad(written);
}

void CheckInplace(const Tensor& t, const char* op) {
  if (!CurrentThread().grad_enabled) return;
  if (t.is_view() && IsDifferentiableView(t)) {
    const Tensor base = t.view_base();
    CheckViewWrite(t, op);
    MICA_CHECK(!base.requires_grad() || GradFn(base),
               "a view of a leaf Variable that requires grad is being used in an in-place operation, ", op,
               "; wrap it in no_grad, or work on a clone.");
  }
  MICA_CHECK(!(t.requires_grad() && IsLeaf(t)),
             "a leaf Variable that requires grad is being used in an in-place operation, ", op,
             "; wrap it in no_grad, or work on a clone.");
}

void SetRequiresGrad(const Tensor& t, bool requires_grad) {
  if (requires_grad) {
    MICA_CHECK(
        IsDifferentiable(t.dtype()),
        "only Tensors of floating point and complex dtype can require gradients; this one's dtype is (",
        Name(t.dtype()), ").");
    MICA_CHECK(!t.is_inference() || InferenceModeEnabled(),
               "A tensor that was made in inference mode cannot require grad outside it; clone it first.");
  }
  if (RequiresGrad(t) == requires_grad) return;
  MICA_CHECK(!GradFn(t),
             "you can only change requires_grad flags of leaf variables, and this tensor was computed by (",
             GradFn(t)->name(),
             "). If you want to use a computed variable in a subgraph that doesn't require differentiation "
             "use var_no_grad = var.detach().");
  if (requires_grad) {
    EnsureMeta(t);  // before other threads may see the leaf
    MarkRequiresGrad(t);
    return;
  }
  t.impl()->set_flag(tensor_flags::kRequiresGrad, false);
  if (!t.is_view()) t.impl()->keys = t.impl()->keys - KeySet::Of(keys::kAutograd);
}

Tensor DetachedAlias(const Tensor& t) {
  if (frames::IsWrapper(t)) return forward::WithoutTangent(frames::Alias(t));
  if (t.keys().has(keys::kPythonSubclass)) {  // only the subclass can make another of its kind
    const ExcludeGuard below(KeySet::Of(keys::kAutograd));
    return ops::Detach(t);
  }
  return MakeView(t, t.sizes(), t.strides(), t.storage_offset() * t.itemsize(), true);
}

namespace {

// Of the memory of a base that is conjugated or negated by `lazy`, a view that begins at `offset` (in
// elements of its own dtype) shows the same elements if it has these layers.
KeySet LazyOfView(KeySet lazy, DType base, DType view, int64_t offset) {
  if (!IsComplex(base) || IsComplex(view)) return lazy;
  const bool negative = lazy.has(keys::kNegative) != (lazy.has(keys::kConjugate) && offset % 2 != 0);
  return negative ? KeySet::Of(keys::kNegative) : KeySet();
}

}  // namespace

ViewGeometry ViewGeometry::Of(const Tensor& base, const Tensor& view) {
  const int64_t bytes = frames::IsWrapper(view)
                            ? frames::WrapperOf(view).place
                            : reinterpret_cast<char*>(view.data()) - reinterpret_cast<char*>(base.data());
  const int64_t offset = bytes / view.itemsize();
  const KeySet same = LazyOfView(base.keys() & keys::kLazy, base.dtype(), view.dtype(), offset);
  return {ToDims(view.sizes()), ToDims(view.strides()), offset, view.dtype(),
          (view.keys() & keys::kLazy) ^ same};
}

Tensor WithLazy(Tensor t, KeySet lazy) {
  const KeySet flips = (t.keys() & keys::kLazy) ^ lazy;
  if (flips.has(keys::kConjugate)) t = ops::ConjView(t);
  return flips.has(keys::kNegative) ? ops::NegView(t) : t;
}

namespace {

Tensor ReplayPlain(const Tensor& base, const ViewGeometry& view) {
  const int64_t start = base.storage_offset();
  if (view.dtype == base.dtype()) return ops::AsStrided(base, view.sizes, view.strides, start + view.offset);
  if (IsComplex(base.dtype())) {
    return ops::AsStrided(ops::ViewAsReal(base), view.sizes, view.strides, 2 * start + view.offset);
  }
  Dims sizes = view.sizes;
  Dims strides = view.strides;
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return ops::ViewAsComplex(ops::AsStrided(base, sizes, strides, start + 2 * view.offset));
}

}  // namespace

Tensor ReplayView(const Tensor& base, const ViewGeometry& view) {
  GradModeGuard grad(true);
  IncludeAutograd on;
  frames::Settle(base);
  const KeySet same = LazyOfView(base.keys() & keys::kLazy, base.dtype(), view.dtype, view.offset);
  return WithLazy(ReplayPlain(WithLazy(base, {}), view), same ^ view.flips);
}

}  // namespace mica::autograd
