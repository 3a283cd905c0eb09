// The transform: a frame kind whose wrappers carry a lower bound (the value) and an upper one
// (the payload's second tensor), and one rule for each class of operators.
//
//   pointwise     the operator's program, evaluated on bounds (interval_arithmetic.cc)
//   contraction   signs split: the least of a product of two intervals is
//                 a+ c+  +  b+ c-  +  a- d+  +  b- d-   for [a, b] and [c, d], where x+ is max(x, 0)
//   view, fold, gather, sums and maxima: the operator, of the lower bounds and of the upper ones
//   composites    their parts; all else raises NotImplementedError
//
// A kernel runs in the frame it belongs to, leaves it, and computes in the parent with operators
// that are called as any others: outer vmaps, grads and traces see them. A wrapper without an
// upper bound is a point, and goes on as its value.
#include "interval.h"

#include <mica/layer.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "interval_arithmetic.h"

namespace my_layer {
namespace {

namespace layer = mica::layer;
using mica::formula::Box;
using mica::formula::DType;
using mica::formula::Operator;

constexpr const char* kKind = "my_layer.interval";

// A tensor of a call, opened.
Interval Open(MicaTensor* t, const MicaFrame& frame) {
  const MicaWrapper* const own = layer::OwnOf(t, frame);
  MicaTensor* const value = own ? own->value : t;
  Interval x;
  x.lower = Tensor::Borrow(value);
  x.upper = Tensor::Borrow(own && own->second ? own->second : value);
  x.source = t;
  return x;
}

// A tensor of the frame; with `base`, a view of it.
MicaTensor* Close(const Interval& x, const MicaFrame& frame, MicaTensor* base = nullptr) {
  MicaPayload payload{};
  if (!x.point()) payload.second = x.upper.get();
  const MicaTensorResult r = layer::Table()->wrap(x.lower.get(), &frame, base, &payload);
  layer::Check(r.status);
  return r.value;
}

MicaValue TensorValue(MicaTensor* owned) {
  MicaValue v{};
  v.tag = MICA_VALUE_TENSOR;
  v.u.tensor = owned;
  return v;
}

bool Is(const layer::Call& call, const char* class_name) {
  return std::strcmp(call.info().class_name, class_name) == 0;
}

[[noreturn]] void Refuse(const layer::Call& call, const std::string& why) {
  throw mica::plugin::Error(MICA_ERROR_NOT_IMPLEMENTED,
                            std::string("Operator ") + call.info().name + " " + why + " in layer (" + kKind +
                                "). Call it outside of "
                                "my_layer.bounds, or write it with operators that have a rule.");
}

// The arguments with `choose(interval)` in place of each tensor; keeps what they refer to.
class Chosen {
 public:
  template <typename F>
  Chosen(const layer::Call& call, const MicaFrame& frame, F&& choose)
      : values_(call.args(), call.args() + call.size()) {
    for (int64_t i = 0; i < call.size(); ++i) {
      MicaValue& v = values_[static_cast<size_t>(i)];
      if (v.tag == MICA_VALUE_TENSOR && v.u.tensor) v = Box(Keep(choose(Open(v.u.tensor, frame), i)));
      if (v.tag != MICA_VALUE_TENSORS) continue;
      std::vector<Tensor>& list =
          *lists_.insert(lists_.end(), std::make_unique<std::vector<Tensor>>())->get();
      for (int64_t j = 0; j < v.u.tensors.size; ++j) {
        MicaTensor* const t = v.u.tensors.data[j];
        list.push_back(t ? choose(Open(t, frame), i) : Tensor());
      }
      v = Box(list);
    }
  }
  const MicaValue* data() const { return values_.data(); }

 private:
  const Tensor& Keep(Tensor t) {
    return *kept_.insert(kept_.end(), std::make_unique<Tensor>(std::move(t)))->get();
  }

  std::vector<MicaValue> values_;
  std::vector<std::unique_ptr<Tensor>> kept_;
  std::vector<std::unique_ptr<std::vector<Tensor>>> lists_;
};

Tensor Taken(MicaValue& v) { return Tensor::Steal(v.tag == MICA_VALUE_TENSOR ? v.u.tensor : nullptr); }

// --- rules --------------------------------------------------------------------

// The operator of the lower bounds, and of the upper ones: where the result grows with each input.
void Increasing(layer::Call& call) {
  const layer::LeaveFrame left;
  std::vector<MicaValue> lower(static_cast<size_t>(call.num_results())), upper = lower;
  call.Again(Chosen(call, left.frame(), [](Interval x, int64_t) { return x.lower; }).data(), lower.data());
  call.Again(Chosen(call, left.frame(), [](Interval x, int64_t) { return x.upper; }).data(), upper.data());
  const bool view = (call.info().flags & MICA_OPERATOR_VIEW) != 0;
  MicaTensor* const base = view && layer::OwnOf(call[0].u.tensor, left.frame()) ? call[0].u.tensor : nullptr;
  for (size_t i = 0; i < lower.size(); ++i) {
    MicaValue& result = call.results()[i];
    if (lower[i].tag != MICA_VALUE_TENSORS) {
      Interval x{Taken(lower[i]), Taken(upper[i]), {}, false, nullptr};
      result = TensorValue(Close(x, left.frame(), base));
      continue;
    }
    const MicaTensorSpan lows = lower[i].u.tensors, highs = upper[i].u.tensors;
    result = lower[i];  // the list itself, with wrappers in place of the lower bounds
    for (int64_t j = 0; j < lows.size; ++j) {
      const Interval x{Tensor::Steal(lows.data[j]), Tensor::Steal(highs.data[j]), {}, false, nullptr};
      const_cast<MicaTensor**>(lows.data)[j] = Close(x, left.frame(), base);
    }
  }
}

using mica::formula::Dims;
// The sizes of both together; they fit, as the operator's shape function has seen.
Dims Broadcast(const Dims& a, mica::formula::IntSpan b) {
  Dims all(static_cast<size_t>(std::max<int64_t>(static_cast<int64_t>(a.size()), b.size())), 1);
  for (size_t i = 0; i < a.size(); ++i) all[all.size() - 1 - i] = a[a.size() - 1 - i];
  for (int64_t i = 0; i < b.size(); ++i) {
    int64_t& size = all[all.size() - 1 - static_cast<size_t>(i)];
    if (size == 1) size = b[b.size() - 1 - i];
  }
  return all;
}

// snippet: pointwise
void Pointwise(layer::Call& call) {
  if (call.num_results() != 1) Refuse(call, "has several results, for which there is no rule");
  const layer::LeaveFrame left;
  int32_t dtype = MICA_DTYPE_NONE;
  layer::Check(layer::Table()->compute_dtype(call.op(), call.args(), call.size(), &dtype));
  const bool floating = dtype >= MICA_F16 && dtype <= MICA_F64;
  const MicaProgram* const program = call.info().programs[floating ? 3 : 0];
  if ((!floating && dtype != MICA_BOOL) || !program)
    Refuse(call, "computes in a dtype (number " + std::to_string(dtype) + ") that has no bounds");
  static const Operator convert("mica::to.dtype"), expand("mica::expand");
  std::vector<Interval> inputs(static_cast<size_t>(call.size()));
  Dims shape;  // of all inputs, broadcast
  call.ForEachTensor([&](MicaTensor* t, int64_t i) {
    Interval x = Open(t, left.frame());
    const bool point = x.point();
    const auto cast = [&](const Tensor& bound) {
      return bound.dtype() == static_cast<DType>(dtype)
                 ? bound
                 : convert.Call<Tensor>(bound, static_cast<DType>(dtype), false, false, std::nullopt);
    };
    x.lower = cast(x.lower);
    x.upper = point ? x.lower : cast(x.upper);
    shape = Broadcast(shape, x.lower.sizes());
    inputs[static_cast<size_t>(i)] = std::move(x);
  });
  Interval result = Evaluate(*program, call.info().name, call.args(), inputs, dtype);
  for (Tensor* bound : {&result.lower, &result.upper})
    if (bound->sizes() != mica::formula::IntSpan(shape)) *bound = expand.Call<Tensor>(*bound, shape, false);
  call.results()[0] = TensorValue(Close(result, left.frame()));
}
// end snippet

// The operator is linear in each operand of the equation and in its other tensors (addmm's
// self), and a scalar may scale and turn either part: so each part is taken apart, and the
// lesser of the two ends is the lower one.
class Contraction {
 public:
  explicit Contraction(layer::Call& call) : call_(call) {
    for (int64_t i = 0; i < call.size(); ++i)
      if (call.info().args[i].flags & MICA_ARGUMENT_OPERAND) operands_.push_back(i);
    if (operands_.size() != 2) Refuse(call, "multiplies other than two tensors, which has no bounds yet");
  }

  void Run() {
    const Interval x = Operand(0), y = Operand(1);
    const Tensor a = Positive(x.lower), b = Positive(x.upper), c = Positive(y.lower), d = Positive(y.upper);
    const Tensor an = Negative(x.lower), bn = Negative(x.upper), cn = Negative(y.lower),
                 dn = Negative(y.upper);
    Interval sum = Ordered(Sum({Of(a, c), Of(b, cn), Of(an, d), Of(bn, dn)}),
                           Sum({Of(b, d), Of(a, dn), Of(bn, c), Of(an, cn)}));
    if (HasOthers()) {
      const Interval rest = Ordered(Others(false), Others(true));
      sum = {Sum({sum.lower, rest.lower}), Sum({sum.upper, rest.upper}), {}, false, nullptr};
    }
    call_.results()[0] = TensorValue(Close(sum, left_.frame()));
  }

 private:
  bool IsOperand(int64_t i) const { return i == operands_[0] || i == operands_[1]; }
  Interval Operand(int which) const {
    return Open(call_[operands_[static_cast<size_t>(which)]].u.tensor, left_.frame());
  }
  bool HasOthers() const {
    bool any = false;
    call_.ForEachTensor([&](MicaTensor*, int64_t i) { any = any || !IsOperand(i); });
    return any;
  }
  static Tensor Positive(const Tensor& t) { return Call("mica::relu", t); }
  static Tensor Negative(const Tensor& t) {
    return Call("mica::neg", Call("mica::relu", Call("mica::neg", t)));
  }
  static Tensor Sum(const std::vector<Tensor>& terms) {
    static const Operator add("mica::add.Tensor");
    Tensor sum = terms[0];
    for (size_t i = 1; i < terms.size(); ++i) sum = add.Call<Tensor>(sum, terms[i], mica::formula::Scalar(1));
    return sum;
  }
  static Interval Ordered(const Tensor& p, const Tensor& q) {
    return {Call("mica::minimum", p, q), Call("mica::maximum", p, q), {}, false, nullptr};
  }
  template <typename F>
  Tensor With(F&& choose) const {
    MicaValue result{};
    call_.Again(Chosen(call_, left_.frame(), choose).data(), &result);
    return Taken(result);
  }
  // The product alone.
  Tensor Of(const Tensor& x, const Tensor& y) const {
    return With([&](const Interval& t, int64_t i) {
      return i == operands_[0] ? x : i == operands_[1] ? y : Filled(t.lower, 0);
    });
  }
  // What is added to it, alone.
  Tensor Others(bool upper) const {
    return With([&](const Interval& t, int64_t i) {
      return IsOperand(i) ? Filled(t.lower, 0) : upper ? t.upper : t.lower;
    });
  }

  layer::Call& call_;
  const layer::LeaveFrame left_;
  std::vector<int64_t> operands_;
};

// --- the kind -------------------------------------------------------------------

// Whether the call has an interval that is no point, at another argument than `other_than`.
bool HasInterval(const layer::Call& call, int64_t other_than = -1) {
  bool any = false;
  call.ForEachTensor([&](MicaTensor* t, int64_t i) {
    const MicaWrapper* const own = i == other_than ? nullptr : layer::OwnOf(t, call.frame());
    any = any || (own && own->second);
  });
  return any;
}

// Copies and conversions are composites whose parts write.
void Copied(layer::Call& call) { HasInterval(call) ? Increasing(call) : call.InParent(); }

// snippet: rules
void ByClass(layer::Call& call) {
  const MicaOperatorInfo& info = call.info();
  const MicaProgram* const program = info.programs[3];  // of floating dtypes
  if (!HasInterval(call) || Is(call, "factory")) return call.InParent();
  if (info.form != MICA_FORM_FUNCTIONAL || info.written_args)
    Refuse(call, "writes a tensor, which has no rule for bounds; use the functional form");
  if (Is(call, "pointwise")) return Pointwise(call);
  if (Is(call, "contraction")) return Contraction(call).Run();
  const bool sums = (Is(call, "reduction") || Is(call, "scan")) && program && IsIncreasing(*program);
  const bool moves = Is(call, "gather") && program && !HasInterval(call, program->data_arg);
  const bool places = std::strcmp(info.name, "mica::as_strided") == 0;  // in a memory that differs
  if (sums || moves || Is(call, "fold") || (Is(call, "view") && !places)) return Increasing(call);
  Refuse(call, std::string("of class ") + info.class_name + " has no rule for bounds");
}
// end snippet

int32_t IsPoint(void*, MicaTensor* wrapper) { return !layer::Table()->wrapper(wrapper)->second; }

// my_layer::interval(lower, upper): a tensor of the frame.
void Make(layer::Call& call) {
  const layer::LeaveFrame left;
  const Tensor lower = Open(call[0].u.tensor, left.frame()).lower,
               upper = Open(call[1].u.tensor, left.frame()).upper;
  MICA_PLUGIN_CHECK(lower.sizes() == upper.sizes() && lower.dtype() == upper.dtype(), MICA_ERROR_VALUE,
                    "The bounds of an interval have the shapes " + mica::formula::Show(lower.sizes()) +
                        " and " + mica::formula::Show(upper.sizes()) +
                        ", or different dtypes; expected the same.");
  MICA_PLUGIN_CHECK(mica::formula::IsFloating(lower.dtype()), MICA_ERROR_TYPE,
                    "The bounds of an interval have dtype number (" +
                        std::to_string(static_cast<int>(lower.dtype())) + "); expected a floating dtype.");
  static const Operator read("mica::_local_scalar_dense");
  const Tensor ordered = Call("mica::all", Call("mica::le.Tensor", lower, upper));
  MICA_PLUGIN_CHECK(
      read.Call<mica::formula::Scalar>(ordered).ToInt() != 0, MICA_ERROR_VALUE,
      "A lower bound of an interval is above its upper bound (or NaN); expected lower <= upper.");
  // A view of the memory of its own is a point no more, even where both bounds are one tensor.
  const Interval x{lower, Call("mica::alias", upper), {}, false, nullptr};
  call.results()[0] = TensorValue(Close(x, left.frame()));
}

template <Tensor Interval::*kBound>
void ReadBound(layer::Call& call) {
  const layer::LeaveFrame left;
  call.results()[0] = TensorValue((Open(call[0].u.tensor, left.frame()).*kBound).release());
}

}  // namespace

void RegisterInterval(const MicaRegistrar* r) {
  // snippet: kind
  MicaFrameKindRecord record{};
  record.struct_size = sizeof(record);
  record.name = kKind;
  record.after_escape = "Return it from the function that my_layer.bounds calls.";
  record.flags = MICA_KIND_HIDES_VALUE;
  record.is_constant = &IsPoint;
  layer::Kind kind(r, record);
  kind.Fallback<&ByClass>().Decompose();
  // end snippet
  kind.Boxed<&Copied>("mica::clone").Boxed<&Copied>("mica::_to_copy");
  mica::plugin::Registrar any(r, "cpu");
  any.Define("my_layer::interval(Tensor lower, Tensor upper) -> Tensor");
  any.Define("my_layer::lower(Tensor self) -> Tensor");
  any.Define("my_layer::upper(Tensor self) -> Tensor");
  kind.Boxed<&Make>("my_layer::interval");
  kind.Boxed<&ReadBound<&Interval::lower>>("my_layer::lower");
  kind.Boxed<&ReadBound<&Interval::upper>>("my_layer::upper");
}

}  // namespace my_layer
