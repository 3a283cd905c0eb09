// Opening the arguments of one call, and wrapping its results.
//
// Note [Late batches]
// A tensor that the function makes without batched values (x.new_zeros, arange) has none
// itself. The first write of a batched value gives it one (Promote): its base gets new
// memory with a place for each example, in the same strides. Views of that base, made
// before, are wrappers of the old memory; they take their place in the new one when they
// are next opened.
#include "keys/batched/batched.h"

#include "dispatcher/calls/boxed_results.h"
#include "mica/ops/as_strided.h"
#include "mica/ops/copy_.h"
#include "mica/ops/detach.h"
#include "mica/ops/empty_strided.h"
#include "mica/ops/expand.h"
#include "mica/ops/reshape.h"
#include "mica/ops/unsqueeze.h"
#include "mica/ops/view.h"
#include "tensor/shape.h"

namespace mica::batched {
namespace {

// The place in the memory of `root`, which has a batch in front, that `view` had in its
// base's, when that began at `began`.
Tensor PlaceIn(const Tensor& root, int64_t began, const Tensor& view) {
  MICA_CHECK_IMPLEMENTED(view.dtype() == root.dtype(), "A view of another dtype (", view.ToString(),
                         ") is used after its base got a batch under vmap; make the view again.");
  Dims sizes = {root.sizes()[0]}, strides = {root.strides()[0]};
  sizes.insert(sizes.end(), view.sizes().begin(), view.sizes().end());
  strides.insert(strides.end(), view.strides().begin(), view.strides().end());
  const int64_t offset = root.storage_offset() + view.storage_offset() - began;
  return ::mica::ops::op::as_strided::call(root, sizes, strides, offset);
}

// A new value of the base, its strides kept, for each example.
Tensor Spread(const Tensor& value, int64_t size) {
  int64_t extent = 1;
  for (int64_t i = 0; i < value.ndim(); ++i) {
    if (value.sizes()[i] > 1 && value.strides()[i] == 0) return Tensor();
    extent += std::max<int64_t>(value.sizes()[i] - 1, 0) * value.strides()[i];
  }
  Dims sizes = {size}, strides = {extent};
  sizes.insert(sizes.end(), value.sizes().begin(), value.sizes().end());
  strides.insert(strides.end(), value.strides().begin(), value.strides().end());
  const Tensor spread = ::mica::ops::op::empty_strided::call(sizes, strides, value.dtype(), std::nullopt,
                                                             value.device(), std::nullopt);
  ::mica::ops::op::copy_::call(spread, value, false);
  return spread;
}

}  // namespace

frames::Wrapper* Opened(const Tensor& t, const frames::Frame& frame) {
  frames::Wrapper* w = frames::Own(t, frame);
  if (!w || w->hidden || !t.is_view()) return w;
  const Tensor base = t.view_base();
  const frames::Wrapper* root = frames::Own(base, frame);
  if (!root || !root->hidden) return w;
  w->value = PlaceIn(root->value, root->number, t);  // Note [Late batches]
  // One without history, as detach gives, stays so.
  if (t.impl()->extra->view_creation == static_cast<uint8_t>(ViewCreation::kNoGrad))
    w->value = ::mica::ops::op::detach::call(w->value);
  w->hidden = 1;
  frames::Refresh(t);
  return w;
}

namespace {
// Opens a late view outside of its frame and those entered in it, where its values are.
void OpenOutside(const Tensor& wrapper, uint64_t tag) {
  const frames::Frame* f = frames::Current();
  while (f && f->tag != tag) f = f->parent;
  if (f) {
    const frames::LeaveFrame left;
    return OpenOutside(wrapper, tag);
  }
  frames::Frame named;
  named.tag = tag;
  static_cast<void>(Opened(wrapper, named));
}
}  // namespace

void SettleLate(const Tensor& wrapper) {
  const frames::Wrapper& w = frames::WrapperOf(wrapper);
  frames::Settle(w.value);
  if (w.hidden || !wrapper.is_view() || !frames::WrapperOf(wrapper.view_base()).hidden) {
    if (wrapper.impl()->storage != w.value.impl()->storage) frames::Refresh(wrapper);
    return;
  }
  OpenOutside(wrapper, w.tag);
}

void Promote(const Operator& op, const Tensor& t, const frames::Frame& frame) {
  frames::Wrapper* w = Opened(t, frame);
  if (w && w->hidden) return;
  const Tensor base = w && t.is_view() ? t.view_base() : t;
  frames::Wrapper* root = w ? frames::Own(base, frame) : nullptr;
  const Tensor spread = root ? Spread(root->value, BatchOf(frame).size) : Tensor();
  MICA_CHECK(spread.defined(), "Operator ", op.spec().name, " writes values of a batch into a tensor (",
             t.ToString(), ") that ", root ? "is expanded" : "the function of vmap captured from outside",
             ", which has no place for one value an example. Make it inside of the function from a batched "
             "tensor (x.new_zeros(...)), or use the functional form of the operator.");
  root->number = root->value.storage_offset();
  // Later than every version of the old memory, for those who compare.
  for (uint32_t v = spread.version(); v <= root->value.version(); ++v) spread.impl()->storage->BumpVersion();
  root->value = spread;
  root->hidden = 1;
  frames::Refresh(base);
  static_cast<void>(Opened(t, frame));
}

Tensor Aligned(const Part& t, int64_t rank) {
  if (!t.batched || t.rank == rank) return t.value;
  const IntSpan sizes = t.value.sizes();
  Dims shape(static_cast<size_t>(rank + 1), 1);
  shape[0] = sizes[0];
  for (int64_t i = 0; i < t.rank; ++i) shape[static_cast<size_t>(1 + rank - t.rank + i)] = sizes[1 + i];
  return ::mica::ops::op::reshape::call(t.value, shape);
}

Tensor WithBatch(const Part& t, int64_t size) {
  if (t.batched || !t.value.defined()) return t.value;
  Dims sizes = {size};
  sizes.insert(sizes.end(), t.value.sizes().begin(), t.value.sizes().end());
  return ::mica::ops::op::expand::call(t.value, sizes, false);
}

Tensor Fold(const Tensor& t) {
  Dims sizes(t.sizes().begin() + 1, t.sizes().end());
  sizes[0] *= t.sizes()[0];
  return ::mica::ops::op::reshape::call(t, sizes);
}

Tensor Unfold(const Tensor& t, int64_t size) {
  Dims sizes = {size};
  sizes.insert(sizes.end(), t.sizes().begin(), t.sizes().end());
  sizes[1] = size ? sizes[1] / size : 0;
  return ::mica::ops::op::reshape::call(t, sizes);
}

Call::Call(const Operator& op, const MicaValue* args, int64_t n, MicaValue* results)
    : op_(op), given_(args), results_(results), values_(args, args + n) {
  for (int64_t i = 0; i < n; ++i) {
    if (IsTensor(i)) {
      values_[static_cast<size_t>(i)].u.tensor = PartAt(i).value.impl();
    } else if (IsTensors(i)) {
      std::vector<Tensor> list;
      for (Part& p : PartsAt(i)) list.push_back(std::move(p.value));
      SetList(i, std::move(list));
    }
  }
}

namespace {
Part PartOf(const Tensor& t, const frames::Frame& frame) {
  if (!t.defined()) return {};
  const frames::Wrapper* w = Opened(t, frame);
  if (!w) return {t, false, t.ndim()};
  return {w->value, w->hidden != 0, t.ndim()};
}
}  // namespace

Part Call::PartAt(int64_t i) const {
  return IsTensor(i) ? PartOf(Tensor::Ref(given_[i].u.tensor), frame()) : Part{};
}

std::vector<Part> Call::PartsAt(int64_t i) const {
  std::vector<Part> parts;
  if (!IsTensors(i)) return parts;
  const MicaTensorSpan list = given_[i].u.tensors;
  for (int64_t j = 0; j < list.size; ++j) parts.push_back(PartOf(Tensor::Ref(list.data[j]), frame()));
  return parts;
}

void Call::Set(int64_t i, Tensor t) {
  MicaValue& v = values_[static_cast<size_t>(i)];
  v.tag = t.defined() ? MICA_VALUE_TENSOR : MICA_VALUE_NONE;
  v.u.tensor = t.impl();
  kept_.push_back(std::move(t));
}

void Call::SetList(int64_t i, std::vector<Tensor> list) {
  const std::vector<Tensor>& kept = lists_.emplace_front(std::move(list));
  MicaValue& v = values_[static_cast<size_t>(i)];
  v.tag = MICA_VALUE_TENSORS;
  v.u.tensors = {reinterpret_cast<MicaTensor* const*>(kept.data()), static_cast<int64_t>(kept.size())};
}

void Call::SetInt(int64_t i, int64_t value) {
  MicaValue& v = values_[static_cast<size_t>(i)];
  v.tag = MICA_VALUE_INT;
  v.u.i = value;
}

void Call::SetInts(int64_t i, Dims values) {
  const Dims& kept = ints_.emplace_front(std::move(values));
  MicaValue& v = values_[static_cast<size_t>(i)];
  v.tag = MICA_VALUE_INTS;
  v.u.ints = {kept.data(), static_cast<int64_t>(kept.size())};
}

void Call::AllBatched() {
  for (int64_t i = 0; i < size(); ++i) {
    if (IsTensor(i)) Set(i, WithBatch(PartAt(i), batch()));
    if (!IsTensors(i)) continue;
    std::vector<Tensor> list;
    for (const Part& p : PartsAt(i)) list.push_back(WithBatch(p, batch()));
    SetList(i, std::move(list));
  }
}

void Call::AllAligned() {
  int64_t rank = 0;
  for (int64_t i = 0; i < size(); ++i) rank = std::max(rank, PartAt(i).rank);
  for (int64_t i = 0; i < size(); ++i) {
    if (!IsTensor(i)) continue;
    Part p = PartAt(i);
    p.value = WithBatch(p, batch());
    p.batched = true;
    Set(i, Aligned(p, rank));
  }
}

bool Call::Run(const Operator& other, const MicaValue* args, int64_t n, const Then& then) {
  other.CallBoxed(args, n, results_);
  ReplaceResults(op_, results_, [&](Tensor t) {
    if (!t.defined()) return t;
    if (then) t = then(std::move(t));
    // A result that an option leaves out is empty, without a batch.
    const bool left_out = t.numel() == 0 && (t.ndim() == 0 || t.sizes()[0] != batch());
    return frames::Wrap(std::move(t), frame(), Tensor(), left_out ? 0 : 1);
  });
  return true;
}

bool Call::Return(Tensor result, int i) {
  results_[i] =
      OwnedTensorValue(result.defined() ? frames::Wrap(std::move(result), frame(), Tensor(), 1) : Tensor());
  return true;
}

bool Call::ReturnView(Tensor result) {
  results_[0] =
      OwnedTensorValue(frames::Wrap(std::move(result), frame(), Tensor::Ref(given_[0].u.tensor), 1));
  return true;
}

}  // namespace mica::batched
