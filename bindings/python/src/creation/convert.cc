// Conversions of numbers and lists; see convert.h.
#include "bindings/python/src/creation/convert.h"

#include "bindings/python/src/devices/backends.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "bindings/python/src/tensor/item.h"
#include "bindings/python/src/tensor/symbolic.h"
#include "dispatcher/devices/devices.h"

namespace mica::python {
namespace {

// A number of numpy's (not its strings and dates), known by its type's name; numpy itself is
// not imported.
bool IsNumpyScalar(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  if (std::strncmp(name, "numpy.", 6) != 0) return false;
  static constexpr std::string_view kKinds[] = {"bool",    "int",  "uint",  "float",
                                                "complex", "long", "ulong", "clong"};
  const std::string_view kind(name + 6);
  return std::any_of(std::begin(kKinds), std::end(kKinds),
                     [&](std::string_view k) { return kind.starts_with(k); });
}

[[noreturn]] void RaiseNot(PyObject* o, const char* what) {
  Raise(PyExc_TypeError,
        std::string("A value of type ") + TypeName(o) + " is given where " + what + " is expected.");
}

[[noreturn]] void RaiseTooLarge(PyObject* o) {
  const Ref bits = Own(PyObject_CallMethod(o, "bit_length", nullptr));
  Raise(PyExc_OverflowError, "An integer of (" + std::string(StrView(Own(PyObject_Str(bits.get())).get())) +
                                 ") bits does not fit 64 bits.");
}

}  // namespace

bool IsIntSlow(PyObject* o) {
  if (PyBool_Check(o) || PyFloat_Check(o)) return false;
  if (PyLong_Check(o)) return true;
  if (IsTensor(o)) return Unwrap(o).ndim() == 0 && IsInteger(Unwrap(o).dtype());
  if (!PyIndex_Check(o)) return false;
  if (!IsNumpyArray(o)) return true;
  const Ref index(PyNumber_Index(o));  // a 0-d array of an integer is one
  if (!index) PyErr_Clear();
  return static_cast<bool>(index);
}

bool IsNumpyArray(PyObject* o) {
  for (const PyTypeObject* type = Py_TYPE(o); type; type = type->tp_base)
    if (std::strcmp(type->tp_name, "numpy.ndarray") == 0) return true;
  return false;
}

bool IsNumberSlow(PyObject* o) {
  if (PyComplex_Check(o)) return true;
  if (IsTensor(o)) return Unwrap(o).ndim() == 0 && !Unwrap(o).requires_grad();
  return IsNumpyScalar(o) || IsSymbolic(o);
}

bool IsPlainNumber(PyObject* o) {
  return PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o) ||
         (!IsTensor(o) && (IsNumpyScalar(o) || IsSymbolic(o)));
}

int64_t ToIntSlow(PyObject* o) {
  if (IsTensor(o)) return ItemOf(Unwrap(o)).ToInt();
  if (PyFloat_Check(o)) RaiseNot(o, "an integer");
  if (IsSymbolic(o)) return ToInt(HintOf(o).get());
  const Ref index = Own(PyNumber_Index(o));
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow != 0) RaiseTooLarge(index.get());
  return v;
}

double ToDouble(PyObject* o) {
  if (IsTensor(o)) return ItemOf(Unwrap(o)).ToDouble();
  if (PyComplex_Check(o)) RaiseNot(o, "a real number");
  if (IsSymbolic(o)) return ToDouble(HintOf(o).get());
  const double v = PyFloat_AsDouble(o);
  if (v == -1 && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError) || !PyLong_Check(o)) throw PythonErrorIsSet();
    Raise(PyExc_OverflowError, "An integer is too large for a float; expected one below 2^1024.");
  }
  return v;
}

Scalar ToScalar(PyObject* o) {
  if (PyFloat_Check(o)) return Scalar(PyFloat_AS_DOUBLE(o));
  if (PyBool_Check(o)) return Scalar(o == Py_True);
  if (PyLong_Check(o)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow == 0) return Scalar(static_cast<int64_t>(v));
    const unsigned long long u = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : 0;
    if (overflow < 0 || PyErr_Occurred()) {
      PyErr_Clear();
      RaiseTooLarge(o);
    }
    return Scalar(static_cast<uint64_t>(u));
  }
  if (PyComplex_Check(o)) {
    const Py_complex c = PyComplex_AsCComplex(o);
    return Scalar(std::complex<double>(c.real, c.imag));
  }
  if (IsTensor(o)) return ItemOf(Unwrap(o));
  if (std::strcmp(Py_TYPE(o)->tp_name, "numpy.bool_") == 0 ||
      std::strcmp(Py_TYPE(o)->tp_name, "numpy.bool") == 0) {
    return Scalar(PyObject_IsTrue(o) > 0);
  }
  if (IsSymbolic(o)) return ToScalar(HintOf(o).get());
  if (PyIndex_Check(o)) return ToScalar(Own(PyNumber_Index(o)).get());
  if (std::strncmp(Py_TYPE(o)->tp_name, "numpy.complex", 13) == 0) {
    const Py_complex c = PyComplex_AsCComplex(o);
    if (PyErr_Occurred()) throw PythonErrorIsSet();
    return Scalar(std::complex<double>(c.real, c.imag));
  }
  if (IsNumpyScalar(o)) return Scalar(ToDouble(o));
  RaiseNot(o, "a number");
}

PyObject* FromScalar(const Scalar& s) {
  switch (s.tag()) {
    case Scalar::Tag::kBool:
      return NewBool(s.ToBool());
    case Scalar::Tag::kInt:
      return s.is_large_unsigned() ? PyLong_FromUnsignedLongLong(s.To<uint64_t>())
                                   : PyLong_FromLongLong(s.ToInt());
    case Scalar::Tag::kFloat:
      return PyFloat_FromDouble(s.ToDouble());
    case Scalar::Tag::kComplex:
      return PyComplex_FromDoubles(s.ToComplex().real(), s.ToComplex().imag());
    default:
      return NewNone();
  }
}

bool IsDTypeLike(PyObject* o) {
  return IsDType(o) || o == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
         o == reinterpret_cast<PyObject*>(&PyLong_Type) || o == reinterpret_cast<PyObject*>(&PyBool_Type) ||
         o == reinterpret_cast<PyObject*>(&PyComplex_Type);
}

DType ToDType(PyObject* o) {
  if (IsDType(o)) return AsDType(o);
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::kF64;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::kI64;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::kBool;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return DType::kC128;
  RaiseNot(o, "a mica.dtype");
}

Device ToDevice(PyObject* o) {
  if (IsDevice(o)) return AsDevice(o);
  if (PyUnicode_Check(o)) return Device::Parse(StrView(o));
  if (PyLong_CheckExact(o)) {
    MICA_CHECK_VALUE(ToInt(o) >= 0 && ToInt(o) < 32768, "The device number (", ToInt(o),
                     ") is not one from 0 to 32767.");
    const int backend = Accelerator();
    MICA_CHECK(backend >= 0, "The device is given as a number (", ToInt(o),
               "), but no plugin provides an accelerator's device; name the device, as in 'cpu'.");
    const Device d{static_cast<int16_t>(backend), static_cast<int16_t>(ToInt(o))};
    MICA_CHECK(d.index < DeviceCount(d.backend), "The device (", d.ToString(),
               ") does not exist; the backend (", BackendName(d.backend), ") has (", DeviceCount(d.backend),
               ") devices, numbered from 0.");
    return d;
  }
  RaiseNot(o, "a device (mica.device or a string)");
}

bool IsIntList(PyObject* o, int size) {
  const Items items = ItemsOf(o);
  if (!items) return size > 0 && IsInt(o);
  for (Py_ssize_t i = 0; i < items.size; ++i)
    if (!IsInt(items.data[i])) return false;
  return true;
}

Dims ToIntList(PyObject* o, int size) {
  Dims dims;
  if (const Items items = ItemsOf(o)) {
    for (Py_ssize_t i = 0; i < items.size; ++i) dims.push_back(ToInt(items.data[i]));
  } else {
    dims.resize(size > 0 ? size : 1, ToInt(o));
  }
  return dims;
}

bool IsFloatList(PyObject* o) {
  const Items items = ItemsOf(o);
  if (!items) return false;
  for (Py_ssize_t i = 0; i < items.size; ++i)
    if (!IsNumber(items.data[i])) return false;
  return true;
}

std::vector<double> ToFloatList(PyObject* o) {
  const Items items = ItemsOf(o);
  std::vector<double> out;
  for (Py_ssize_t i = 0; i < items.size; ++i) out.push_back(ToDouble(items.data[i]));
  return out;
}

bool IsBoolList(PyObject* o, int size) {
  const Items items = ItemsOf(o);
  if (!items || (size > 0 && items.size != size)) return false;
  for (Py_ssize_t i = 0; i < items.size; ++i)
    if (!PyBool_Check(items.data[i])) return false;
  return true;
}

std::vector<uint8_t> ToBoolList(PyObject* o) {
  const Items items = ItemsOf(o);
  std::vector<uint8_t> out;
  for (Py_ssize_t i = 0; i < items.size; ++i) out.push_back(items.data[i] == Py_True);
  return out;
}

bool IsScalarList(PyObject* o) { return IsFloatList(o); }

bool IsTensorList(PyObject* o, bool none_allowed) {
  const Items items = ItemsOf(o);
  if (!items) return false;
  for (Py_ssize_t i = 0; i < items.size; ++i)
    if (!IsTensor(items.data[i]) && !(none_allowed && items.data[i] == Py_None)) return false;
  return true;
}

std::vector<Tensor> ToTensorList(PyObject* o) {
  const Items items = ItemsOf(o);
  MICA_CHECK_TYPE(items, "A list of tensors must be a list or tuple, but it is of type (", TypeName(o), ").");
  std::vector<Tensor> out;
  out.reserve(items.size);
  for (Py_ssize_t i = 0; i < items.size; ++i)
    out.push_back(items.data[i] == Py_None ? Tensor()
                                           : TensorIn(items.data[i], "Each item of a list of tensors"));
  return out;
}

PyObject* FromTensorList(std::vector<Tensor>&& tensors) {
  Ref tuple = Own(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, Wrap(std::move(tensors[i])));
  return tuple.release();
}

}  // namespace mica::python
