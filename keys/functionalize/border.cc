// What goes in and comes out: inputs become wrappers, their updates are written at the end.
#include "mica/keys/functionalize/functional.h"
#include "mica/ops/_become_view_.h"
#include "mica/ops/copy_.h"
#include "mica/ops/resize_.h"
#include "mica/tensor/shape.h"

namespace mica::functionalize {

namespace {
// In the parent, which frames::Readable made current.
Tensor ReadNow(const Tensor& wrapper) { return Value(LinkOf(wrapper)); }
}  // namespace

int FunctionalizeKind() {
  static const int kind = [] {
    frames::Kind k;
    k.name = "functionalize";
    k.after_escape = "Return it from the function.";
    k.lift = &Lift;
    k.read = &ReadNow;
    return frames::RegisterKind(k);
  }();
  return kind;
}

bool RemovesViews(const frames::Frame& frame) {
  return frame.payload && static_cast<const Level*>(frame.payload)->remove_views();
}

Level::Level(bool remove_views) : remove_views_(remove_views), scope_(FunctionalizeKind(), this) {}

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
    Tensor wrapper = functionalize::Lift(t, scope_.frame());
    const LinkRef root = LinkOf(wrapper);
    for (const Input& i : inputs_) {
      if (GetOverlap(i.tensor, t) == Overlap::kNo) continue;
      i.root->base->shares = root->base->shares = true;
    }
    inputs_.push_back({t, wrapper, root});
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
    const bool changed = i.root->base->written || LinkOf(i.wrapper) != i.root;
    updates.push_back(changed ? ValueOf(i.wrapper, left.frame()) : Tensor());
  }
  return updates;
}

void Level::Apply() {
  const frames::LeaveFrame left;
  for (size_t k = 0; k < inputs_.size(); ++k) {
    const Input& i = inputs_[k];
    const Base& base = *i.root->base;
    if (InputOf(&base) != &i) continue;  // the same tensor again
    const GradModeGuard grad(base.recorded);
    if (base.resized) ::mica::ops::op::resize_::call(i.tensor, i.root->place.sizes, std::nullopt);
    if (base.written) ::mica::ops::op::copy_::call(i.tensor, i.root->value, false);
    const LinkRef link = LinkOf(i.wrapper);
    if (link == i.root) continue;
    const Tensor view = ReplayAll(*link, i.tensor);
    ::mica::ops::op::_become_view_::call(i.tensor, view, "functionalize");
  }
  applied_ = true;
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
