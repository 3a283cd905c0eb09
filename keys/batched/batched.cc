// The kind, and the way of a call: nothing batched goes straight to the parent; in-place
// and out= forms without a rule of their own go through the functional form; the rest has
// a rule, or the loop.
#include "keys/batched/batched.h"

#include <typeinfo>

#include "dispatcher/calls/boxed_results.h"
#include "mica/ops/_local_scalar_dense.h"
#include "mica/ops/all.h"
#include "mica/ops/copy_.h"
#include "mica/ops/eq.h"
#include "mica/ops/select.h"
#include "tensor/shape.h"

namespace mica::batched {
namespace {

using frames::ForEachTensor;
using frames::Frame;

bool IsConstant(const Tensor& t, const frames::Wrapper& w) {
  Frame named;  // carries the tag alone
  named.tag = w.tag;
  return !IsBatched(t, named);
}

bool AnyBatched(const MicaValue* args, int64_t n, const Frame& frame) {
  bool any = false;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t) { any = any || IsBatched(t, frame); });
  return any;
}

// In-place and out=: what the functional form returns is copied. False: there is none.
bool RunThroughFunctional(const Operator& op, const MicaValue* args, int64_t n) {
  const OperatorSpec& spec = op.spec();
  const Operator* functional = spec.functional_name ? FindOperator(spec.functional_name) : nullptr;
  if (!functional || functional == &op) return false;
  ResultRoom results(*functional);
  const auto taken = static_cast<int64_t>(functional->schema().arguments.size());
  functional->CallBoxed(args, taken, results);
  size_t next = 0;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    if (!((spec.written_args >> i) & 1)) return;
    const Tensor value = TakeTensor(results[next++]);
    if (!(t.sizes() == value.sizes())) {
      const frames::LeaveFrame left;
      RefuseAsTheLoop(op, args, n, left.frame());
    }
    MICA_CHECK_IMPLEMENTED(t.sizes() == value.sizes(), "Operator ", spec.name, " would resize a tensor (",
                           t.ToString(), ") to ", ShapeText(value.sizes()),
                           " under vmap, which cannot; call the functional form.");
    ::mica::ops::op::copy_::call(t, value, false);
  });
  return true;
}

// The call of one example, as its meta function checks it, for its wrappers have one example's ranks and
// sizes: in the batched call the batch could stand in for a dimension that the examples lack.
void CheckExample(const OperatorSpec& spec, const MicaValue* args) {
  if (!spec.meta || spec.form != OpForm::kFunctional) return;
  MetaResult unused;
  spec.meta(spec, args, unused);
}

// Errors that say what is wrong with the arguments; not what a hook or a handler in Python raised,
// which comes as a class of its own.
bool IsOfTheCaller(const Error& error) {
  const ErrorKind kind = error.kind();
  return typeid(error) == typeid(Error) && (kind == ErrorKind::kRuntime || kind == ErrorKind::kValue ||
                                            kind == ErrorKind::kType || kind == ErrorKind::kIndex);
}

[[noreturn]] void Refuse(const Operator& op) {
  MICA_THROW(kRuntime, "Operator ", op.spec().name,
             " returns a shape that depends on the values, and under vmap each example has its own values. "
             "Use a form of fixed shape (mica.where with a mask), or call it outside of vmap.");
}

}  // namespace

void BringKind(Scope& scope) {
  scope.BringKind({.name = "vmap",
                   .after_escape = "Return it from the function, or keep what vmap returned instead.",
                   .is_constant = &IsConstant,
                   .settle = &SettleLate,
                   .moves_memory = true});
}

bool IsBatched(const Tensor& t, const Frame& frame) {
  const frames::Wrapper* w = frames::Own(t, frame);
  if (!w) return false;
  if (w->hidden || !t.is_view()) return w->hidden != 0;
  const frames::Wrapper* root = frames::Own(Tensor(t.view_base()), frame);
  return root && root->hidden;
}

// What an operator reads to check its arguments ("the matrix is finite") mostly is the same
// for all examples, and then each has its own answer. The binding's item() does not come here.
void RunRead(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
             MicaValue* results) {
  if (!AnyBatched(args, n, *frames::Current())) return frames::CallInParent(op, args, n, results);
  Call call(op, args, n, results);
  const Tensor& value = call.PartAt(0).value;
  bool same = call.batch() > 0;
  if (same) {
    call.Set(0, ::mica::ops::op::select_int::call(value, 0, 0));
    const Tensor equal = ::mica::ops::op::eq_Tensor::call(value, Tensor::Ref(call[0].u.tensor));
    same = ::mica::ops::op::_local_scalar_dense::call(::mica::ops::op::all::call(equal)).ToBool();
  }
  if (!same) frames::CheckReadable(Tensor::Ref(args[0].u.tensor), "what reads one element");
  call.Run();
}

void RunBatched(const BoxedKernel&, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                MicaValue* results) {
  const Frame& frame = *frames::Current();
  if (!AnyBatched(args, n, frame)) return frames::CallInParent(op, args, n, results);
  const RuleEntry entry = RuleOf(op);
  if (entry.source == Source::kRefused) Refuse(op);
  if (op.spec().form != OpForm::kFunctional && entry.rule != &Pointwise && entry.rule != &BecomeView &&
      entry.rule != &Resize && RunThroughFunctional(op, args, n))
    return;
  if (entry.rule) {
    CheckExample(op.spec(), args);
    Call call(op, args, n, results);
    try {
      if (entry.rule(call)) return;
    } catch (const Error& error) {
      if (IsOfTheCaller(error)) RefuseAsTheLoop(op, args, n, call.frame());
      throw;
    }
  }
  const OperatorSpec& spec = op.spec();
  if (entry.source != Source::kLoop && spec.composite && spec.adapters)
    return spec.adapters->call_slot({spec.composite, nullptr}, keys, args, results);
  Loop(op, args, n, results);
}

}  // namespace mica::batched
