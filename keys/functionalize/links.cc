// Wrappers and what stands behind them: how a value follows its base's generations.
#include "keys/functionalize/functional.h"
#include "mica/ops/_keep_history.h"
#include "mica/ops/clone.h"
#include "mica/ops/view_copy.h"
#include "tensor/shape.h"

namespace mica::functionalize {
namespace {

// A storage of its own over the same memory: nobody else's versions count there.
Storage OwnStorage(const Tensor& value) {
  StorageImpl* shared = value.impl()->storage;
  shared->Retain();
  return Storage::FromMemory(
      shared->data(), shared->nbytes(), value.device(),
      [](void* context) { static_cast<StorageImpl*>(context)->Release(); }, shared);
}

void SetStorage(const Tensor& wrapper, StorageImpl* storage, const Place& place) {
  TensorImpl& impl = *wrapper.impl();
  impl.MoveTo(storage);
  const auto start = reinterpret_cast<uintptr_t>(storage->data());
  impl.dl.data = reinterpret_cast<void*>(start + static_cast<uintptr_t>(place.offset * wrapper.itemsize()));
  impl.SetSizesStrides(place.sizes, place.strides);
}

bool ReadsStrides(std::string_view name) {
  return name == "mica::view" || name == "mica::view.dtype" || name == "mica::view_as_complex";
}

}  // namespace

KeptArguments::KeptArguments(const Operator& op, const MicaValue* args, int64_t n) : values_(args, args + n) {
  values_[0] = {};
  for (MicaValue& v : values_) {
    const bool plain = v.tag == MICA_VALUE_NONE || v.tag == MICA_VALUE_INT || v.tag == MICA_VALUE_BOOL ||
                       v.tag == MICA_VALUE_FLOAT || v.tag == MICA_VALUE_DTYPE;
    if (v.tag == MICA_VALUE_INTS) {
      ints_.push_back(std::make_unique<Dims>(v.u.ints.data, v.u.ints.data + v.u.ints.size));
      v.u.ints = {ints_.back()->data(), v.u.ints.size};
    } else {
      MICA_CHECK_IMPLEMENTED(plain || &v == values_.data(), "The view operator ", op.spec().name,
                             " has an argument of a type that functionalize cannot keep (", op.spec().schema,
                             "); call the operator on a clone.");
    }
  }
}

bool Link::Ends() const {
  return !from || (op->spec().flags & kNotDifferentiable) || RealOf(place.dtype) != RealOf(from->place.dtype);
}

bool Link::Detached() const {
  const Link* link = this;
  while (!link->Ends()) link = link->from.get();
  return link->from != nullptr;
}

bool RequiresGradHere(const Tensor& t) {
  return t.defined() && (t.requires_grad() ||
                         (t.is_view() && t.impl()->extra->view_base->has_flag(tensor_flags::kRequiresGrad)));
}
// In the parent, or a level around it.
bool RequiresGrad(const Tensor& t) {
  return RequiresGradHere(t) || (frames::IsWrapper(t) && RequiresGrad(frames::WrapperOf(t).value));
}

Tensor KeepHistory(const Tensor& of, const Tensor& values, bool moves) {
  const Recorded recorded;
  return ::mica::ops::op::_keep_history::call(of, values, moves);
}

LinkRef LinkOf(const Tensor& wrapper) {
  return std::static_pointer_cast<Link>(frames::WrapperOf(wrapper).opaque);
}

void SetLink(const Tensor& wrapper, LinkRef link) {
  frames::Wrapper& w = frames::WrapperOf(wrapper);
  if (wrapper.impl()->sizes() != IntSpan(link->place.sizes) ||
      wrapper.impl()->strides() != IntSpan(link->place.strides) ||
      wrapper.storage_offset() != link->place.offset) {
    SetStorage(wrapper, wrapper.impl()->storage, link->place);
  }
  w.value = link->value;
  w.opaque = std::move(link);
}

Tensor LiftRoot(Tensor value, const frames::Frame& frame) { return LiftAs(std::move(value), nullptr, frame); }

Tensor LiftAs(Tensor value, const Place* shown, const frames::Frame& frame) {
  auto link = std::make_shared<Link>();
  link->base = std::make_shared<Base>();
  link->base->first = value;
  link->base->copies = LevelOf(frame) && LevelOf(frame)->remove_views();
  link->place = Place::Of(value);
  if (shown && shown->sizes == link->place.sizes && shown->dtype == link->place.dtype &&
      (shown->offset + ExtentOf(*shown)) * value.itemsize() <= value.impl()->storage->nbytes())
    link->place = *shown;
  link->value = value;
  Tensor wrapper = frames::Wrap(std::move(value), frame);
  SetStorage(wrapper, OwnStorage(link->value).get(), link->place);
  frames::WrapperOf(wrapper).opaque = std::move(link);
  return wrapper;
}

Tensor WrapLink(const Tensor& self, LinkRef link, const frames::Frame& frame, bool view) {
  Tensor wrapper = frames::Wrap(link->value, frame, view ? self : Tensor());
  SetStorage(wrapper, self.impl()->storage, link->place);
  frames::WrapperOf(wrapper).opaque = std::move(link);
  return wrapper;
}

const Operator* CopyForm(const Operator& view) {
  const std::string_view name = view.name();
  const size_t dot = name.find('.');
  const std::string base(name.substr(0, dot));
  return FindOperator(base + "_copy" + (dot == name.npos ? "" : std::string(name.substr(dot))));
}

Tensor Replay(const Link& link, const Tensor& from, bool copies) {
  const std::string_view name = link.op->name();
  if (name == "mica::as_strided") {
    const bool original = from.is_same(link.base->first);
    return ReadPlace(from, link.from->place, link.place, original, copies);
  }
  const Operator* op = copies ? CopyForm(*link.op) : link.op;
  const bool same_strides = from.strides() == IntSpan(link.from->place.strides);
  if (name == "mica::_reshape_alias" && (copies || !same_strides))
    return ::mica::ops::op::view_copy::call(from, link.place.sizes);
  Tensor ordered;
  if (!same_strides && ReadsStrides(name))
    ordered = ::mica::ops::op::clone::call(from, MemoryFormat::kContiguous);
  std::vector<MicaValue> args = link.args.values();
  args[0] = AbiType<const Tensor&>::Box(ordered.defined() ? ordered.impl() : from.impl());
  MicaValue made[1];
  (op ? op : link.op)->CallBoxed(args.data(), static_cast<int64_t>(args.size()), made);
  return TakeTensor(made[0]);
}

Tensor ReplayAll(const Link& link, const Tensor& base) {
  return link.from ? Replay(link, ReplayAll(*link.from, base), false) : base;
}

Tensor Value(const LinkRef& link) {
  if (link->generation == link->base->generation) return link->value;
  MICA_INTERNAL(link->from, "a base has a value of another generation.");
  const Tensor from = Value(link->from);
  const Recorded recorded;
  Tensor value = Replay(*link, from, link->base->copies);
  if (link->Ends() && RequiresGrad(link->value)) value = KeepHistory(link->value, value, false);
  link->value = std::move(value);
  link->generation = link->base->generation;
  return link->value;
}

Tensor ValueOf(const Tensor& t, const frames::Frame& frame) {
  frames::Wrapper* w = t.defined() ? frames::Own(t, frame) : nullptr;
  if (!w) return t;
  w->value = Value(LinkOf(t));
  return w->value;
}

LinkRef LinkAt(const LinkRef& of, Place place) {
  // as_strided names places in the storage, whatever it is called on: the outermost link of the
  // dtype has most of it.
  LinkRef whole = of;
  while (whole->from && whole->from->place.dtype == of->place.dtype &&
         !(whole->op->spec().flags & kNotDifferentiable))
    whole = whole->from;
  auto link = std::make_shared<Link>();
  link->base = of->base;
  link->from = std::move(whole);
  link->op = &GetOperator("mica::as_strided");
  link->place = std::move(place);
  link->generation = -1;
  return link;
}

}  // namespace mica::functionalize
