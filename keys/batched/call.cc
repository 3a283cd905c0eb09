// Opening the arguments of one call, and wrapping its results.
//
// Note [Late batches]
// A tensor that the function makes without batched values (x.new_zeros, arange) has none
// itself. The first write of a batched value gives it one (Promote): its base gets new
// memory with a place for each example, in the same strides. Views of that base, made
// before, are wrappers of the old memory; they take their place in the new one when they
// are next opened.
#include "keys/batched/batched.h"
#include "keys/batched/ops.h"

namespace mica::batched {
namespace {

// The place in the memory of `root`, which has a batch in front, that `view` had in its
// base's, when that began at `began`.
Tensor PlaceIn(MicaTensor* root, int64_t began, MicaTensor* view) {
  MICA_CHECK_IMPLEMENTED(plugin::TensorRef(view).dtype() == plugin::TensorRef(root).dtype(),
                         "A view of another dtype (", TextOf(view),
                         ") is used after its base got a batch under vmap; make the view again.");
  const int64_t offset = DetailsOf(root).offset + DetailsOf(view).offset - began;
  return ops::as_strided(Tensor::Borrow(root), Prepended(SizesOf(root)[0], SizesOf(view)),
                         Prepended(StridesOf(root)[0], StridesOf(view)), offset);
}

// A new value of the base, its strides kept, for each example.
Tensor Spread(const Tensor& value, int64_t size) {
  int64_t extent = 1;
  for (int64_t i = 0; i < value.ndim(); ++i) {
    if (value.sizes()[i] > 1 && value.strides()[i] == 0) return Tensor();
    extent += std::max<int64_t>(value.sizes()[i] - 1, 0) * value.strides()[i];
  }
  Tensor spread = ops::empty_strided(Prepended(size, value.sizes()), Prepended(extent, value.strides()),
                                     value.dtype(), value.device());
  ops::copy_(spread, value, false);
  return spread;
}

void Move(MicaTensor* wrapper, const MicaFrame& frame, const Tensor& value) {
  layer::Check(layer::Table()->move_wrapper(wrapper, &frame, value.get(), 1));
}

}  // namespace

const MicaWrapper* Opened(MicaTensor* t, const MicaFrame& frame) {
  const MicaWrapper* const w = layer::OwnOf(t, frame);
  if (!w || w->hidden) return w;
  const MicaTensorDetails view = DetailsOf(t);
  const MicaWrapper* const root = layer::OwnOf(view.base, frame);
  if (!root || !root->hidden) return w;
  Tensor value = PlaceIn(root->value, root->number, t);  // Note [Late batches]
  // One without history, as detach gives, stays so.
  if (view.view_creation == MICA_VIEW_WITHOUT_GRAD) value = ops::detach(value);
  Move(t, frame, value);
  return w;
}

namespace {
// Opens a late view outside of its frame and those entered in it, where its values are.
void OpenOutside(MicaTensor* wrapper) {
  MicaFrame frame;
  if (layer::Table()->frame_of(wrapper, &frame)) {
    const layer::LeaveFrame left;
    return OpenOutside(wrapper);
  }
  static_cast<void>(Opened(wrapper, frame));
}

bool HasBatch(MicaTensor* t) {
  const MicaWrapper* const w = layer::Table()->wrapper(t);
  return w && w->hidden;
}
}  // namespace

MicaStatus SettleLate(void*, MicaTensor* wrapper) {
  return plugin::CatchAll([&] {
    const MicaWrapper& w = *layer::Table()->wrapper(wrapper);
    layer::Check(layer::Table()->settle(w.value));
    if (!w.hidden) {
      MicaTensor* const base = DetailsOf(wrapper).base;
      if (base && HasBatch(base)) return OpenOutside(wrapper);
    }
    if (layer::ShareStorage(wrapper, w.value)) return;
    MicaFrame frame;
    layer::Table()->frame_of(wrapper, &frame);
    layer::Check(layer::Table()->move_wrapper(wrapper, &frame, nullptr, 0));
  });
}

void Promote(const Op& op, MicaTensor* t, const MicaFrame& frame) {
  const MicaWrapper* const w = Opened(t, frame);
  if (w && w->hidden) return;
  MicaTensor* base = w ? DetailsOf(t).base : t;
  if (!base) base = t;
  const MicaWrapper* const root = w ? layer::OwnOf(base, frame) : nullptr;
  const Tensor old = Tensor::Borrow(root ? root->value : nullptr);
  const Tensor spread = root ? Spread(old, BatchOf(frame).size) : Tensor();
  MICA_CHECK(spread.defined(), "Operator ", op.name(), " writes values of a batch into a tensor (", TextOf(t),
             ") that ", root ? "is expanded" : "the function of vmap captured from outside",
             ", which has no place for one value an example. Make it inside of the function from a batched "
             "tensor (x.new_zeros(...)), or use the functional form of the operator.");
  layer::SetNumber(Tensor::Borrow(base), frame, DetailsOf(old.get()).offset);
  // Later than every version of the old memory, for those who compare.
  layer::Table()->raise_version(spread.get(), layer::Table()->tensor_version(old.get()) + 1);
  Move(base, frame, spread);
  static_cast<void>(Opened(t, frame));
}

Tensor Wrapped(const Tensor& value, const MicaFrame& frame, int64_t hidden, MicaTensor* base) {
  if (!value.defined()) return Tensor();
  MicaPayload payload{};
  payload.hidden = hidden;
  return layer::Taken(layer::Table()->wrap(value.get(), &frame, base, &payload));
}

Dims Prepended(int64_t first, IntSpan rest) {
  Dims all;
  all.reserve(static_cast<size_t>(rest.size() + 1));
  all.push_back(first);
  for (const int64_t i : rest) all.push_back(i);
  return all;
}

Dims WrapDims(IntSpan dims, int64_t rank) {
  Dims out;
  for (const int64_t d : dims) {
    const int64_t dim = WrapDim(d, rank);
    MICA_CHECK(!formula::Contains(out, dim), "The dim ", dim, " appears multiple times in the list of dims, ",
               Show(dims), "; dims must be unique.");
    out.push_back(dim);
  }
  return out;
}

Tensor Aligned(Part t, int64_t rank) {
  if (!t.batched || t.rank == rank) return std::move(t.value);
  const IntSpan sizes = t.value.sizes();
  Dims shape(static_cast<size_t>(rank + 1), 1);
  shape[0] = sizes[0];
  for (int64_t i = 0; i < t.rank; ++i) shape[static_cast<size_t>(1 + rank - t.rank + i)] = sizes[1 + i];
  return ops::reshape(t.value, shape);
}

Tensor WithBatch(const Part& t, int64_t size) {
  if (t.batched || !t.value.defined()) return t.value;
  return ops::expand(t.value, Prepended(size, t.value.sizes()), false);
}

void CheckNotEmpty(int64_t size) {
  MICA_CHECK_IMPLEMENTED(
      size > 0,
      "vmap over an empty batch joins the batch with a dimension of its examples (as for "
      "convolutions, pooling and resampling), which does not say what one example's result "
      "would look like; leave vmap out where there are no examples.");
}

Tensor Fold(const Tensor& t) {
  CheckNotEmpty(t.sizes()[0]);
  Dims sizes(t.sizes().begin() + 1, t.sizes().end());
  sizes[0] *= t.sizes()[0];
  return ops::reshape(t, sizes);
}

Tensor Unfold(const Tensor& t, int64_t size) {
  CheckNotEmpty(size);
  Dims sizes = Prepended(size, t.sizes());
  sizes[1] /= size;
  return ops::reshape(t, sizes);
}

Call::Call(const Op& op, const MicaValue* args, int64_t n, MicaValue* results)
    : op_(op), given_(args), results_(results), openings_(static_cast<size_t>(n)), values_(args, args + n) {
  for (int64_t i = 0; i < n; ++i) {
    if (IsTensor(i)) {
      Open(i);
    } else if (IsTensors(i)) {
      std::vector<Tensor> list;
      for (Part& p : PartsAt(i)) list.push_back(std::move(p.value));
      SetList(i, std::move(list));
    }
  }
}

namespace {
Part PartOf(MicaTensor* t, const MicaFrame& frame) {
  if (!t) return {};
  const MicaWrapper* const w = Opened(t, frame);
  if (!w) return {Tensor::Borrow(t), false, t->dl.ndim};
  return {Tensor::Borrow(w->value), w->hidden != 0, t->dl.ndim};
}
}  // namespace

void Call::Open(int64_t i) {
  MicaTensor* const t = given_[i].u.tensor;
  const MicaWrapper* const w = Opened(t, frame());
  Opening& o = openings_[static_cast<size_t>(i)] = {w ? w->value : t, w && w->hidden};
  values_[static_cast<size_t>(i)].u.tensor = o.value;
}

void Call::Promote(int64_t i) {
  batched::Promote(op_, given_[i].u.tensor, frame());
  for (int64_t j = 0; j < size(); ++j)  // views of it among them
    if (IsTensor(j)) Open(j);
}

Part Call::PartAt(int64_t i) const {
  if (!IsTensor(i)) return {};
  const Opening& o = openings_[static_cast<size_t>(i)];
  return {Tensor::Borrow(o.value), o.batched, given_[i].u.tensor->dl.ndim};
}

std::vector<Part> Call::PartsAt(int64_t i) const {
  std::vector<Part> parts;
  if (!IsTensors(i)) return parts;
  const MicaTensorSpan list = given_[i].u.tensors;
  for (int64_t j = 0; j < list.size; ++j) parts.push_back(PartOf(list.data[j], frame()));
  return parts;
}

void Call::Set(int64_t i, Tensor t) {
  MicaValue& v = values_[static_cast<size_t>(i)];
  v.tag = t.defined() ? MICA_VALUE_TENSOR : MICA_VALUE_NONE;
  v.u.tensor = t.get();
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

void CallBoxed(const Op& op, const MicaValue* args, int64_t n, MicaValue* results) {
  layer::Check(plugin::Host()->op_call_boxed(op.handle, args, n, results, op.info->num_results));
}

bool Call::Run(const Op& other, const MicaValue* args, int64_t n, const Then& then) {
  CallBoxed(other, args, n, results_);
  layer::ReplaceResults(*op_.info, results_, [&](Tensor t) {
    if (!t.defined()) return t;
    if (then) t = then(std::move(t));
    // A result that an option leaves out is empty, without a batch.
    const bool left_out = t.numel() == 0 && (t.ndim() == 0 || t.sizes()[0] != batch());
    return Wrapped(t, frame(), left_out ? 0 : 1);
  });
  return true;
}

bool Call::Return(Tensor result, int i) {
  results_[i] = Given(Wrapped(result, frame()));
  return true;
}

bool Call::ReturnView(Tensor result) {
  results_[0] = Given(Wrapped(result, frame(), 1, given_[0].u.tensor));
  return true;
}

}  // namespace mica::batched
