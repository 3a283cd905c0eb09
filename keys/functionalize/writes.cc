// What stands in the place of a write: the checks that it would make, then a new value for
// the base.
//
// Note [Writes without gradients]
// A write under no_grad changes values and leaves the history as it was. The new value of the
// base was computed without one; _keep_history gives it the history of the value before. A
// detached view has a history of its own, as if it were a base: it ends the way of a recorded
// write, whose values go on to what it is detached of, without their history.
#include "dispatcher/calls/given_output.h"
#include "dispatcher/calls/structured.h"
#include "dispatcher/calls/write_log.h"
#include "dispatcher/layers/autograd_interface.h"
#include "keys/functionalize/functional.h"
#include "mica/ops/as_strided.h"
#include "mica/ops/cat.h"
#include "mica/ops/detach.h"
#include "mica/ops/detach_copy.h"
#include "mica/ops/new_zeros.h"
#include "tensor/shape.h"

namespace mica::functionalize {
namespace {

using frames::ForEachTensor;

// What Autograd would see of the wrapper: the first value, or a view of it.
Tensor Probe(const Tensor& wrapper) {
  const LinkRef link = LinkOf(wrapper);
  const Tensor& first = link->base->first;
  if (!link->from) return first;
  const Dims none = {0}, one = {1};
  const bool detached = link->Detached();
  Tensor probe = MakeViewAs(first, none, one, 0, wrapper.dtype(), detached);
  if (wrapper.is_view() && !detached)
    probe.impl()->EnsureExtra().view_creation = wrapper.impl()->extra->view_creation;
  return probe;
}

}  // namespace

void CheckRecorded(const Operator& op, const char* name, const MicaValue* args, int64_t n, uint64_t written,
                   const frames::Frame& frame) {
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    if ((written >> i) & 1) CheckWritable(LinkOf(t)->base->first, op.spec());
  });
  bool recorded = false;
  if (CurrentThread().grad_enabled)
    ForEachTensor(args, n, [&](const Tensor& t, int64_t) {
      recorded = recorded || RequiresGradHere(ValueOf(t, frame));
    });
  if (!recorded) return;
  if (op.spec().form == OpForm::kOut) RefuseRecordedOut(op.spec());
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    if ((written >> i) & 1) GetAutogradInterface().CheckInplace(Probe(t), name);
  });
}

void Write(const Operator& op, const Tensor& wrapper, Tensor value, const frames::Frame& frame) {
  const LinkRef link = LinkOf(wrapper);
  Base& base = *link->base;
  MICA_CHECK_IMPLEMENTED(!base.shares, "Operator ", op.spec().name, " writes an input of functionalize (",
                         wrapper.ToString(),
                         ") that shares memory with another input, which would not see the write. Give the "
                         "function one of them and make the other inside, as a view.");
  static_cast<void>(Value(link));
  bool recorded = CurrentThread().grad_enabled;
  const Tensor own = recorded ? value : Tensor();  // with its history
  bool crossed = false;
  LinkRef at = link;
  for (Tensor whole = std::move(value);; at = at->from) {
    if (at->Ends()) {
      if (crossed)
        whole =
            base.copies ? ::mica::ops::op::detach_copy::call(whole) : ::mica::ops::op::detach::call(whole);
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
  wrapper.impl()->storage->BumpVersion();
  LogWrite(wrapper, op.spec().name);
}

void Resize(const Operator& op, const Tensor& wrapper, IntSpan sizes, IntSpan strides,
            const frames::Frame& frame) {
  const LinkRef link = LinkOf(wrapper);
  const Place wanted{ToDims(sizes), ToDims(strides), wrapper.storage_offset(), wrapper.dtype()};
  const LinkRef within = LinkAt(link, wanted);
  const Place& whole = within->from->place;
  if (ExtentOf(wanted) == 0 ||
      (wanted.offset >= whole.offset && wanted.offset + ExtentOf(wanted) <= whole.offset + ExtentOf(whole))) {
    static_cast<void>(Value(within));
    SetLink(wrapper, within);
    return;
  }
  MICA_CHECK(!link->from && wrapper.impl()->storage->use_count() == 1, "Operator ", op.spec().name,
             " would give a tensor (", wrapper.ToString(), ") the shape ", ShapeText(sizes),
             ", for which its memory must grow, and views or a transform share that; resize a clone.");
  const Tensor row = RowOf(link->value, link->place, link->base->copies);
  const Tensor more = ::mica::ops::op::new_zeros::call(
      row, Dims{ExtentOf(wanted) - row.numel()}, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  const Tensor both[2] = {row, more};
  const Tensor value = ::mica::ops::op::as_strided::call(::mica::ops::op::cat::call(TensorSpan(both, 2), 0),
                                                         sizes, strides, 0);
  const Tensor fresh = LiftRoot(value, frame);  // for its storage
  link->place = LinkOf(fresh)->place;
  link->value = value;
  link->generation = ++link->base->generation;
  link->base->written = link->base->resized = true;
  wrapper.impl()->MoveTo(fresh.impl()->storage);
  wrapper.impl()->dl.data = fresh.data();
  wrapper.impl()->SetSizesStrides(sizes, strides);
  static_cast<void>(ValueOf(wrapper, frame));
}

}  // namespace mica::functionalize
