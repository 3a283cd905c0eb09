// Exceptions both ways: a mica::Error becomes the Python exception of its kind;
// a Python exception travels through C++ as PythonException and arrives as itself.
#pragma once

#include "bindings/python/src/module/object.h"
#include "tensor/error.h"

namespace mica::python {

// A Python exception on its way through C++ (a kernel, a hook, a node written in
// Python). Its kind is kRuntime for whoever only knows Error.
class PythonException : public Error {
 public:
  // Takes the error that is set; needs the GIL.
  static PythonException Take();
  PythonException(const PythonException& o);
  ~PythonException() override;
  // Sets the error again; needs the GIL.
  void Restore() const;

 private:
  PythonException(std::string message, PyObject* type, PyObject* value, PyObject* traceback);
  PyObject* type_;
  PyObject* value_;
  PyObject* traceback_;
};

// Throws PythonException if a call into Python failed.
inline PyObject* CheckCall(PyObject* result) {
  if (!result) throw PythonException::Take();
  return result;
}

extern PyObject* g_out_of_memory_error;  // mica.OutOfMemoryError
extern PyObject* g_linalg_error;         // mica.linalg.LinAlgError

PyObject* PythonTypeOf(ErrorKind kind);
void InitErrors(PyObject* module);

}  // namespace mica::python
