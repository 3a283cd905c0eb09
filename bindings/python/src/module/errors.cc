// The map of error kinds to Python's exception types.
#include "bindings/python/src/module/errors.h"

#include <new>

#include "bindings/python/src/module/interrupt.h"
#include "tensor/linalg_error.h"

namespace mica::python {

PyObject* g_out_of_memory_error = nullptr;
PyObject* g_linalg_error = nullptr;
namespace {
PyObject* g_device_lost_error = nullptr;  // mica.DeviceLostError
}

void SetError(PyObject* type, std::string_view message) noexcept {
  const Ref text(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "replace"));
  if (text) PyErr_SetObject(type, text.get());
}

void Raise(PyObject* type, const std::string& message) {
  SetError(type, message);
  throw PythonErrorIsSet();
}

PyObject* PythonTypeOf(ErrorKind kind) {
  if (kind == kLinAlgError) return g_linalg_error;
  switch (kind) {
    case ErrorKind::kRuntime:
      return PyExc_RuntimeError;
    case ErrorKind::kValue:
      return PyExc_ValueError;
    case ErrorKind::kType:
      return PyExc_TypeError;
    case ErrorKind::kIndex:
      return PyExc_IndexError;
    case ErrorKind::kNotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::kOutOfMemory:
      return g_out_of_memory_error;
    case ErrorKind::kInternal:
      return PyExc_RuntimeError;
    case ErrorKind::kZeroDivision:
      return PyExc_ZeroDivisionError;
    case ErrorKind::kOverflow:
      return PyExc_OverflowError;
    case ErrorKind::kInterrupted:
      return PyExc_KeyboardInterrupt;
    case ErrorKind::kDeviceLost:
      return g_device_lost_error;
  }
  return PyExc_RuntimeError;
}

void SetErrorFromException() noexcept {
  try {
    throw;
  } catch (const PythonErrorIsSet&) {
  } catch (const PythonException& e) {
    e.Restore();
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::kInterrupted && RestoreInterrupt()) return;
    SetError(PythonTypeOf(e.kind()), e.message());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    SetError(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "A C++ exception of an unknown type was thrown.");
  }
}

PythonException::PythonException(std::string message, PyObject* type, PyObject* value, PyObject* traceback)
    : Error(ErrorKind::kRuntime, std::move(message), "", 0),
      type_(type),
      value_(value),
      traceback_(traceback) {}

PythonException PythonException::Take() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  std::string message = "A call into Python failed.";
  if (Ref text{value ? PyObject_Str(value) : nullptr}; text) {
    if (const char* utf8 = PyUnicode_AsUTF8(text.get())) message = utf8;
  }
  PyErr_Clear();
  return PythonException(std::move(message), type, value, traceback);
}

PythonException::PythonException(const PythonException& o)
    : Error(o), type_(o.type_), value_(o.value_), traceback_(o.traceback_) {
  GilAcquire gil;
  Py_XINCREF(type_);
  Py_XINCREF(value_);
  Py_XINCREF(traceback_);
}

PythonException::~PythonException() {
  if (!type_ || !Py_IsInitialized()) return;
  GilAcquire gil;
  Py_XDECREF(type_);
  Py_XDECREF(value_);
  Py_XDECREF(traceback_);
}

void PythonException::Restore() const {
  Py_XINCREF(type_);
  Py_XINCREF(value_);
  Py_XINCREF(traceback_);
  PyErr_Restore(type_, value_, traceback_);
}

void InitErrors(PyObject* module) {
  g_out_of_memory_error = Check(PyErr_NewExceptionWithDoc(
      "mica.OutOfMemoryError", "A device has no memory left for a request; the message names both.",
      PyExc_RuntimeError, nullptr));
  Check(PyModule_AddObjectRef(module, "OutOfMemoryError", g_out_of_memory_error));
  g_device_lost_error = Check(PyErr_NewExceptionWithDoc(
      "mica.DeviceLostError",
      "A device does nothing more in this process; tensors of the CPU and of other devices can be used.",
      PyExc_RuntimeError, nullptr));
  Check(PyModule_AddObjectRef(module, "DeviceLostError", g_device_lost_error));
  g_linalg_error = Check(PyErr_NewExceptionWithDoc(
      "mica.linalg.LinAlgError", "A matrix is singular, not positive-definite, or does not converge.",
      PyExc_RuntimeError, nullptr));
  Check(PyModule_AddObjectRef(module, "LinAlgError", g_linalg_error));
}

}  // namespace mica::python
