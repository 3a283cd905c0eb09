// Dual numbers: how tangents are kept, viewed and written.
//
// Note [Tangents of views]
// A wrapper that has views (its root, for views of views) keeps a tangent of its value's
// strides, so that a view's place in the value is its place in the tangent. A view keeps
// the tangent that its operator gave it, or takes it anew by its place when the root got
// another one since: `number` of the root counts these, `number` of a view says which it
// has. The memory of a tangent may be shared with other tensors (x + 1 has the tangent of
// x); kShared says so, and the first write that goes through a view copies it before.
#include "keys/autograd/forward.h"

#include <algorithm>

#include "keys/autograd/as_strided.h"
#include "keys/autograd/engine_ops.h"
#include "keys/autograd/meta.h"
#include "tensor/shape.h"

namespace mica::autograd::forward {
namespace {

// Bits of Wrapper::number; the rest counts a root's tangents.
constexpr int64_t kHasViews = 1;
constexpr int64_t kShared = 2;
constexpr int64_t kGeneration = 4;
int64_t GenerationOf(const frames::Wrapper& w) { return w.number / kGeneration; }

Tensor RootOf(const Tensor& wrapper) { return wrapper.is_view() ? wrapper.view_base() : wrapper; }

void SetTangent(frames::Wrapper& root, Tensor tangent, bool shared) {
  root.second = std::move(tangent);
  root.number = ((root.number | kShared) ^ (shared ? 0 : kShared)) + kGeneration;
}

StridedPlace PlaceOf(const Tensor& t) { return {ToDims(t.sizes()), ToDims(t.strides()), t.storage_offset()}; }

bool Overlaps(const Tensor& t) { return MayOverlap(PlaceOf(t)); }

bool SharesMemory(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() && a.impl()->storage == b.impl()->storage;
}

// The root's tangent, alone in its memory, of its value's strides, and conjugated in memory where that is, so
// that a view of the one is a view of the other.
void OwnTangent(frames::Wrapper& root) {
  const Tensor& value = root.value;
  MICA_CHECK_IMPLEMENTED(!Overlaps(value), "In jvp a view of an expanded tensor, ", value.ToString(),
                         ", is written with a tangent, which has no memory of its own there. Write to a "
                         "clone of the expanded tensor.");
  const Tensor fresh =
      WithLazy(ops::EmptyStrided(value.sizes(), value.strides(), value), value.keys() & keys::kLazy);
  if (root.second.defined()) {
    ops::CopyInto(fresh, root.second);
  } else {
    ops::Zero(fresh);
  }
  SetTangent(root, fresh, false);
}

// The tangent as one of `value`: its dtype, its sizes; undefined where it has none.
Tensor Fitted(Tensor tangent, const Tensor& value) {
  if (!tangent.defined() || !IsDifferentiable(value.dtype())) return Tensor();
  if (tangent.dtype() != value.dtype()) {
    if (IsComplex(tangent.dtype()) && !IsComplex(value.dtype())) tangent = ops::Real(tangent);
    if (tangent.dtype() != value.dtype()) tangent = ops::ToDType(tangent, value.dtype());
  }
  if (tangent.sizes() != value.sizes()) tangent = ops::Expand(tangent, value.sizes());
  return tangent;
}

bool IsConstant(const Tensor& t, const frames::Wrapper&) { return !TangentOf(t).defined(); }

int g_kind = -1;
}  // namespace

int JvpKind() { return g_kind; }

void BringJvpKind(Scope& scope) {
  g_kind = scope.BringKind({.name = "jvp",
                            .after_escape = "Return it from the function (has_aux=True returns values beside "
                                            "the output), or take its value and "
                                            "tangent by unpack_dual inside the dual level.",
                            .is_constant = &IsConstant,
                            .settle = &frames::Mirror});
}

Tensor MakeDual(Tensor value, Tensor tangent, const frames::Frame& frame) {
  Tensor dual = frames::Wrap(std::move(value), frame);
  frames::Wrapper& w = frames::WrapperOf(dual);
  SetTangent(w, Fitted(std::move(tangent), w.value), true);
  return dual;
}

namespace {
bool IsDual(const Tensor& t) { return frames::IsWrapper(t) && frames::WrapperOf(t).kind == JvpKind(); }
}  // namespace

const Tensor& Primal(const Tensor& t) { return IsDual(t) ? Primal(frames::WrapperOf(t).value) : t; }

bool MovesHere(const Tensor& t) { return IsDual(t) && frames::WrapperOf(RootOf(t)).second.defined(); }

bool HasTangent(const Tensor& t) {
  return IsDual(t) && (MovesHere(t) || HasTangent(frames::WrapperOf(t).value));
}

Tensor TangentOf(const Tensor& wrapper) {
  frames::Wrapper& w = frames::WrapperOf(wrapper);
  if (!wrapper.is_view()) return w.second;
  const Tensor base = wrapper.view_base();
  const frames::Wrapper& root = frames::WrapperOf(base);
  if (GenerationOf(w) == GenerationOf(root)) return w.second;
  w.second = root.second.defined() && IsDifferentiableView(wrapper)
                 ? ReplayView(root.second, ViewGeometry::Of(base, wrapper))
                 : Tensor();
  w.number = GenerationOf(root) * kGeneration;
  return w.second;
}

Tensor WithoutTangent(Tensor wrapper) {
  frames::Wrapper& w = frames::WrapperOf(wrapper);
  if (w.kind != JvpKind()) return wrapper;
  w.second.reset();
  w.number = 0;
  return wrapper;
}

Tensor PrepareView(const Tensor& wrapper) {
  const Tensor base = RootOf(wrapper);
  frames::Wrapper& root = frames::WrapperOf(base);
  const auto unlike = [&] {
    return root.second.strides() != root.value.strides() ||
           !((root.second.keys() ^ root.value.keys()) & keys::kLazy).empty();
  };
  if (root.second.defined() && unlike() && !Overlaps(root.value)) OwnTangent(root);
  root.number |= kHasViews;
  return TangentOf(wrapper);
}

void ReachTangent(const Tensor& wrapper, const Tensor& view) {
  const Tensor base = RootOf(wrapper);
  frames::Wrapper& root = frames::WrapperOf(base);
  const Tensor& value = root.value;
  const StridedPlace own = PlaceOf(value), reached = PlaceOf(frames::WrapperOf(view).value);
  if (!root.second.defined() || Overlaps(value) || view.numel() == 0) return;
  if (reached.offset >= own.offset && End(reached) <= End(own)) return;
  const Tensor flat =
      ops::ZerosOf({std::max(End(own), End(reached))}, root.second.dtype(), root.second.device());
  const Tensor fresh =
      WithLazy(ops::AsStrided(flat, own.sizes, own.strides, own.offset), value.keys() & keys::kLazy);
  ops::CopyInto(fresh, root.second);
  SetTangent(root, fresh, false);
}

void SetViewTangent(const Tensor& view, Tensor tangent) {
  frames::Wrapper& w = frames::WrapperOf(view);
  if (!IsDifferentiable(view.dtype())) return;
  w.second = std::move(tangent);
  if (view.is_view()) w.number = GenerationOf(frames::WrapperOf(view.view_base())) * kGeneration;
}

Dual Level::Open(const Tensor& t) {
  if (!t.defined()) return {};
  const frames::Wrapper* w = frames::Own(t, frame());
  if (w) opened_.push_back(t);
  Dual dual = w ? Dual{w->value, TangentOf(t)} : Dual{t, Tensor()};
  any_ = any_ || dual.tangent.defined();
  recorded_ = recorded_ || IsRecordedOutside(dual.value) || IsRecordedOutside(dual.tangent);
  return dual;
}

std::vector<Dual> Level::Open(TensorSpan list) {
  std::vector<Dual> duals;
  duals.reserve(static_cast<size_t>(list.size()));
  for (const Tensor& t : list) duals.push_back(Open(t));
  return duals;
}

Dual Level::OpenWritten(const Tensor& t) { return Open(t); }

Tensor Level::Kept(const Tensor& value) const { return recorded_ ? ops::Clone(value) : value; }

bool Level::IsOpened(const Tensor& tangent) {
  bool found = false;
  for (const Tensor& t : opened_) {
    const frames::Wrapper& w = frames::WrapperOf(t);
    if (!SharesMemory(w.second, tangent)) continue;
    found = true;
    frames::WrapperOf(RootOf(t)).number |= kShared;
  }
  return found;
}

Tensor Level::Close(Tensor result, Tensor tangent) {
  if (!result.defined()) return result;
  for (const Tensor& t : opened_) {
    frames::Settle(t);
    if (!SharesMemory(t, result)) continue;
    static_cast<void>(PrepareView(t));
    return frames::Wrap(std::move(result), frame(), t);  // takes its tangent by its place
  }
  tangent = Fitted(std::move(tangent), result);
  const bool shared = tangent.defined() && IsOpened(tangent);
  Tensor dual = frames::Wrap(std::move(result), frame());
  if (tangent.defined()) SetTangent(frames::WrapperOf(dual), std::move(tangent), shared);
  return dual;
}

std::vector<Tensor> Level::Close(std::vector<Tensor> results, std::vector<Tensor> tangents) {
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = Close(std::move(results[i]), i < tangents.size() ? std::move(tangents[i]) : Tensor());
  return results;
}

void Level::Write(const Tensor& self, Tensor tangent) {
  frames::Wrapper* w = frames::Own(self, frame());
  if (!w) {
    MICA_CHECK(!tangent.defined(), "Operator ", op_, " writes a tensor (", self.ToString(),
               ") that was made outside of the jvp, with values that have a tangent; the tangent would be "
               "lost. Pass "
               "the tensor to the function as an argument, or write to a clone.");
    return;
  }
  frames::Refresh(self);
  tangent = Fitted(std::move(tangent), w->value);
  const Tensor base = RootOf(self);
  frames::Wrapper& root = frames::WrapperOf(base);
  if (!self.is_view() && !(root.number & kHasViews)) {
    const bool shared = tangent.defined() && IsOpened(tangent);
    SetTangent(root, std::move(tangent), shared);
    return;
  }
  if (!tangent.defined() && !root.second.defined()) return;
  // A tangent that an outer level may have saved is not written, but a copy of it.
  if (!root.second.defined() || (root.number & kShared) || recorded_) OwnTangent(root);
  const Tensor place = TangentOf(self);
  if (tangent.defined()) {
    ops::CopyInto(place, tangent);
  } else {
    ops::Zero(place);
  }
}

void Add(Tensor& total, const Tensor& term) {
  if (!term.defined()) return;
  total = total.defined() ? ops::Add(total, term) : term;
}

Tensor Zeros(const Tensor& value) { return ops::ZerosOf(value.sizes(), value.dtype(), value.device()); }

}  // namespace mica::autograd::forward
