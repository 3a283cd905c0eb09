// Backends registered from Python: a device over host memory, and kernels that are
// Python functions. Used by mica.library.Device through _C._Scope.
#pragma once

#include "bindings/python/src/module/object.h"
#include "dispatcher/registration/registration.h"

namespace mica::python {

// scope.add_device(name, count): a device of host memory, whose work runs at once.
void AddHostDevice(Scope& scope, const char* name, int count);
// scope.add_leaf(operator, backend, function, file, line): a kernel as a plugin
// registers it, called with the arguments of the schema, outputs of an out form
// among them. NotImplementedError passes the call on to the CPU.
void AddPythonLeaf(Scope& scope, const char* op, const char* backend, PyObject* function, const char* file,
                   int line);

void InitPythonDevice(PyObject* module);

}  // namespace mica::python
