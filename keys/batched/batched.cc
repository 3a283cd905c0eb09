// The kind, and the way of a call: nothing batched goes straight to the parent; in-place
// and out= forms without a rule of their own go through the functional form; the rest has
// a rule, or the loop.
#include "keys/batched/batched.h"
#include "keys/batched/ops.h"

namespace mica::batched {
namespace {

int32_t IsConstant(void*, MicaTensor* wrapper) {
  const int32_t hidden = layer::Table()->wrapper(wrapper)->hidden;
  if (hidden || !DetailsOf(wrapper).base) return !hidden;
  MicaFrame frame;
  layer::Table()->frame_of(wrapper, &frame);
  return !IsBatched(wrapper, frame);
}

bool AnyBatched(const layer::Call& call, const MicaFrame& frame) {
  bool any = false;
  call.ForEachTensor([&](MicaTensor* t, int64_t) { any = any || IsBatched(t, frame); });
  return any;
}

// In-place and out=: what the functional form returns is copied. False: there is none.
bool RunThroughFunctional(const Op& op, const layer::Call& call) {
  const Op* const functional = op.functional;
  if (!functional) return false;
  Results results(static_cast<size_t>(functional->info->num_results));
  CallBoxed(*functional, call.args(), functional->info->num_args, results.data());
  size_t next = 0;
  call.ForEachTensor([&](MicaTensor* raw, int64_t i) {
    if (!((op.info->written_args >> i) & 1)) return;
    const Tensor t = Tensor::Borrow(raw), value = formula::Unboxed<Tensor>::Take(results[next++]);
    if (!(t.sizes() == value.sizes())) {
      const layer::LeaveFrame left;
      RefuseAsTheLoop(op, call.args(), call.size(), left.frame());
    }
    MICA_CHECK_IMPLEMENTED(t.sizes() == value.sizes(), "Operator ", op.name(), " would resize a tensor (",
                           TextOf(t), ") to ", Show(value.sizes()),
                           " under vmap, which cannot; call the functional form.");
    ops::copy_(t, value, false);
  });
  return true;
}

// The call of one example, as its meta function checks it, for its wrappers have one example's ranks and
// sizes: in the batched call the batch could stand in for a dimension that the examples lack.
void CheckExample(const Op& op, const MicaValue* args, int64_t n) {
  if (!op.has(MICA_OPERATOR_META) || op.info->form != MICA_FORM_FUNCTIONAL) return;
  int32_t unused;
  layer::Check(layer::Table()->compute_dtype(op.handle, args, n, &unused));
}

// Errors that say what is wrong with the arguments; not what a hook or a handler in Python raised,
// which comes as a class of its own.
bool IsOfTheCaller(const plugin::Error& error) {
  if (error.status() && layer::Table()->has_own_class(error.status())) return false;
  return error.code == MICA_ERROR_RUNTIME || error.code == MICA_ERROR_VALUE ||
         error.code == MICA_ERROR_TYPE || error.code == MICA_ERROR_INDEX;
}

[[noreturn]] void Refuse(const Op& op) {
  formula::Throw(
      MICA_ERROR_RUNTIME, "Operator ", op.name(),
      " returns a shape that depends on the values, and under vmap each example has its own values. "
      "Use a form of fixed shape (mica.where with a mask), or call it outside of vmap.");
}

}  // namespace

MicaFrameKindRecord KindRecord() {
  MicaFrameKindRecord k{};
  k.struct_size = sizeof(k);
  k.name = "vmap";
  k.after_escape = "Return it from the function, or keep what vmap returned instead.";
  k.flags = MICA_KIND_MOVES_MEMORY;
  k.is_constant = &IsConstant;
  k.settle = &SettleLate;
  return k;
}

bool IsBatched(MicaTensor* t, const MicaFrame& frame) {
  const MicaWrapper* const w = layer::OwnOf(t, frame);
  if (!w || w->hidden) return w != nullptr;
  const MicaWrapper* const root = layer::OwnOf(DetailsOf(t).base, frame);
  return root && root->hidden;
}

// What an operator reads to check its arguments ("the matrix is finite") mostly is the same
// for all examples, and then each has its own answer. The binding's item() does not come here.
void RunRead(layer::Call& called) {
  if (!AnyBatched(called, called.frame())) return called.InParent();
  Call call(OpOf(called.op()), called.args(), called.size(), called.results());
  const Tensor value = call.PartAt(0).value;
  bool same = call.batch() > 0;
  if (same) {
    const Tensor first = ops::select(value, 0, 0);
    call.Set(0, first);
    same = ops::_local_scalar_dense(ops::all(ops::eq(value, first))).ToInt() != 0;
  }
  if (!same) layer::Check(layer::Table()->check_readable(called[0].u.tensor, "what reads one element"));
  call.Run();
}

void RunBatched(layer::Call& called) {
  if (!AnyBatched(called, called.frame())) return called.InParent();
  const Op& op = OpOf(called.op());
  const RuleEntry entry = op.entry;
  if (entry.source == Source::kRefused) Refuse(op);
  if (op.info->form != MICA_FORM_FUNCTIONAL && entry.rule != &Pointwise && entry.rule != &BecomeView &&
      entry.rule != &Resize && RunThroughFunctional(op, called))
    return;
  if (entry.rule) {
    CheckExample(op, called.args(), called.size());
    Call call(op, called.args(), called.size(), called.results());
    try {
      if (entry.rule(call)) return;
    } catch (const plugin::Error& error) {
      if (IsOfTheCaller(error)) RefuseAsTheLoop(op, called.args(), called.size(), call.frame());
      throw;
    }
  }
  if (entry.source != Source::kLoop && op.has(MICA_OPERATOR_COMPOSITE)) return called.Decompose();
  Loop(op, called.args(), called.size(), called.results());
}

}  // namespace mica::batched
