// The kernels that no formula can say.
#include "keys/autograd/hand_kernels.h"

#include <string_view>

#include "dispatcher/calls/given_output.h"
#include "dispatcher/calls/typed_operator_impl.h"  // redispatch() of what has no formula
#include "dispatcher/frames/frames.h"
#include "keys/autograd/as_strided.h"
#include "keys/autograd/kernel.h"
#include "mica/ops/_become_view_.h"
#include "mica/ops/as_strided.h"
#include "mica/ops/detach.h"

namespace mica::autograd {
namespace {

// Detached at this level and, in a grad frame, at all outer ones. Modes and subclasses see it.
Tensor Detach(KeySet keys, const Tensor& self) {
  const bool seen = keys.has(keys::kDispatchMode) || keys.has(keys::kPythonSubclass);
  if (seen || frames::IsWrapper(self)) return ::mica::ops::op::detach::redispatch(Below(keys), self);
  return DetachedAlias(self);
}

// as_strided's gradient needs the place of its input, not the values; saving the
// input would forbid writes that do no harm, and every view that follows a write
// is such a node.
class AsStridedBackward0 final : public Node {
 public:
  Dims input_strides;
  int64_t input_offset = 0;
  StridedPlace result;
  const char* name() const override { return "AsStridedBackward0"; }
  void Apply(const Tensor* grads, Tensor* out) override {
    if (Wants(0))
      out[0] = AsStridedBackward(grads[0], {ToDims(input(0).sizes()), input_strides, input_offset}, result);
  }
};

Ref<AsStridedBackward0> AsStridedNode(const Tensor& self, IntSpan size, IntSpan stride,
                                      std::optional<int64_t> storage_offset) {
  auto backward = MakeNode<AsStridedBackward0>();
  Link(*backward, {&self});
  backward->input_strides = ToDims(self.strides());
  backward->input_offset = self.storage_offset();
  backward->result = {ToDims(size), ToDims(stride), storage_offset.value_or(self.storage_offset())};
  return backward;
}

Tensor AsStrided(KeySet keys, const Tensor& self, IntSpan size, IntSpan stride,
                 std::optional<int64_t> storage_offset) {
  if (!Recording(self)) {
    Tensor view = ::mica::ops::op::as_strided::redispatch(Below(keys), self, size, stride, storage_offset);
    KeepUnrecorded(view);
    return view;
  }
  const auto backward = AsStridedNode(self, size, stride, storage_offset);
  Tensor result;
  {
    const BelowAutograd below;
    result = ::mica::ops::op::as_strided::redispatch(Below(keys), self, size, stride, storage_offset);
  }
  SetHistory(result, *backward);
  return result;
}

// An in-place view keeps its memory and takes the view's history, as it is before
// the write makes the view's outdated.
void BecomeView(KeySet keys, const Tensor& self, const Tensor& view, std::string_view name) {
  const bool recorded = Recording(self);
  if (recorded) CheckInplace(self, std::string(name).c_str());
  const NodeRef history = recorded ? GradFn(view) : nullptr;
  {
    const BelowAutograd below;
    ::mica::ops::op::_become_view_::redispatch(Below(keys), self, view, name);
  }
  if (recorded) SetGradFn(self, history, GetMeta(view)->output_nr);
  RefreshAccumulator(self);
}

// ---- boxed kernels
using frames::ForEachTensor;

bool AnyRequiresGrad(const MicaValue* args, int64_t n) {
  bool any = false;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t) { any = any || RequiresGrad(t); });
  return any;
}

// out= is never recorded.
void RefuseOut(const BoxedKernel&, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
               MicaValue* results) {
  if (CurrentThread().grad_enabled && AnyRequiresGrad(args, n)) RefuseRecordedOut(op.spec());
  op.RedispatchBoxed(Below(keys), args, n, results);
}

void RefuseResize(const BoxedKernel&, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                  MicaValue* results) {
  if (CurrentThread().grad_enabled && args[0].tag == MICA_VALUE_TENSOR &&
      RequiresGrad(Tensor::Ref(args[0].u.tensor)))
    RefuseRecordedResize(op.spec());
  const BelowAutograd below;
  op.RedispatchBoxed(Below(keys), args, n, results);
  RefreshAccumulator(Tensor::Ref(args[0].u.tensor));
}

// The grad_fn of results of an operator without a formula.
class NotImplementedBackward final : public Node {
 public:
  explicit NotImplementedBackward(const char* op) : op_(op) {}
  const char* name() const override { return "NotImplementedBackward"; }
  void Apply(const Tensor*, Tensor*) override {
    MICA_THROW(kNotImplemented, "Here the derivative for '", op_,
               "' is not implemented: the operator has no gradient formula, and a gradient flows into its "
               "result. Detach the result (",
               "x.detach()) if no gradient is needed, or give the operator a formula.");
  }

 private:
  const char* op_;
};

// The grad_fn of what an operator without a gradient wrote.
class NotDifferentiableBackward final : public Node {
 public:
  const char* name() const override { return "NotDifferentiableBackward"; }
  void Apply(const Tensor*, Tensor* out) override {
    for (int i = 0; i < num_next(); ++i)
      if (Wants(i)) out[i] = ZerosFor(*this, i);
  }
};

// Calls what is below, and gives what it wrote and returns the history `backward`.
template <typename N>
void RecordBoxed(N backward, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                 MicaValue* results) {
  std::vector<Tensor> inputs;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    if ((op.spec().written_args >> i) & 1) CheckInplace(t, op.spec().name);
    inputs.push_back(t);
  });
  Link(*backward, {}, inputs);
  {
    const BelowAutograd below;
    op.RedispatchBoxed(Below(keys), args, n, results);
  }
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    if ((op.spec().written_args >> i) & 1) RebaseHistory(t, *backward);
  });
  if (op.spec().form != OpForm::kFunctional) return;
  const size_t num_results = op.schema().returns.size();
  for (size_t i = 0; i < num_results; ++i) {
    if (results[i].tag == MICA_VALUE_TENSOR) {
      Tensor t = Tensor::Steal(results[i].u.tensor);
      SetHistory(t, *backward);
      results[i].u.tensor = t.release();
    } else if (results[i].tag == MICA_VALUE_TENSORS) {
      std::vector<Tensor> list = TakeTensorList(results[i].u.tensors);
      for (Tensor& t : list) SetHistory(t, *backward);
      results[i].u.tensors = GiveTensorList(std::move(list));
    }
  }
}

void NoFormula(const BoxedKernel&, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
               MicaValue* results) {
  if (!CurrentThread().grad_enabled || !AnyRequiresGrad(args, n))
    return op.RedispatchBoxed(Below(keys), args, n, results);
  RecordBoxed(MakeNode<NotImplementedBackward>(op.spec().name), op, keys, args, n, results);
}

// In-place forms of operators without a gradient (eq_): what they wrote depends on
// nothing any more.
void CutHistory(const BoxedKernel&, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                MicaValue* results) {
  bool history = false;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    history = history || (((op.spec().written_args >> i) & 1) && RequiresGrad(t));
  });
  if (!CurrentThread().grad_enabled || !history) return op.RedispatchBoxed(Below(keys), args, n, results);
  RecordBoxed(MakeNode<NotDifferentiableBackward>(), op, keys, args, n, results);
}

// Whether it makes tensors from which no gradient goes back to an argument: it takes none,
// or one for its shape, dtype and device (zeros_like, new_full).
// Read from the schema's text: parsing those of all operators would cost milliseconds.
bool IsFactory(const OperatorSpec& spec) {
  const std::string_view text = spec.schema;
  const std::string_view arguments = text.substr(0, text.rfind("->"));
  const auto has = [&](const char* word) { return arguments.find(word) != std::string_view::npos; };
  return !has("Tensor") || (has(" pin_memory") && !has(" non_blocking"));
}

}  // namespace

void RegisterHandKernels(Scope& scope) {
  const SourceLocation here{__FILE__, __LINE__};
  scope.AddKernel("mica::detach", "Autograd", LayerKernel<&Detach>::Get(), nullptr, here);
  scope.AddKernel("mica::as_strided", "Autograd", LayerKernel<&AsStrided>::Get(), nullptr, here);
  scope.AddKernel("mica::_become_view_", "Autograd", LayerKernel<&BecomeView>::Get(), nullptr, here);
  for (const Operator* op : AllOperators()) {
    const OperatorSpec& spec = op->spec();
    if (op->name() == "mica::resize_" || op->name() == "mica::resize_as_") {
      scope.AddBoxedKernel(op->name(), "Autograd", {&RefuseResize, nullptr, nullptr}, here);
    } else if (spec.form == OpForm::kOut) {
      scope.AddBoxedKernel(op->name(), "Autograd", {&RefuseOut, nullptr, nullptr}, here);
    } else if ((spec.flags & kNotDifferentiable) && spec.form == OpForm::kInplace) {
      scope.AddBoxedKernel(op->name(), "Autograd", {&CutHistory, nullptr, nullptr}, here);
    } else if (op->name() == "mica::detach") {
      continue;
    } else if ((spec.flags & kNotDifferentiable) || IsFactory(spec)) {
      scope.AddFallthrough(op->name(), "Autograd");
    }
  }
  scope.DecomposeAt("Autograd");
  scope.AddBoxedFallback("Autograd", {&NoFormula, nullptr, nullptr}, here);
}

}  // namespace mica::autograd
