// Forward-mode rules that no formula says: views, constants, writes, and the generic rule
// for every operator with a gradient.
//
// Note [Forward mode from reverse mode]
// An operator without a forward rule is recorded on its values in a grad frame of its own.
// Its gradient g(u) = J^T u is linear in the cotangent u, which is a variable there; the
// gradient of g with respect to u, for the cotangent t, is J t: the tangent. So whatever
// has a reverse formula has forward mode, at the price of two backwards.
#include <algorithm>

#include "dispatcher/calls/boxed_results.h"
#include "keys/autograd/backward.h"
#include "keys/autograd/engine_ops.h"
#include "keys/autograd/forward.h"
#include "keys/autograd/grad_frame.h"
#include "keys/autograd/meta.h"
#include "mica/ops/_become_view_.h"
#include "mica/ops/copy_.h"

namespace mica::autograd::forward {
namespace {

using frames::ForEachTensor;

std::vector<Tensor> TensorsOf(const Operator& op, MicaValue* results) {
  std::vector<Tensor> tensors;
  ReplaceResults(op, results, [&](Tensor t) {
    tensors.push_back(t);
    return t;
  });
  return tensors;
}

bool AnyTangent(const MicaValue* args, int64_t n) {
  const frames::LeaveFrame left;
  bool any = false;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t) {
    any = any || (frames::Own(t, left.frame()) && TangentOf(t).defined());
  });
  return any;
}

// Of operators whose results have no derivative; what they write has none any more.
void RunConstant(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
                 MicaValue* results) {
  frames::CallInParent(op, args, n, results);
  const uint64_t written = op.spec().written_args;
  if (!written) return;
  Level level(op.spec().name);
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    if ((written >> i) & 1) level.Write(t, Tensor());
  });
}

// A view of a dual number: the same view of value and tangent.
void RunView(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
             MicaValue* results) {
  Tensor tangent;
  const Tensor& self = Tensor::Ref(args[0].u.tensor);
  const bool own = frames::Own(self, *frames::Current()) != nullptr;
  if (own) {
    const frames::LeaveFrame left;
    tangent = PrepareView(self);
  }
  frames::CallInParent(op, args, n, results);
  if (!own) return;
  const std::vector<Tensor> views = TensorsOf(op, results);
  const frames::LeaveFrame left;
  std::vector<Tensor> tangents(views.size());
  // as_strided names a place in the storage, which is another in the tangent's.
  if (tangent.defined() && op.name() != "mica::as_strided" && IsDifferentiable(views[0].dtype())) {
    absl::InlinedVector<MicaValue, 8> of_tangent(args, args + n);
    of_tangent[0].u.tensor = tangent.impl();
    ResultRoom made(op);
    op.CallBoxed(of_tangent.data(), n, made);
    tangents = TensorsOf(op, made);
    ReplaceResults(op, made, [](Tensor) { return Tensor(); });
  }
  if (op.name() == "mica::as_strided") ReachTangent(self, views[0]);
  for (size_t i = 0; i < views.size(); ++i)
    if (tangents[i].defined() || !tangent.defined()) SetViewTangent(views[i], tangents[i]);
}

void RefuseOut(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
               MicaValue* results) {
  MICA_CHECK_IMPLEMENTED(
      !AnyTangent(args, n), "Operator ", op.spec().name,
      " was called with out= while a tensor of the call has a tangent; jvp has no rule for "
      "out= forms. Call it without out=.");
  frames::CallInParent(op, args, n, results);
}

void RefuseResize(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
                  MicaValue* results) {
  MICA_CHECK_IMPLEMENTED(!AnyTangent(args, n), "Operator ", op.spec().name,
                         " cannot resize a tensor that has a tangent; work on x.detach() or on a clone.");
  frames::CallInParent(op, args, n, results);
}

bool AnyRecordedOutside(const MicaValue* args, int64_t n) {
  const frames::LeaveFrame left;
  bool any = false;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t) {
    any = any || IsRecordedOutside(frames::Unwrap(t, left.frame())) ||
          (frames::Own(t, left.frame()) && IsRecordedOutside(TangentOf(t)));
  });
  return any;
}

// In-place: the functional form, which has a rule, then the write. What outer levels save
// of it is a copy, since the write comes after.
bool RunThroughFunctional(const Operator& op, const MicaValue* args, int64_t n) {
  const char* name = op.spec().functional_name;
  const Operator* functional = op.spec().form == OpForm::kInplace && name ? FindOperator(name) : nullptr;
  if (!functional || functional == &op) return false;
  absl::InlinedVector<MicaValue, 8> inputs(args, args + n);
  Tensor before;
  if (AnyRecordedOutside(args, n)) {
    before = ops::Clone(Tensor::Ref(args[0].u.tensor));
    inputs[0].u.tensor = before.impl();
  }
  ResultRoom results(*functional);
  functional->CallBoxed(inputs.data(), n, results);
  const Tensor value = TakeTensor(results[0]);
  ::mica::ops::copy_(Tensor::Ref(args[0].u.tensor), value);
  return true;
}

// The results of `op` and their tangents: Note [Forward mode from reverse mode].
class TwoBackwards {
 public:
  TwoBackwards(const Operator& op, const MicaValue* args, int64_t n, Level& level) : results(op), op_(op) {
    std::vector<Dual> duals;
    ForEachTensor(args, n, [&](const Tensor& t, int64_t) { duals.push_back(level.Open(t)); });
    const frames::FrameScope scope(GradKind());
    size_t next = 0;
    const frames::ReplacedArguments recorded(args, n, [&](const Tensor&) {
      const Dual& d = duals[next++];
      if (!d.tangent.defined()) return d.value;
      tangents_.push_back(d.tangent);
      inputs_.push_back(MakeGradInput(d.value, scope.frame()));
      return inputs_.back();
    });
    op.CallBoxed(recorded.data(), n, results);
    try {
      outputs_ = TensorsOf(op, results);
      Differentiate(level.frame());
    } catch (...) {
      ReleaseResults(op, results);
      throw;
    }
    for (Tensor& t : outputs_) t = frames::Unwrap(t, scope.frame());
    for (Tensor& t : output_tangents_) t = frames::Unwrap(t, scope.frame());
  }

  ResultRoom results;
  const Tensor& output(size_t i) const { return outputs_[i]; }
  const Tensor& tangent(size_t i) const { return output_tangents_[i]; }

 private:
  void Differentiate(const frames::Frame& jvp) {
    output_tangents_.resize(outputs_.size());
    std::vector<Tensor> recorded, cotangents;
    std::vector<size_t> which;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Tensor& y = outputs_[i];
      if (!y.defined() || !IsDifferentiable(y.dtype()) || !RequiresGrad(y)) continue;
      if (const NodeRef node = GradFn(y); node && std::string_view(node->name()) == "NotImplementedBackward")
        frames::ThrowNoRule(op_, jvp);
      which.push_back(i);
      recorded.push_back(y);
      // Of ones: a formula may branch or take logarithms by the sign of its gradient.
      cotangents.push_back(ops::OnesLike(y));
      SetRequiresGrad(cotangents.back(), true);
    }
    if (recorded.empty()) return;
    const std::vector<Tensor> gradients =
        Gradients(PointsOf(recorded), PointsOf(inputs_), cotangents,
                  MICA_BACKWARD_CREATE_GRAPH | MICA_BACKWARD_RETAIN_GRAPH | MICA_BACKWARD_ALLOW_UNUSED);
    std::vector<Tensor> linear, along;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      if (!RequiresGrad(gradients[i])) {
        CheckZero(gradients[i]);
        continue;
      }
      linear.push_back(gradients[i]);
      along.push_back(tangents_[i]);
    }
    if (linear.empty()) return;
    std::vector<Tensor> found =
        Gradients(PointsOf(linear), PointsOf(cotangents), along, MICA_BACKWARD_ALLOW_UNUSED);
    // Recorded, but not from the cotangents on.
    if (std::none_of(found.begin(), found.end(), [](const Tensor& t) { return t.defined(); }))
      for (const Tensor& gradient : linear) CheckZero(gradient);
    for (size_t i = 0; i < which.size(); ++i) output_tangents_[which[i]] = std::move(found[i]);
  }

  // A gradient that does not follow from the cotangent has no tangent to give, unless it is 0.
  void CheckZero(const Tensor& gradient) {
    MICA_CHECK_IMPLEMENTED(
        ops::IsZero(gradient), "Operator ", op_.spec().name,
        " has no forward mode: its backward does not record how the gradient follows from the incoming one, "
        "from which the tangent would be made. Compute the backward with operators that have gradients, or "
        "register a kernel for the operator at (jvp).");
  }

  const Operator& op_;
  std::vector<Tensor> inputs_, tangents_, outputs_, output_tangents_;
};

void RunGeneric(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
                MicaValue* results) {
  if (!AnyTangent(args, n)) return frames::CallInParent(op, args, n, results);
  if (RunThroughFunctional(op, args, n)) return;
  if (op.spec().form != OpForm::kFunctional) frames::ThrowNoRule(op, *frames::Current());
  Level level(op.spec().name);
  TwoBackwards both(op, args, n, level);
  size_t i = 0;
  ReplaceResults(op, both.results, [&](const Tensor&) {
    Tensor dual = level.Close(both.output(i), both.tangent(i));
    ++i;
    return dual;
  });
  std::copy_n(static_cast<MicaValue*>(both.results), op.schema().returns.size(), results);
}

void Copy(KeySet, const Tensor& self, const Tensor& src, bool non_blocking) {
  Level level("mica::copy_");
  const Dual to = level.OpenWritten(self), from = level.Open(src);
  ::mica::ops::op::copy_::call(to.value, from.value, non_blocking);
  // A copy here, too: who writes the tangent that make_dual got writes that of the source alone.
  level.Write(self, from.tangent.defined() ? ops::Clone(from.tangent) : Tensor());
}

void BecomeView(KeySet, const Tensor& self, const Tensor& view, std::string_view name) {
  Level level("mica::_become_view_");
  const Dual to = level.OpenWritten(self), from = level.Open(view);
  ::mica::ops::op::_become_view_::call(to.value, from.value, name);
  if (!frames::Own(self, level.frame())) return;
  frames::Refresh(self);
  SetViewTangent(self, from.tangent);
}

}  // namespace

void RegisterForwardMode(Scope& scope) {
  BringJvpKind(scope);
  const SourceLocation here{__FILE__, __LINE__};
  scope.DecomposeAt("jvp");
  scope.AddBoxedFallback("jvp", {&RunGeneric, nullptr, nullptr}, here);
  // A composite with a formula may be made of parts that have none.
  for (const std::string& name : scope.OperatorsAt("Autograd"))
    scope.AddBoxedKernel(name, "jvp", {&RunGeneric, nullptr, nullptr}, here);
  for (const Operator* op : AllOperators()) {
    const OperatorSpec& spec = op->spec();
    if (op->name() == "mica::resize_" || op->name() == "mica::resize_as_") {
      scope.AddBoxedKernel(op->name(), "jvp", {&RefuseResize, nullptr, nullptr}, here);
    } else if (spec.flags & kNotDifferentiable) {
      scope.AddBoxedKernel(op->name(), "jvp", {&RunConstant, nullptr, nullptr}, here);
    } else if (spec.form == OpForm::kOut) {
      scope.AddBoxedKernel(op->name(), "jvp", {&RefuseOut, nullptr, nullptr}, here);
    } else if (spec.view) {
      scope.AddBoxedKernel(op->name(), "jvp", {&RunView, nullptr, nullptr}, here);
    }
  }
  scope.AddKernel("mica::copy_", "jvp", LayerKernel<&Copy>::Get(), nullptr, here);
  scope.AddKernel("mica::_become_view_", "jvp", LayerKernel<&BecomeView>::Get(), nullptr, here);
}

}  // namespace mica::autograd::forward
