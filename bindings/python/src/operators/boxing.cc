// See boxing.h.
#include "bindings/python/src/operators/boxing.h"

#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/operators/objects.h"
#include "dispatcher/calls/adapters_return.h"
#include "dispatcher/calls/thread_state.h"
#include "schema/default.h"
#include "schema/object.h"

namespace mica::python {
namespace {

using schema::Type;
using schema::TypeKind;

// Where a value stands: an argument, or a result of the operator `result_of`.
struct Place {
  const std::string& name;
  const schema::FunctionSchema* result_of = nullptr;

  std::string text() const {
    return result_of ? "Result (" + name + ") of " + result_of->FullName() + "(), which Python gave,"
                     : "The argument `" + name + "`";
  }
};

[[noreturn]] void RaiseType(PyObject* o, const Type& type, const Place& place) {
  Raise(PyExc_TypeError,
        place.text() + " has type (" + TypeName(o) + "); expected " + type.ToString(false) + ".");
}

Value ListValue(PyObject* o, const Type& type, const Place& place) {
  const Type& element = type.elements[0].unwrapped();
  switch (element.kind) {
    case TypeKind::kTensor:
      if (!IsTensorList(o, type.elements[0].is_optional())) RaiseType(o, type, place);
      return Value(ToTensorList(o));
    case TypeKind::kInt:
    case TypeKind::kSymInt:
      if (!IsIntList(o, type.list_size)) RaiseType(o, type, place);
      return Value(ToIntList(o, type.list_size));
    case TypeKind::kFloat:
      if (!IsFloatList(o)) RaiseType(o, type, place);
      return Value(ToFloatList(o));
    case TypeKind::kBool:
      if (!IsBoolList(o, type.list_size)) RaiseType(o, type, place);
      return Value::Bools(ToBoolList(o));
    case TypeKind::kScalar: {
      if (!IsScalarList(o)) RaiseType(o, type, place);
      const Items items = ItemsOf(o);
      std::vector<Scalar> scalars;
      for (Py_ssize_t i = 0; i < items.size; ++i) scalars.push_back(ToScalar(items.data[i]));
      return Value(std::move(scalars));
    }
    default:
      MICA_THROW(kNotImplemented, place.text(), " has a list type that Python cannot give (",
                 type.ToString(false), ").");
  }
}

PyObject* TupleOfInts(IntSpan ints) {
  Ref list = Own(PyList_New(ints.size()));
  for (int64_t i = 0; i < ints.size(); ++i) PyList_SET_ITEM(list.get(), i, PyLong_FromLongLong(ints[i]));
  return list.release();
}

Value ValueAt(PyObject* o, const Type& type, const Place& place) {
  if (o == Py_None && type.is_optional()) return Value();
  const Type& t = type.unwrapped();
  switch (t.kind) {
    case TypeKind::kTensor:
      if (IsPlainNumber(o)) return Value(WrappedNumber(ToScalar(o)));
      if (!IsTensor(o)) RaiseType(o, type, place);
      return Value(Unwrap(o));
    case TypeKind::kInt:
    case TypeKind::kSymInt:
      if (!IsInt(o)) RaiseType(o, type, place);
      return Value(ToInt(o));
    case TypeKind::kFloat:
      if (!IsNumber(o)) RaiseType(o, type, place);
      return Value(ToDouble(o));
    case TypeKind::kBool:
      if (!PyBool_Check(o)) RaiseType(o, type, place);
      return Value(o == Py_True);
    case TypeKind::kScalar:
      if (!IsNumber(o)) RaiseType(o, type, place);
      return Value(ToScalar(o));
    case TypeKind::kStr:
      if (!PyUnicode_Check(o)) RaiseType(o, type, place);
      return Value(StrView(o));
    case TypeKind::kScalarType:
      if (!IsDTypeLike(o)) RaiseType(o, type, place);
      return Value(ToDType(o));
    case TypeKind::kDevice:
      if (!IsDeviceLike(o)) RaiseType(o, type, place);
      return Value(ToDevice(o));
    case TypeKind::kLayout:
      return Value(Layout::kStrided);
    case TypeKind::kMemoryFormat:
      if (!IsMemoryFormat(o)) RaiseType(o, type, place);
      return Value(AsMemoryFormat(o));
    case TypeKind::kGenerator:
      if (!IsGenerator(o)) RaiseType(o, type, place);
      return Value(static_cast<MicaGenerator*>(AsGenerator(o)));
    case TypeKind::kClass: {
      Value object = ToObjectValue(o, t);
      if (object.is_none()) RaiseType(o, type, place);
      return object;
    }
    case TypeKind::kList:
      return ListValue(o, t, place);
    default:
      MICA_THROW(kNotImplemented, place.text(), " has a type that Python cannot give (", type.ToString(false),
                 ").");
  }
}

}  // namespace

Value ToValue(PyObject* o, const Type& type, const std::string& argument) {
  return ValueAt(o, type, {argument});
}

std::vector<Value> BindToSchema(const schema::FunctionSchema& schema, PyObject* args, PyObject* kwargs) {
  const Py_ssize_t given = PyTuple_GET_SIZE(args);
  if (given > schema.NumPositional()) {
    Raise(PyExc_TypeError, schema.FullName() + "() takes " + std::to_string(schema.NumPositional()) +
                               " positional arguments; it was given " + std::to_string(given) + ".");
  }
  std::vector<Value> values;
  Py_ssize_t used = 0;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const schema::Argument& a = schema.arguments[i];
    PyObject* named = kwargs ? PyDict_GetItemString(kwargs, a.name.c_str()) : nullptr;
    if (!named && kwargs && a.name == "self") named = PyDict_GetItemString(kwargs, "input");
    if (named) ++used;
    if (static_cast<Py_ssize_t>(i) < given) {
      if (named) Raise(PyExc_TypeError, schema.FullName() + "() was given `" + a.name + "` twice.");
      values.push_back(ToValue(PyTuple_GET_ITEM(args, i), a.type, a.name));
    } else if (named) {
      values.push_back(ToValue(named, a.type, a.name));
    } else if (a.default_value) {
      values.push_back(schema::Default(a));
    } else {
      Raise(PyExc_TypeError, schema.FullName() + "() lacks the argument `" + a.name + "` of type " +
                                 a.type.ToString(false) + ".");
    }
  }
  if (kwargs && used != PyDict_GET_SIZE(kwargs)) {
    Raise(PyExc_TypeError, schema.FullName() + "() was given a keyword that its schema, " +
                               schema::ToString(schema) + ", lacks.");
  }
  return values;
}

PyObject* FromValue(const MicaValue& v, const Type& type) {
  switch (v.tag) {
    case MICA_VALUE_NONE:
      return NewNone();
    case MICA_VALUE_TENSOR:
      return Wrap(Tensor::Borrow(v.u.tensor));
    case MICA_VALUE_INT:
      if (type.unwrapped().is(TypeKind::kScalarType)) return FromDType(static_cast<DType>(v.u.i));
      if (type.unwrapped().is(TypeKind::kBool)) return NewBool(v.u.i != 0);
      return PyLong_FromLongLong(v.u.i);
    case MICA_VALUE_FLOAT:
      return PyFloat_FromDouble(v.u.f);
    case MICA_VALUE_BOOL:
      return NewBool(v.u.i != 0);
    case MICA_VALUE_SCALAR:
      return v.u.scalar.tag == MICA_SCALAR_NONE ? NewNone() : FromScalar(Scalar::FromAbi(v.u.scalar));
    case MICA_VALUE_COMPLEX:
      return PyComplex_FromDoubles(v.u.complex_parts[0], v.u.complex_parts[1]);
    case MICA_VALUE_STR:
      return NewStr({v.u.str.data, static_cast<size_t>(v.u.str.size)});
    case MICA_VALUE_INTS:
      return TupleOfInts({v.u.ints.data, v.u.ints.size});
    case MICA_VALUE_DTYPE:
      return FromDType(static_cast<DType>(v.u.i));
    case MICA_VALUE_DEVICE:
      return FromDevice(Device::FromAbi(v.u.device));
    case MICA_VALUE_LAYOUT:
      return FromLayout(Layout::kStrided);
    case MICA_VALUE_MEMORY_FORMAT:
      return FromMemoryFormat(static_cast<MemoryFormat>(v.u.i));
    case MICA_VALUE_GENERATOR:
      return FromGenerator(Generator::FromAbi(v.u.generator));
    case MICA_VALUE_OBJECT:
      return FromObject(v.u.object);
    case MICA_VALUE_TENSORS: {
      Ref list = Own(PyList_New(v.u.tensors.size));
      for (int64_t i = 0; i < v.u.tensors.size; ++i)
        PyList_SET_ITEM(list.get(), i, Wrap(Tensor::Borrow(v.u.tensors.data[i])));
      return list.release();
    }
    case MICA_VALUE_FLOATS: {
      Ref list = Own(PyList_New(v.u.floats.size));
      for (int64_t i = 0; i < v.u.floats.size; ++i)
        PyList_SET_ITEM(list.get(), i, PyFloat_FromDouble(v.u.floats.data[i]));
      return list.release();
    }
    case MICA_VALUE_BOOLS: {
      Ref list = Own(PyList_New(v.u.bools.size));
      for (int64_t i = 0; i < v.u.bools.size; ++i)
        PyList_SET_ITEM(list.get(), i, NewBool(v.u.bools.data[i] != 0));
      return list.release();
    }
    case MICA_VALUE_SCALARS: {
      Ref list = Own(PyList_New(v.u.scalars.size));
      for (int64_t i = 0; i < v.u.scalars.size; ++i)
        PyList_SET_ITEM(list.get(), i, FromScalar(Scalar::FromAbi(v.u.scalars.data[i])));
      return list.release();
    }
    default:
      MICA_THROW(kInternal, "Internal error: a boxed value has the unknown tag (", v.tag, ").");
  }
}

PyObject* TakeResult(MicaValue& v, const Type& type) {
  if (v.tag == MICA_VALUE_TENSOR) return Wrap(TakeTensor(v));
  if (v.tag == MICA_VALUE_TENSORS) return FromTensorList(TakeTensorList(v.u.tensors));
  if (v.tag == MICA_VALUE_OBJECT) {
    PyObject* const object = FromObject(v.u.object);
    ReleaseObject(v.u.object);
    return object;
  }
  return FromValue(v, type);
}

namespace {
template <typename F>
PyObject* CallWith(const Operator& op, const std::vector<Value>& arguments, F&& call) {
  const schema::FunctionSchema& schema = op.schema();
  std::vector<MicaValue> borrowed;
  Work work;
  for (const Value& v : arguments) {
    borrowed.push_back(v.Borrow());
    if (v.is_tensor()) work.Add(v.ToTensor());
    // What an object stands for may be waited for (other ranks, which are threads), whatever the tensors'
    // size.
    if (borrowed.back().tag == MICA_VALUE_OBJECT) work.Add(Dims{kLargeCall});
  }
  std::vector<MicaValue> results(schema.returns.size() + 1);
  for (MicaValue& r : results) r.tag = MICA_VALUE_NONE;
  Run(work, [&] { call(borrowed.data(), static_cast<int64_t>(borrowed.size()), results.data()); });
  // In-place and out forms return what they wrote.
  const auto result = [&](size_t i) -> PyObject* {
    const int written = schema.ReturnsAliasOfArgument(static_cast<int>(i));
    if (written >= 0 && schema.arguments[written].is_mutable()) {
      return FromValue(borrowed[written], schema.arguments[written].type);
    }
    return TakeResult(results[i], schema.returns[i].type);
  };
  if (schema.returns.empty()) return NewNone();
  if (schema.returns.size() == 1) return result(0);
  Ref tuple = Own(PyTuple_New(static_cast<Py_ssize_t>(schema.returns.size())));
  for (size_t i = 0; i < schema.returns.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, Check(result(i)));
  return tuple.release();
}

}  // namespace

PyObject* CallBoxed(const Operator& op, const std::vector<Value>& arguments) {
  return CallWith(op, arguments, [&](const MicaValue* args, int64_t n, MicaValue* results) {
    op.CallBoxed(args, n, results);
  });
}
PyObject* CallDecomposition(const Operator& op, const std::vector<Value>& arguments) {
  return CallWith(op, arguments, [&](const MicaValue* args, int64_t n, MicaValue* results) {
    const ThreadState& t = CurrentThread();
    const KeySet keys = (op.KeysOf(args, n) | t.include) - t.exclude;
    op.spec().adapters->call_slot({op.spec().composite, nullptr}, keys, args, results);
  });
}

namespace {
void CheckObjectResult(const schema::FunctionSchema& schema, size_t i, const Value& v) {
  const std::string mismatch = ObjectMismatch(v.ToObject(), schema.returns[i].type.object_name());
  if (!mismatch.empty())
    Raise(PyExc_TypeError, schema.FullName() + "() got from Python for its result " + std::to_string(i) +
                               " " + mismatch + ".");
}

// Of results that were given before one was refused.
void ReleaseGiven(MicaValue* results, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    MicaValue& v = results[i];
    if (v.tag == MICA_VALUE_TENSOR) TakeTensor(v);
    if (v.tag == MICA_VALUE_TENSORS) TakeTensorList(v.u.tensors);
    if (v.tag == MICA_VALUE_OBJECT) ReleaseObject(v.u.object);
    v = MicaValue{};
  }
}
}  // namespace

void GiveResults(const schema::FunctionSchema& schema, PyObject* result, MicaValue* results) {
  const size_t n = schema.returns.size();
  const auto give = [&](size_t i, PyObject* o) {
    const schema::Return& r = schema.returns[i];
    const Type& t = r.type.unwrapped();
    if (t.is(TypeKind::kTensor) && o == Py_None) {  // a gradient that is not wanted
      results[i].tag = MICA_VALUE_NONE;
      return;
    }
    if (t.is(TypeKind::kTensor) && !IsTensor(o))  // no number becomes a tensor, as an argument's would
      Raise(PyExc_TypeError, schema.FullName() + "() got (" + std::string(TypeName(o)) +
                                 ") from Python for its result " + std::to_string(i) + "; its schema, " +
                                 schema::ToString(schema) + ", says " + r.type.ToString(false) + ".");
    const std::string name = std::to_string(i);
    const Value v = ValueAt(o, r.type, {name, &schema});
    if (v.is_tensor()) {
      results[i] = OwnedTensorValue(v.ToTensor());
    } else if (v.is(Value::Tag::kTensorList)) {
      results[i].tag = MICA_VALUE_TENSORS;
      results[i].u.tensors = GiveTensorList(ToTensorList(o));
    } else if (v.is(Value::Tag::kScalar) && v.ToScalar().is_complex()) {
      results[i].tag = MICA_VALUE_COMPLEX;
      results[i].u.complex_parts[0] = v.ToScalar().ToComplex().real();
      results[i].u.complex_parts[1] = v.ToScalar().ToComplex().imag();
    } else if (!t.object_name().empty()) {
      if (!v.is_none()) CheckObjectResult(schema, i, v);
      results[i] = v.Borrow();
      RetainObject(v.ToObject());
    } else {
      const bool plain = v.is(Value::Tag::kInt) || v.is(Value::Tag::kDouble) || v.is(Value::Tag::kBool) ||
                         v.is(Value::Tag::kScalar) || v.is(Value::Tag::kDType) || v.is(Value::Tag::kDevice);
      MICA_CHECK_IMPLEMENTED(plain, "A kernel in Python cannot return ", r.type.ToString(false), ", which ",
                             schema.FullName(), "() gives; return a tensor, a number or an object.");
      results[i] = v.Borrow();
    }
  };
  const bool all_written = n > 0 && schema.is_mutable() && !schema.is_view();
  if (all_written && schema.ReturnsAliasOfArgument(0) >= 0) return;  // the written arguments are the results
  if (n == 0 && result != Py_None)
    Raise(PyExc_TypeError, schema.FullName() + "() got (" + std::string(TypeName(result)) +
                               ") from Python as its result; its schema, " + schema::ToString(schema) +
                               ", gives none, so that the value would be lost: return None.");
  if (n == 0) return;
  if (n == 1) return give(0, result);
  const Items items = ItemsOf(result);
  MICA_CHECK_TYPE(items.size == static_cast<Py_ssize_t>(n), "The kernel of ", schema.FullName(),
                  " must return a tuple of ", n, " values.");
  for (size_t i = 0; i < n; ++i) {
    try {
      give(i, items.data[i]);
    } catch (...) {
      ReleaseGiven(results, i);
      throw;
    }
  }
}

}  // namespace mica::python
