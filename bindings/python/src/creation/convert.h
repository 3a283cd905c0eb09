// Between Python objects and the C++ types of operators' arguments.
//
// Is* functions are cheap tests, used to choose an overload; To* functions
// convert an object that the test accepts, and throw a TypeError otherwise.
#pragma once

#include <optional>
#include <vector>

#include "bindings/python/src/tensor/metadata_objects.h"
#include "bindings/python/src/tensor/tensor_object.h"
#include "dispatcher/calls/adapters.h"

namespace mica::python {

bool IsIntSlow(PyObject* o);     // numpy integers, 0-d integer tensors
bool IsNumberSlow(PyObject* o);  // numpy scalars, 0-d tensors
// A Python integer (bool is none), a numpy integer, a 0-d integer tensor.
inline bool IsInt(PyObject* o) { return PyLong_CheckExact(o) || IsIntSlow(o); }
// Any number that a Scalar can hold, bool included.
inline bool IsNumber(PyObject* o) { return PyLong_Check(o) || PyFloat_Check(o) || IsNumberSlow(o); }
// A number that is no tensor.
bool IsPlainNumber(PyObject* o);
// A numpy.ndarray or a subclass (numpy.memmap), known by its types' names: numpy itself is not imported.
bool IsNumpyArray(PyObject* o);

int64_t ToIntSlow(PyObject* o);
inline int64_t ToInt(PyObject* o) {
  if (PyLong_CheckExact(o)) {
    auto* const integer = reinterpret_cast<PyLongObject*>(o);  // one digit: no call
#if PY_VERSION_HEX >= 0x030C0000
    if (PyUnstable_Long_IsCompact(integer)) return PyUnstable_Long_CompactValue(integer);
#else
    const Py_ssize_t digits = Py_SIZE(o);
    if (digits >= -1 && digits <= 1) {
      return digits == 0 ? 0 : digits * static_cast<int64_t>(integer->ob_digit[0]);
    }
#endif
  }
  return ToIntSlow(o);
}
double ToDouble(PyObject* o);
Scalar ToScalar(PyObject* o);
inline bool ToBool(PyObject* o) {
  if (o == Py_True || o == Py_False) return o == Py_True;
  const int truth = PyObject_IsTrue(o);
  Check(truth);
  return truth > 0;
}
PyObject* FromScalar(const Scalar& s);

// A dtype: mica.dtype, or one of Python's bool, int, float, complex.
bool IsDTypeLike(PyObject* o);
DType ToDType(PyObject* o);
// A device: mica.device, a string, a number (of the current accelerator).
inline bool IsDeviceLike(PyObject* o) { return IsDevice(o) || PyUnicode_Check(o) || PyLong_CheckExact(o); }
Device ToDevice(PyObject* o);

// Lists. `size` > 0 lets a single number stand for a list of that many.
bool IsIntList(PyObject* o, int size);
Dims ToIntList(PyObject* o, int size);
bool IsFloatList(PyObject* o);
std::vector<double> ToFloatList(PyObject* o);
bool IsBoolList(PyObject* o, int size);  // of exactly `size` if that is not 0
std::vector<uint8_t> ToBoolList(PyObject* o);
bool IsScalarList(PyObject* o);
bool IsTensorList(PyObject* o, bool none_allowed);
std::vector<Tensor> ToTensorList(PyObject* o);
PyObject* FromTensorList(std::vector<Tensor>&& tensors);  // a tuple

// The elements of a list or tuple, borrowed.
struct Items {
  PyObject** data = nullptr;
  Py_ssize_t size = -1;
  explicit operator bool() const { return size >= 0; }
};
inline Items ItemsOf(PyObject* o) {
  if (PyTuple_Check(o)) return {reinterpret_cast<PyTupleObject*>(o)->ob_item, PyTuple_GET_SIZE(o)};
  if (PyList_Check(o)) return {reinterpret_cast<PyListObject*>(o)->ob_item, PyList_GET_SIZE(o)};
  return {};
}

}  // namespace mica::python
