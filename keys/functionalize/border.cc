// What goes in and comes out: inputs become wrappers, their updates are written at the end.
#include "keys/functionalize/functional.h"
#include "mica/ops/_become_view_.h"
#include "mica/ops/copy_.h"
#include "mica/ops/resize_.h"
#include "tensor/shape.h"

namespace mica::functionalize {

namespace {
Tensor ReadNow(const Tensor& t, const frames::Frame& frame) {
  if (frames::Own(t, frame)) return ValueOf(t, frame);
  const Tensor known = LevelOf(frame) && t.defined() ? LevelOf(frame)->Find(t) : Tensor();
  return known.defined() ? ValueOf(known, frame) : t;
}

int g_kind = -1;
}  // namespace

void BringKind(Scope& scope) {
  frames::Kind k;
  k.name = "functionalize";
  k.after_escape = "Return it from the function.";
  k.lift = &LiftRoot;
  k.read = &ReadNow;
  k.writes_captured = true;
  g_kind = scope.BringKind(k);
}

Level::Level(bool remove_views) : remove_views_(remove_views), scope_(g_kind, this) {}

std::vector<Tensor> Level::Lift(TensorSpan inputs) {
  std::vector<Tensor> wrappers;
  for (const Tensor& t : inputs) {
    const Input* known = nullptr;
    for (const Input& i : inputs_)
      if (i.tensor.is_same(t)) known = &i;
    if (known) {
      wrappers.push_back(known->wrapper);
      inputs_.push_back(*known);
      continue;
    }
    Tensor wrapper = LiftRoot(t, scope_.frame());
    const LinkRef root = LinkOf(wrapper);
    for (const Input& i : inputs_) {
      if (GetOverlap(i.tensor, t) == Overlap::kNo) continue;
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
  const frames::LeaveFrame left;
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
    if (i.tensor.is_same(t)) return i.wrapper;
    if (i.tensor.impl()->storage != t.impl()->storage) continue;
    MICA_CHECK_IMPLEMENTED(t.dtype() == i.root->place.dtype, "A captured tensor (", t.ToString(),
                           ") is a view of another dtype of a tensor (", i.tensor.ToString(),
                           ") that functionalize writes; make the view inside of the function.");
    LinkRef part = LinkAt(i.root, Place::Of(t));
    part->value = Replay(*part, i.root->value, i.root->base->copies);
    part->generation = part->base->generation;
    return WrapLink(i.wrapper, std::move(part), scope_.frame(), true);
  }
  return Tensor();
}

void Level::Capture(const Tensor& t) {
  if (Find(t).defined()) return;
  for (Input& i : inputs_) {  // an alias of an input that nobody wrote until now
    if (i.tensor.impl()->storage != t.impl()->storage) continue;
    i.root->base->written = true;
    return;
  }
  const Tensor whole = t.is_view() ? t.view_base() : t;
  const Tensor wrapper = LiftRoot(whole, scope_.frame());
  inputs_.push_back({whole, wrapper, LinkOf(wrapper), true});
}

void Level::Apply(bool inputs) {
  const frames::LeaveFrame left;
  for (size_t k = 0; k < inputs_.size(); ++k) {
    const Input& i = inputs_[k];
    const Base& base = *i.root->base;
    if (!inputs && !i.captured) continue;
    if (InputOf(&base) != &i) continue;  // the same tensor again
    const GradModeGuard grad(base.recorded);
    if (base.resized) ::mica::ops::op::resize_::call(i.tensor, i.root->place.sizes, std::nullopt);
    if (base.written) ::mica::ops::op::copy_::call(i.tensor, i.root->value, false);
    const LinkRef link = LinkOf(i.wrapper);
    if (link == i.root) continue;
    const Tensor view = ReplayAll(*link, i.tensor);
    ::mica::ops::op::_become_view_::call(i.tensor, view, "functionalize");
  }
  applied_ = inputs;
}

Tensor Level::Result(const Tensor& t) {
  if (!t.defined() || !frames::Own(t, scope_.frame())) return t;
  const frames::LeaveFrame left;
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
