// Wrappers and what stands behind them: how a value follows its base's generations.
#include <string>

#include "keys/functionalize/functional.h"

namespace mica::functionalize {
namespace {

void SetPlace(const Tensor& wrapper, const Tensor& of, const Place& place) {
  layer::Check(layer::Table()->show_memory(wrapper.get(), of.get(), Ints(place.sizes), Ints(place.strides),
                                           place.offset));
}

// What a wrapper keeps of its link: a reference.
MicaPayload PayloadOf(const LinkRef& link) {
  MicaPayload payload{};
  payload.shared = link.get();
  return payload;
}
LinkRef LinkIn(const MicaWrapper& w) { return LinkRef(static_cast<Link*>(w.shared)); }

Tensor WrapWith(const LinkRef& link, const MicaFrame& frame, const Tensor& base) {
  const MicaPayload payload = PayloadOf(link);
  return layer::Taken(layer::Table()->wrap(link->value.get(), &frame, base.get(), &payload));
}

bool ReadsStrides(std::string_view name) {
  return name == "mica::view" || name == "mica::view.dtype" || name == "mica::view_as_complex";
}

}  // namespace

KeptArguments::KeptArguments(const OperatorRef& op, const MicaValue* args, int64_t n)
    : values_(args, args + n) {
  values_[0] = {};
  for (MicaValue& v : values_) {
    const bool plain = v.tag == MICA_VALUE_NONE || v.tag == MICA_VALUE_INT || v.tag == MICA_VALUE_BOOL ||
                       v.tag == MICA_VALUE_FLOAT || v.tag == MICA_VALUE_DTYPE;
    if (v.tag == MICA_VALUE_INTS) {
      ints_.push_back(std::make_unique<Dims>(v.u.ints.data, v.u.ints.data + v.u.ints.size));
      v.u.ints = {ints_.back()->data(), v.u.ints.size};
    } else {
      MICA_CHECK_IMPLEMENTED(plain || &v == values_.data(), "The view operator ", op.info->name,
                             " has an argument of a type that functionalize cannot keep (", op.info->schema,
                             "); call the operator on a clone.");
    }
  }
}

bool Link::Ends() const {
  return !from || op.has(MICA_OPERATOR_NOT_DIFFERENTIABLE) ||
         RealOf(place.dtype) != RealOf(from->place.dtype);
}

bool Link::Detached() const {
  const Link* link = this;
  while (!link->Ends()) link = link->from.get();
  return static_cast<bool>(link->from);
}

bool RequiresGradHere(const Tensor& t) {
  if (!t.defined()) return false;
  const MicaTensorDetails details = DetailsOf(t);
  return details.requires_grad || details.base_requires_grad;
}
// In the parent, or a level around it.
bool RequiresGrad(const Tensor& t) {
  if (RequiresGradHere(t)) return true;
  const MicaWrapper* const w = t.defined() ? layer::Table()->wrapper(t.get()) : nullptr;
  return w && RequiresGrad(*Lent(w->value));
}

Tensor KeepHistory(const Tensor& of, const Tensor& values, bool moves) {
  static const Function<Tensor(Tensor, Tensor, bool)> keep_history("mica::_keep_history");
  const Recorded recorded;
  return keep_history(of, values, moves);
}

Tensor Clone(const Tensor& t, std::optional<MemoryFormat> format) {
  static const Function<Tensor(Tensor, std::optional<MemoryFormat>)> clone("mica::clone");
  return clone(t, format);
}

LinkRef LinkOf(const Tensor& wrapper) { return LinkIn(*layer::Table()->wrapper(wrapper.get())); }

void SetLink(const Tensor& wrapper, LinkRef link, const MicaFrame& frame) {
  const Place& place = link->place;
  if (wrapper.sizes() != IntSpan(place.sizes) || wrapper.strides() != IntSpan(place.strides) ||
      OffsetOf(wrapper) != place.offset) {
    SetPlace(wrapper, wrapper, place);
  }
  layer::Check(layer::Table()->set_value(wrapper.get(), &frame, link->value.get()));
  const MicaPayload payload = PayloadOf(link);
  layer::Check(layer::Table()->set_payload(wrapper.get(), &frame, &payload));
}

Tensor LiftRoot(const Tensor& value, const MicaFrame& frame) { return LiftAs(value, nullptr, frame); }

Tensor LiftAs(const Tensor& value, const Place* shown, const MicaFrame& frame) {
  const LinkRef link(new Link);
  link->base = std::make_shared<Base>();
  link->base->first = value;
  link->base->copies = LevelOf(frame) && LevelOf(frame)->remove_views();
  const MicaTensorDetails details = DetailsOf(value);
  link->place = {formula::Own(value.sizes()), formula::Own(value.strides()), details.offset, value.dtype()};
  if (shown && shown->sizes == link->place.sizes && shown->dtype == link->place.dtype &&
      (shown->offset + ExtentOf(*shown)) * plugin::TensorRef(value.get()).itemsize() <= details.nbytes)
    link->place = *shown;
  link->value = value;
  Tensor wrapper = WrapWith(link, frame, Tensor());
  SetPlace(wrapper, Tensor(), link->place);
  return wrapper;
}

Tensor WrapLink(const Tensor& self, LinkRef link, const MicaFrame& frame, bool view) {
  Tensor wrapper = WrapWith(link, frame, view ? self : Tensor());
  SetPlace(wrapper, self, link->place);
  return wrapper;
}

OperatorRef CopyFormOr(const OperatorRef& view) {
  const std::string_view name = view.name();
  const size_t dot = name.find('.');
  std::string copy(name.substr(0, dot));
  copy += "_copy";
  if (dot != name.npos) copy += name.substr(dot);
  const OperatorRef found = OperatorRef::Find(copy.c_str());
  return found ? found : view;
}

Tensor Replay(const Link& link, const Tensor& from, bool copies) {
  static const Function<Tensor(Tensor, IntSpan)> view_copy("mica::view_copy");
  const std::string_view name = link.op.name();
  if (name == "mica::as_strided") {
    const bool original = IsSame(from, link.base->first);
    return ReadPlace(from, link.from->place, link.place, original, copies);
  }
  const bool same_strides = from.strides() == IntSpan(link.from->place.strides);
  if (name == "mica::_reshape_alias" && (copies || !same_strides)) return view_copy(from, link.place.sizes);
  Tensor ordered = from;
  if (!same_strides && ReadsStrides(name)) ordered = Clone(from, MemoryFormat::kContiguous);
  std::vector<MicaValue> args = link.args.values();
  args[0] = formula::Box(ordered);
  return (copies ? CopyFormOr(link.op) : link.op).CallForTensor(args);
}

Tensor ReplayAll(const Link& link, const Tensor& base) {
  return link.from ? Replay(link, ReplayAll(*link.from, base), false) : base;
}

Tensor Value(const LinkRef& link) {
  if (link->generation == link->base->generation) return link->value;
  MICA_FORMULA_CHECK_(MICA_ERROR_INTERNAL, link->from,
                      "Internal error: a base has a value of another generation.");
  const Tensor from = Value(link->from);
  const Recorded recorded;
  Tensor value = Replay(*link, from, link->base->copies);
  if (link->Ends() && RequiresGrad(link->value)) value = KeepHistory(link->value, value, false);
  link->value = std::move(value);
  link->generation = link->base->generation;
  return link->value;
}

Tensor ValueOf(const Tensor& t, const MicaFrame& frame) {
  const auto own = layer::OwnOf(t, frame);
  if (!own) return t;
  const Link& known = *static_cast<const Link*>(own->shared);
  if (known.generation == known.base->generation && known.value.get() == own->value) return known.value;
  const Tensor value = Value(LinkIn(*own));
  layer::Check(layer::Table()->set_value(t.get(), &frame, value.get()));
  return value;
}

LinkRef LinkAt(const LinkRef& of, Place place) {
  static const OperatorRef as_strided = OperatorRef::Find("mica::as_strided");
  // as_strided names places in the storage, whatever it is called on: the outermost link of the
  // dtype has most of it.
  LinkRef whole = of;
  while (whole->from && whole->from->place.dtype == of->place.dtype &&
         !whole->op.has(MICA_OPERATOR_NOT_DIFFERENTIABLE))
    whole = whole->from;
  LinkRef link(new Link);
  link->base = of->base;
  link->from = std::move(whole);
  link->op = as_strided;
  link->place = std::move(place);
  link->generation = -1;
  return link;
}

}  // namespace mica::functionalize
