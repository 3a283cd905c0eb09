// What goes in and comes out: inputs become wrappers, their updates are written at the end.
#include <atomic>

#include "keys/functionalize/functional.h"

namespace mica::functionalize {

namespace {
std::atomic<int32_t> g_kind{-1};

Tensor ReadNow(const Tensor& t, const MicaFrame& frame) {
  if (layer::OwnOf(t, frame)) return ValueOf(t, frame);
  const Tensor known = LevelOf(frame) && t.defined() ? LevelOf(frame)->Find(t) : Tensor();
  return known.defined() ? ValueOf(known, frame) : t;
}

// `Tensor f(const Tensor&, const MicaFrame&)` as a function of the kind's record.
template <auto kFunction>
MicaTensorResult OfKind(void*, MicaTensor* t, const MicaFrame* frame) {
  MicaTensorResult r{nullptr, nullptr};
  r.status = plugin::CatchAll([&] { r.value = kFunction(Tensor::Borrow(t), *frame).release(); });
  return r;
}
}  // namespace

MicaFrameKindRecord KindRecord() {
  MicaFrameKindRecord k{};
  k.struct_size = sizeof(k);
  k.name = "functionalize";
  k.after_escape = "Return it from the function.";
  k.flags = MICA_KIND_WRITES_CAPTURED;
  k.lift = &OfKind<&LiftRoot>;
  k.read = &OfKind<&ReadNow>;
  return k;
}
void SetKind(int32_t kind) { g_kind.store(kind); }

Level::Level(bool remove_views) : remove_views_(remove_views) {
  layer::Check(layer::Table()->frame_enter(g_kind.load(), this, 0, &scope_));
  frame_ = layer::CurrentFrame();
}
Level::~Level() {
  try {
    layer::Check(layer::Table()->frame_exit(&scope_));
  } catch (const plugin::Error&) {  // left out of order, which the binding does not do
  }
}

std::vector<Tensor> Level::Lift(MicaTensorSpan inputs) {
  std::vector<Tensor> wrappers;
  for (int64_t k = 0; k < inputs.size; ++k) {
    const Tensor t = Tensor::Borrow(inputs.data[k]);
    const Input* known = nullptr;
    for (const Input& i : inputs_)
      if (IsSame(i.tensor, t)) known = &i;
    if (known) {
      wrappers.push_back(known->wrapper);
      inputs_.push_back(Input(*known));
      continue;
    }
    Tensor wrapper = LiftRoot(t, frame_);
    const LinkRef root = LinkOf(wrapper);
    for (const Input& i : inputs_) {
      if (layer::Table()->overlap(i.tensor.get(), t.get()) == MICA_OVERLAP_NONE) continue;
      i.root->base->shares = root->base->shares = true;
    }
    inputs_.push_back({t, wrapper, root, false});
    wrappers.push_back(std::move(wrapper));
  }
  return wrappers;
}

const Level::Input* Level::InputOf(const Base* base) const {
  for (const Input& i : inputs_)
    if (i.root->base.get() == base) return &i;
  return nullptr;
}

std::vector<Tensor> Level::Updates() {
  const layer::LeaveFrame left;
  std::vector<Tensor> updates;
  for (const Input& i : inputs_) {
    if (i.captured) continue;
    const bool changed = i.root->base->written || LinkOf(i.wrapper) != i.root;
    updates.push_back(changed ? ValueOf(i.wrapper, left.frame()) : Tensor());
  }
  return updates;
}

Tensor Level::Find(const Tensor& t) const {
  for (const Input& i : inputs_) {
    if (!i.root->base->written && !i.captured) continue;
    if (IsSame(i.tensor, t)) return i.wrapper;
    if (!ShareStorage(i.tensor, t)) continue;
    MICA_CHECK_IMPLEMENTED(t.dtype() == i.root->place.dtype, "A captured tensor (", TextOf(t),
                           ") is a view of another dtype of a tensor (", TextOf(i.tensor),
                           ") that functionalize writes; make the view inside of the function.");
    LinkRef part = LinkAt(i.root, Place::Of(t));
    part->value = Replay(*part, i.root->value, i.root->base->copies);
    part->generation = part->base->generation;
    return WrapLink(i.wrapper, std::move(part), frame_, true);
  }
  return Tensor();
}

void Level::Capture(const Tensor& t) {
  if (Find(t).defined()) return;
  for (Input& i : inputs_) {  // an alias of an input that nobody wrote until now
    if (!ShareStorage(i.tensor, t)) continue;
    i.root->base->written = true;
    return;
  }
  MicaTensor* const base = DetailsOf(t).base;
  const Tensor whole = base ? Tensor::Borrow(base) : t;
  const Tensor wrapper = LiftRoot(whole, frame_);
  inputs_.push_back({whole, wrapper, LinkOf(wrapper), true});
}

void Level::Apply(bool inputs) {
  static const Function<void(Tensor, IntSpan, std::optional<MemoryFormat>)> resize("mica::resize_");
  static const Function<void(Tensor, Tensor, bool)> copy("mica::copy_");
  static const Function<void(Tensor, Tensor, std::string_view)> become_view("mica::_become_view_");
  const layer::LeaveFrame left;
  for (size_t k = 0; k < inputs_.size(); ++k) {
    const Input& i = inputs_[k];
    const Base& base = *i.root->base;
    if (!inputs && !i.captured) continue;
    if (InputOf(&base) != &i) continue;  // the same tensor again
    const GradMode grad(base.recorded);
    if (base.resized) resize(i.tensor, i.root->place.sizes, std::nullopt);
    if (base.written) copy(i.tensor, i.root->value, false);
    const LinkRef link = LinkOf(i.wrapper);
    if (link == i.root) continue;
    const Tensor view = ReplayAll(*link, i.tensor);
    become_view(i.tensor, view, "functionalize");
  }
  applied_ = inputs;
}

Tensor Level::Result(const Tensor& t) {
  if (!t.defined() || !layer::OwnOf(t, frame_)) return t;
  const layer::LeaveFrame left;
  const LinkRef link = LinkOf(t);
  const Tensor value = ValueOf(t, left.frame());
  const Input* input = applied_ ? InputOf(link->base.get()) : nullptr;
  if (!input || (!link->base->written && LinkOf(input->wrapper) == input->root)) return value;
  if (link == LinkOf(input->wrapper)) return input->tensor;
  if (remove_views_ || LinkOf(input->wrapper) != input->root) return value;
  const Recorded recorded;
  return ReplayAll(*link, input->tensor);
}

}  // namespace mica::functionalize
