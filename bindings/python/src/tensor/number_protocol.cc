// Tensor's operators: + - * / // % ** @ & | ^ << >> ~ - + abs, their reflected
// and in-place forms, comparisons, and conversions to Python numbers.
//
// A pair of tensors goes straight to the operator; a number takes the Scalar
// overload where there is one, else it is wrapped as a 0-d tensor, weakest in
// type promotion. Other operands give NotImplemented, so that Python asks them, but for
// two, as in torch: `==` and `!=` compare a NumPy array's elements, and a quotient with the
// tensor below is a product with its reciprocal, for which Python asks the other operand.
#include "bindings/python/src/autograd/gradients.h"
#include "bindings/python/src/creation/creation.h"
#include "bindings/python/src/interception/override.h"
#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/tensor/item.h"
#include "dispatcher/calls/warn_once.h"
#include "mica/ops/abs.h"
#include "mica/ops/add.h"
#include "mica/ops/bitwise_and.h"
#include "mica/ops/bitwise_left_shift.h"
#include "mica/ops/bitwise_not.h"
#include "mica/ops/bitwise_or.h"
#include "mica/ops/bitwise_right_shift.h"
#include "mica/ops/bitwise_xor.h"
#include "mica/ops/div.h"
#include "mica/ops/eq.h"
#include "mica/ops/floor_divide.h"
#include "mica/ops/ge.h"
#include "mica/ops/gt.h"
#include "mica/ops/le.h"
#include "mica/ops/lt.h"
#include "mica/ops/matmul.h"
#include "mica/ops/mul.h"
#include "mica/ops/ne.h"
#include "mica/ops/neg.h"
#include "mica/ops/positive.h"
#include "mica/ops/pow.h"
#include "mica/ops/reciprocal.h"
#include "mica/ops/remainder.h"
#include "mica/ops/rsub.h"
#include "mica/ops/sub.h"
#include "tensor/shape.h"

namespace mica::python {
namespace {

// The operators as types, so that one template serves all: Tensors (both
// tensors), Number (tensor op number), Reflected (number op tensor), and the attributes of
// Tensor by which an interceptor knows them.
#define MICA_OPERATOR(Name, op, name, reflected)                                               \
  struct Name {                                                                                \
    static constexpr const char* kName = name;                                                 \
    static constexpr const char* kReflected = reflected;                                       \
    static Tensor Tensors(const Tensor& a, const Tensor& b) { return ops::op(a, b); }          \
    static Tensor Number(const Tensor& a, const Scalar& b) { return ops::op(a, b); }           \
    static Tensor Reflected(const Scalar& a, const Tensor& b) { return Reverse_##Name(a, b); } \
  };
Tensor Reverse_Add(const Scalar& a, const Tensor& b) { return ops::add(b, a); }
Tensor Reverse_Sub(const Scalar& a, const Tensor& b) { return ops::rsub(b, a); }
Tensor Reverse_Mul(const Scalar& a, const Tensor& b) { return ops::mul(b, a); }
Tensor Reverse_Div(const Scalar& a, const Tensor& b) { return ops::mul(ops::reciprocal(b), a); }
Tensor Reverse_FloorDiv(const Scalar& a, const Tensor& b) { return ops::floor_divide(WrappedNumber(a), b); }
Tensor Reverse_Remainder(const Scalar& a, const Tensor& b) { return ops::remainder(a, b); }
Tensor Reverse_Pow(const Scalar& a, const Tensor& b) { return ops::pow(a, b); }
Tensor Reverse_And(const Scalar& a, const Tensor& b) { return ops::bitwise_and(b, a); }
Tensor Reverse_Or(const Scalar& a, const Tensor& b) { return ops::bitwise_or(b, a); }
Tensor Reverse_Xor(const Scalar& a, const Tensor& b) { return ops::bitwise_xor(b, a); }
Tensor Reverse_LeftShift(const Scalar& a, const Tensor& b) {
  return ops::bitwise_left_shift(WrappedNumber(a), b);
}
Tensor Reverse_RightShift(const Scalar& a, const Tensor& b) {
  return ops::bitwise_right_shift(WrappedNumber(a), b);
}
MICA_OPERATOR(Add, add, "add", "add")
MICA_OPERATOR(Sub, sub, "sub", "__rsub__")
MICA_OPERATOR(Mul, mul, "mul", "mul")
MICA_OPERATOR(Div, div, "div", "__rdiv__")
MICA_OPERATOR(FloorDiv, floor_divide, "__floordiv__", "__rfloordiv__")
MICA_OPERATOR(Remainder, remainder, "remainder", "__rmod__")
MICA_OPERATOR(Pow, pow, "pow", "__rpow__")
MICA_OPERATOR(And, bitwise_and, "__and__", "bitwise_and")
MICA_OPERATOR(Or, bitwise_or, "__or__", "bitwise_or")
MICA_OPERATOR(Xor, bitwise_xor, "__xor__", "bitwise_xor")
MICA_OPERATOR(LeftShift, bitwise_left_shift, "__lshift__", "__rlshift__")
MICA_OPERATOR(RightShift, bitwise_right_shift, "__rshift__", "__rrshift__")
#undef MICA_OPERATOR

PyObject* NotImplementedResult() {
  Py_INCREF(Py_NotImplemented);
  return Py_NotImplemented;
}

constexpr Callee OperatorOf(const char* name) { return {name, nullptr, nullptr, /*slot=*/true}; }

// What is set as the current error, if it says that the operands do not go together, becomes
// NotImplemented.
PyObject* NotImplementedForTypeError() {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonErrorIsSet();
  PyErr_Clear();
  return NotImplementedResult();
}

// number op tensor, where the left operand is no number.
template <typename Op>
PyObject* ReflectedForeign(PyObject*, PyObject*) {
  return NotImplementedResult();
}
template <>
PyObject* ReflectedForeign<Div>(PyObject* a, PyObject* b) {
  const Tensor& y = Unwrap(b);
  const Ref reciprocal(Wrap(Run(Work().Add(y), [&] { return ops::reciprocal(y); })));
  PyObject* const product = PyNumber_Multiply(reciprocal.get(), a);
  return product ? product : NotImplementedForTypeError();
}

// Whoever wants a call of two operands; the tensor, or what wants to be one, is first.
template <typename Op>
PyObject* OverrideBinary(PyObject* a, PyObject* b) {
  if (IsTensor(a)) return Override(OperatorOf(Op::kName), a, b);
  return IsTensor(b) ? Override(OperatorOf(Op::kReflected), b, a) : nullptr;
}

template <typename Op>
PyObject* Binary(PyObject* a, PyObject* b) noexcept {
  return Guarded([&]() -> PyObject* {
    if (MayOverride(a, b))
      if (PyObject* result = OverrideBinary<Op>(a, b)) return result;
    if (__builtin_expect(IsTensor(a), 1)) {
      const Tensor& x = Unwrap(a);
      if (__builtin_expect(IsTensor(b), 1)) {
        const Tensor& y = Unwrap(b);
        return Wrap(Run(Work().Add(x).Add(y), [&] { return Op::Tensors(x, y); }));
      }
      if (!IsPlainNumber(b)) return NotImplementedResult();
      const Scalar s = ToScalar(b);
      return Wrap(Run(Work().Add(x), [&] { return Op::Number(x, s); }));
    }
    if (!IsPlainNumber(a)) return ReflectedForeign<Op>(a, b);
    const Scalar s = ToScalar(a);
    const Tensor& y = Unwrap(b);
    return Wrap(Run(Work().Add(y), [&] { return Op::Reflected(s, y); }));
  });
}

PyObject* Power(PyObject* a, PyObject* b, PyObject* modulo) {
  if (modulo != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow() of a tensor takes no modulus.");
    return nullptr;
  }
  return Binary<Pow>(a, b);
}

// In-place forms return the same Python object.
#define MICA_INPLACE(Name, op, name)                                         \
  struct Name {                                                              \
    static constexpr const char* kName = name;                               \
    static void Tensors(const Tensor& a, const Tensor& b) { ops::op(a, b); } \
    static void Number(const Tensor& a, const Scalar& b) { ops::op(a, b); }  \
  };
MICA_INPLACE(AddInto, add_, "add_")
MICA_INPLACE(SubInto, sub_, "sub_")
MICA_INPLACE(MulInto, mul_, "mul_")
MICA_INPLACE(DivInto, div_, "div_")
MICA_INPLACE(FloorDivInto, floor_divide_, "floor_divide_")
MICA_INPLACE(RemainderInto, remainder_, "remainder_")
MICA_INPLACE(PowInto, pow_, "pow_")
MICA_INPLACE(AndInto, bitwise_and_, "__iand__")
MICA_INPLACE(OrInto, bitwise_or_, "__ior__")
MICA_INPLACE(XorInto, bitwise_xor_, "__ixor__")
MICA_INPLACE(LeftShiftInto, bitwise_left_shift_, "__ilshift__")
MICA_INPLACE(RightShiftInto, bitwise_right_shift_, "__irshift__")
#undef MICA_INPLACE
template <typename Op>
PyObject* Inplace(PyObject* a, PyObject* b) noexcept {
  return Guarded([&]() -> PyObject* {
    if (MayOverride(a, b))
      if (PyObject* result = Override(OperatorOf(Op::kName), a, b)) return result;
    const Tensor& x = Unwrap(a);
    if (IsTensor(b)) {
      const Tensor& y = Unwrap(b);
      Run(Work().Add(x).Add(y), [&] { Op::Tensors(x, y); });
    } else if (IsPlainNumber(b)) {
      const Scalar s = ToScalar(b);
      Run(Work().Add(x), [&] { Op::Number(x, s); });
    } else {
      return NotImplementedResult();
    }
    return Py_NewRef(a);
  });
}
PyObject* InplacePower(PyObject* a, PyObject* b, PyObject*) { return Inplace<PowInto>(a, b); }

struct MatMul {
  static constexpr const char* kName = "matmul";
  static constexpr const char* kReflected = "__rmatmul__";
};
PyObject* MatrixMultiply(PyObject* a, PyObject* b) {
  return Guarded([&] {
    if (MayOverride(a, b))
      if (PyObject* result = OverrideBinary<MatMul>(a, b)) return result;
    if (!IsTensor(a) || !IsTensor(b)) return NotImplementedResult();
    const Tensor &x = Unwrap(a), &y = Unwrap(b);
    return Wrap(Run(Work().Add(x).Add(y), [&] { return ops::matmul(x, y); }));
  });
}

template <Text kName, Tensor (*kOp)(const Tensor&)>
PyObject* Unary(PyObject* a) noexcept {
  return Guarded([&] {
    if (MayOverride(a))
      if (PyObject* result = Override({kName.text}, a)) return result;
    const Tensor& x = Unwrap(a);
    return Wrap(Run(Work().Add(x), [&] { return kOp(x); }));
  });
}
Tensor Negate(const Tensor& x) { return ops::neg(x); }
Tensor Positive(const Tensor& x) { return ops::positive(x); }
Tensor Absolute(const Tensor& x) { return ops::abs(x); }
Tensor Invert(const Tensor& x) { return ops::bitwise_not(x); }

int NonZero(PyObject* a) {
  return GuardedInt([&] {
    if (MayOverride(a))
      if (const Ref result{Override({"__bool__"}, a)}) return PyObject_IsTrue(result.get());
    const Tensor& t = Unwrap(a);
    MICA_CHECK(t.numel() == 1, "Boolean value of Tensor with ",
               t.numel() == 0 ? "no values" : "more than one value", " is ambiguous; it has ", t.numel(),
               " elements: use any() or all().");
    return ItemOf(t).ToBool() ? 1 : 0;
  });
}
// For int() and float(), whose errors are of the kind that they are for other values.
Scalar OnlyElement(PyObject* a) {
  const Tensor& t = Unwrap(a);
  MICA_CHECK_VALUE(t.numel() == 1,
                   "only one element tensors can be converted to Python scalars; this one with shape ",
                   ShapeText(t.sizes()), " has ", t.numel(), ".");
  return ItemOf(t);
}
// float() of a tensor whose gradient would be lost, as torch: int(), bool() and item() say nothing.
void WarnOfGradient(const Tensor& t) {
  if (!t.requires_grad() && !(t.impl()->extra && t.impl()->extra->layer_state)) return;
  const Autograd a = LoadedAutograd();
  if (!CurrentThread().grad_enabled || !(t.requires_grad() || (a && a.RequiresGrad(t)))) return;
  WarnOnce("float",
           "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
           "Consider using tensor.detach() first.");
}
PyObject* ToPythonInt(PyObject* a) {
  return Guarded([&]() -> PyObject* {
    const Scalar s = OnlyElement(a);
    if (s.is_float()) return PyLong_FromDouble(s.ToDouble());
    if (s.is_complex()) Raise(PyExc_TypeError, "A complex tensor cannot be converted to an int.");
    return FromScalar(s.is_bool() ? Scalar(s.ToInt()) : s);
  });
}
PyObject* ToPythonFloat(PyObject* a) {
  return Guarded([&] {
    const Scalar s = OnlyElement(a);
    WarnOfGradient(Unwrap(a));
    if (s.is_complex() && s.ToComplex().imag() != 0)
      Raise(PyExc_TypeError, "A complex tensor cannot be converted to a float.");
    return PyFloat_FromDouble(s.ToDouble());
  });
}
PyObject* ToPythonIndex(PyObject* a) {
  return Guarded([&] {
    const Tensor& t = Unwrap(a);
    MICA_CHECK_TYPE(t.numel() == 1 && !IsDifferentiable(t.dtype()),
                    "only integer tensors of a single element can be converted to an index; this one is ",
                    t.ToString(), ".");
    const Scalar s = ItemOf(t);
    return FromScalar(s.is_bool() ? Scalar(s.ToInt()) : s);
  });
}

}  // namespace

PyNumberMethods kTensorNumberMethods = {
    .nb_add = Binary<Add>,
    .nb_subtract = Binary<Sub>,
    .nb_multiply = Binary<Mul>,
    .nb_remainder = Binary<Remainder>,
    .nb_divmod = nullptr,
    .nb_power = Power,
    .nb_negative = Unary<"neg", Negate>,
    .nb_positive = Unary<"positive", Positive>,
    .nb_absolute = Unary<"abs", Absolute>,
    .nb_bool = NonZero,
    .nb_invert = Unary<"__invert__", Invert>,
    .nb_lshift = Binary<LeftShift>,
    .nb_rshift = Binary<RightShift>,
    .nb_and = Binary<And>,
    .nb_xor = Binary<Xor>,
    .nb_or = Binary<Or>,
    .nb_int = Asking<"__int__", ToPythonInt>::Slot,
    .nb_reserved = nullptr,
    .nb_float = Asking<"__float__", ToPythonFloat>::Slot,
    .nb_inplace_add = Inplace<AddInto>,
    .nb_inplace_subtract = Inplace<SubInto>,
    .nb_inplace_multiply = Inplace<MulInto>,
    .nb_inplace_remainder = Inplace<RemainderInto>,
    .nb_inplace_power = InplacePower,
    .nb_inplace_lshift = Inplace<LeftShiftInto>,
    .nb_inplace_rshift = Inplace<RightShiftInto>,
    .nb_inplace_and = Inplace<AndInto>,
    .nb_inplace_xor = Inplace<XorInto>,
    .nb_inplace_or = Inplace<OrInto>,
    .nb_floor_divide = Binary<FloorDiv>,
    .nb_true_divide = Binary<Div>,
    .nb_inplace_floor_divide = Inplace<FloorDivInto>,
    .nb_inplace_true_divide = Inplace<DivInto>,
    .nb_index = Asking<"__index__", ToPythonIndex>::Slot,
    .nb_matrix_multiply = MatrixMultiply,
    .nb_inplace_matrix_multiply = nullptr,
};

namespace {

template <typename Other>
Tensor Compared(const Tensor& x, const Other& y, int op) {
  switch (op) {
    case Py_LT:
      return ops::lt(x, y);
    case Py_LE:
      return ops::le(x, y);
    case Py_EQ:
      return ops::eq(x, y);
    case Py_NE:
      return ops::ne(x, y);
    case Py_GT:
      return ops::gt(x, y);
    default:
      return ops::ge(x, y);
  }
}

PyObject* ComparedTensors(const Tensor& x, const Tensor& y, int op) {
  return Wrap(Run(Work().Add(x).Add(y), [&] { return Compared(x, y, op); }));
}

// A NumPy array as a tensor over its memory; none of one whose dtype no tensor has.
std::optional<Tensor> AsOperand(PyObject* array) {
  try {
    return TensorFromBuffer(array, false);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kType) throw;
    return std::nullopt;
  }
}

}  // namespace

PyObject* TensorRichCompare(PyObject* a, PyObject* b, int op) {
  return Guarded([&]() -> PyObject* {
    if (MayOverride(a, b)) {
      static constexpr const char* kNames[] = {"lt", "le", "__eq__", "ne", "gt", "ge"};
      if (PyObject* result = Override(OperatorOf(kNames[op]), a, b)) return result;
    }
    const Tensor& x = Unwrap(a);
    if (IsTensor(b)) return ComparedTensors(x, Unwrap(b), op);
    if (IsPlainNumber(b)) {
      const Scalar s = ToScalar(b);
      return Wrap(Run(Work().Add(x), [&] { return Compared(x, s, op); }));
    }
    if ((op == Py_EQ || op == Py_NE) && IsNumpyArray(b))
      if (const std::optional<Tensor> y = AsOperand(b)) return ComparedTensors(x, *y, op);
    return NotImplementedResult();
  });
}

}  // namespace mica::python
