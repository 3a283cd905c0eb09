// What stands in the place of a write: the checks that it would make, then a new value for
// the base.
//
// Note [Writes without gradients]
// A write under no_grad changes values and leaves the history as it was. The new value of the
// base was computed without one; _keep_history gives it the history of the value before. A
// detached view has a history of its own, as if it were a base: it ends the way of a recorded
// write, whose values go on to what it is detached of, without their history.
#include "keys/functionalize/functional.h"

namespace mica::functionalize {
namespace {

// What Autograd would see of the wrapper: the first value, or a view of it.
Tensor Probe(const Tensor& wrapper) {
  const LinkRef link = LinkOf(wrapper);
  const Tensor& first = link->base->first;
  if (!link->from) return first;
  const Dims none = {0}, one = {1};
  const bool detached = link->Detached();
  Tensor probe = layer::Taken(layer::Table()->tensor_view(first.get(), Ints(none), Ints(one), 0,
                                                          static_cast<int32_t>(wrapper.dtype()), detached));
  const MicaTensorDetails details = DetailsOf(wrapper);
  if (details.base && !detached)
    layer::Check(layer::Table()->set_view_creation(probe.get(), details.view_creation));
  return probe;
}

// Without a history.
Tensor Detach(const Tensor& t, bool copies) {
  static const Function<Tensor(Tensor)> detach("mica::detach"), detach_copy("mica::detach_copy");
  return (copies ? detach_copy : detach)(t);
}

}  // namespace

void CheckRecorded(const OperatorRef& op, const char* name, const MicaValue* args, int64_t n,
                   uint64_t written, const MicaFrame& frame) {
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    if ((written >> i) & 1)
      layer::Check(layer::Table()->check_writable(op.handle, LinkOf(t)->base->first.get()));
  });
  bool recorded = false;
  if (layer::Thread().grad_enabled)
    ForEachTensor(args, n, [&](const Tensor& t, int64_t) {
      recorded = recorded || RequiresGradHere(ValueOf(t, frame));
    });
  if (!recorded) return;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    if ((written >> i) & 1)
      layer::Check(layer::Table()->check_recorded_write(op.handle, name, Probe(t).get()));
  });
}

void Write(const OperatorRef& op, const Tensor& wrapper, Tensor value, const MicaFrame& frame) {
  const LinkRef link = LinkOf(wrapper);
  Base& base = *link->base;
  MICA_CHECK_IMPLEMENTED(!base.shares, "Operator ", op.info->name, " writes an input of functionalize (",
                         TextOf(wrapper),
                         ") that shares memory with another input, which would not see the write. Give the "
                         "function one of them and make the other inside, as a view.");
  static_cast<void>(Value(link));
  bool recorded = layer::Thread().grad_enabled != 0;
  const Tensor own = recorded ? value : Tensor();  // with its history
  bool crossed = false;
  LinkRef at = link;
  for (Tensor whole = std::move(value);; at = at->from) {
    if (at->Ends()) {
      if (crossed) whole = Detach(whole, base.copies);
      if (!recorded && RequiresGrad(at->value)) whole = KeepHistory(at->value, whole, !crossed);
      at->value = whole;
      at->generation = base.generation + 1;
      if (!at->from) break;
      crossed = true;
      recorded = false;
    }
    whole = Inverse(*at, Value(at->from), whole);
  }
  ++base.generation;
  if (own.defined()) {
    link->value = own;
    link->generation = base.generation;
  }
  base.written = true;
  base.recorded = base.recorded || recorded;
  static_cast<void>(ValueOf(wrapper, frame));
  layer::Table()->mark_written(op.handle, wrapper.get());
}

void Resize(const OperatorRef& op, const Tensor& wrapper, IntSpan sizes, IntSpan strides,
            const MicaFrame& frame) {
  static const Function<Tensor(formula::TensorSpan, int64_t)> cat("mica::cat");
  static const Function<Tensor(Tensor, IntSpan, IntSpan, std::optional<int64_t>)> as_strided(
      "mica::as_strided");
  const LinkRef link = LinkOf(wrapper);
  const MicaTensorDetails details = DetailsOf(wrapper);
  const Place wanted{formula::Own(sizes), formula::Own(strides), details.offset, wrapper.dtype()};
  const LinkRef within = LinkAt(link, wanted);
  const Place& whole = within->from->place;
  if (ExtentOf(wanted) == 0 ||
      (wanted.offset >= whole.offset && wanted.offset + ExtentOf(wanted) <= whole.offset + ExtentOf(whole))) {
    static_cast<void>(Value(within));
    SetLink(wrapper, within, frame);
    return;
  }
  MICA_CHECK(!link->from && details.holders == 1, "Operator ", op.info->name, " would give a tensor (",
             TextOf(wrapper), ") the shape ", formula::Show(sizes),
             ", for which its memory must grow, and views or a transform share that; resize a clone.");
  const Tensor row = RowOf(link->value, link->place, link->base->copies);
  const Tensor both[2] = {row, Zeros(ExtentOf(wanted) - row.numel(), row)};
  const Tensor longer = cat(formula::TensorSpan(both, 2), 0);
  const Tensor value = as_strided(longer, sizes, strides, 0);
  const Tensor fresh = LiftRoot(value, frame);  // for its storage
  link->place = LinkOf(fresh)->place;
  link->value = value;
  link->generation = ++link->base->generation;
  link->base->written = link->base->resized = true;
  layer::Check(
      layer::Table()->show_memory(wrapper.get(), fresh.get(), Ints(sizes), Ints(strides), OffsetOf(fresh)));
  static_cast<void>(ValueOf(wrapper, frame));
}

}  // namespace mica::functionalize
