// The two hot paths of mica.nn.Module, its call and the attributes that are parameters,
// buffers or submodules, as slots of its classes. Both are Python methods too, which do the
// same: Module.__call__ and Module.__getattr__.
//
// The protocol is Python's: a class or an instance may define forward(), a class __call__,
// __getattr__ or __getattribute__, at any time. A class that inherits another __call__ or
// __getattr__ than Module's gets no slot from here, and CPython puts its own into the slots
// of a class and of all below when such a name is assigned. A call with hooks goes to
// Module._call_with_hooks.
#include "bindings/python/src/module/init.h"

namespace mica::python {
namespace {

constexpr int kTables = 4;       // dictionaries of hooks that a call asks for
constexpr Py_ssize_t kFast = 6;  // arguments of a call that is passed on without a tuple

struct Names {
  PyObject* hooks[kTables];
  PyObject* attributes[3];
  PyObject *forward, *forward_failed, *call_with_hooks, *call, *getattr, *getattribute;
};
Names g_names;
PyObject* g_everywhere[kTables];            // the hooks on all modules
PyObject* g_module_call = nullptr;          // Module.__call__ as Mica defines it
PyObject* g_module_getattr = nullptr;       // Module.__getattr__ likewise
PyObject* g_object_getattribute = nullptr;  // object.__getattribute__

PyObject* FastGetattr(PyObject* self, PyObject* name);

// The instance's dictionary, borrowed; NULL without an error where it has none yet.
PyObject* DictOf(PyObject* self) {
  PyObject** const place = _PyObject_GetDictPtr(self);
  return place ? *place : nullptr;
}

bool HasEntries(PyObject* table) { return table && (!PyDict_Check(table) || PyDict_GET_SIZE(table) != 0); }

bool HasHooks(PyObject* dict) {
  for (int i = 0; i < kTables; ++i) {
    if (HasEntries(g_everywhere[i])) return true;
    if (HasEntries(PyDict_GetItemWithError(dict, g_names.hooks[i]))) return true;
  }
  return false;
}

// forward(*args, **kwargs) where it is a function of the class; any other callable is
// looked up as an attribute.
PyObject* CallForward(PyObject* self, PyObject* dict, PyObject* args, PyObject* kwargs) {
  PyObject* const function =
      Py_TYPE(self)->tp_getattro == FastGetattr ? _PyType_Lookup(Py_TYPE(self), g_names.forward) : nullptr;
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  const bool plain = function && PyFunction_Check(function) && n < kFast && !kwargs &&
                     !PyDict_GetItemWithError(dict, g_names.forward);
  if (!plain) {
    const Ref forward(PyObject_GetAttr(self, g_names.forward));
    return forward ? PyObject_Call(forward.get(), args, kwargs) : nullptr;
  }
  PyObject* all[kFast + 1] = {nullptr, self};
  for (Py_ssize_t i = 0; i < n; ++i) all[i + 2] = PyTuple_GET_ITEM(args, i);
  const Ref held = Ref::Borrow(function);
  return PyObject_Vectorcall(function, all + 1, static_cast<size_t>(n + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                             nullptr);
}

// Tells the module of the error that its forward() raised, which goes on.
PyObject* Failed(PyObject* self) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  if (_PyType_Lookup(Py_TYPE(self), g_names.forward_failed)) {  // which takes no error that is set
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback) PyException_SetTraceback(error, traceback);
    const Ref told(PyObject_CallMethodObjArgs(self, g_names.forward_failed, error, nullptr));
    if (!told) PyErr_Clear();
  }
  PyErr_Restore(type, error, traceback);
  return nullptr;
}

PyObject* Call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return Guarded([&]() -> PyObject* {
    PyObject* const dict = DictOf(self);
    if (kwargs && PyDict_GET_SIZE(kwargs) == 0) kwargs = nullptr;
    if (dict && !HasHooks(dict)) {
      PyObject* const result = CallForward(self, dict, args, kwargs);
      return result ? result : Failed(self);
    }
    const Ref named = kwargs ? Ref::Borrow(kwargs) : Own(PyDict_New());
    return PyObject_CallMethodObjArgs(self, g_names.call_with_hooks, args, named.get(), nullptr);
  });
}

// What Module.__getattr__ finds, without leaving C++: NULL where it is to be asked.
PyObject* FindInTables(PyObject* dict, PyObject* name) {
  for (PyObject* kind : g_names.attributes) {
    PyObject* const table = PyDict_GetItemWithError(dict, kind);
    if (!table || !PyDict_Check(table)) continue;
    if (PyObject* const found = PyDict_GetItemWithError(table, name)) return Py_NewRef(found);
  }
  return nullptr;
}

PyObject* FastGetattr(PyObject* self, PyObject* name) {
  PyObject* const dict = DictOf(self);
  if (dict && !_PyType_Lookup(Py_TYPE(self), name)) {
    if (PyObject* const own = PyDict_GetItemWithError(dict, name)) return Py_NewRef(own);
    if (PyErr_Occurred()) return nullptr;
    if (PyObject* const found = FindInTables(dict, name)) return found;
  } else {
    PyObject* const found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  }
  PyErr_Clear();
  return PyObject_CallFunctionObjArgs(g_module_getattr, self, name, nullptr);
}

// _fast_module(cls): gives a class of modules the slots above for what it inherits from Module.
PyObject* FastModule(PyObject*, PyObject* cls) {
  if (!PyType_Check(cls) || !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(cls), Py_TPFLAGS_HEAPTYPE))
    Py_RETURN_NONE;
  auto* const type = reinterpret_cast<PyTypeObject*>(cls);
  if (_PyType_Lookup(type, g_names.call) == g_module_call) type->tp_call = Call;
  if (_PyType_Lookup(type, g_names.getattr) == g_module_getattr &&
      _PyType_Lookup(type, g_names.getattribute) == g_object_getattribute)
    type->tp_getattro = FastGetattr;
  PyType_Modified(type);
  Py_RETURN_NONE;
}

// _init_modules(call, getattr, tables): the methods of Module, and the dictionaries of the hooks
// on all modules in the order of g_names.hooks.
PyObject* SetModules(PyObject*, PyObject* args) {
  PyObject *call, *getattr, *tables[kTables];
  if (!PyArg_ParseTuple(args, "OOOOOO", &call, &getattr, tables, tables + 1, tables + 2, tables + 3))
    return nullptr;
  g_module_call = Py_NewRef(call);
  g_module_getattr = Py_NewRef(getattr);
  for (int i = 0; i < kTables; ++i) g_everywhere[i] = Py_NewRef(tables[i]);
  Py_RETURN_NONE;
}

PyMethodDef kFunctions[] = {{"_fast_module", FastModule, METH_O, nullptr},
                            {"_init_modules", SetModules, METH_VARARGS, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InitModuleSlots(PyObject* module) {
  const auto name = [](const char* text) { return Check(PyUnicode_InternFromString(text)); };
  g_names = {{name("_forward_hooks"), name("_forward_pre_hooks"), name("_backward_hooks"),
              name("_backward_pre_hooks")},
             {name("_parameters"), name("_buffers"), name("_modules")},
             name("forward"),
             name("_forward_failed"),
             name("_call_with_hooks"),
             name("__call__"),
             name("__getattr__"),
             name("__getattribute__")};
  g_object_getattribute = Check(_PyType_Lookup(&PyBaseObject_Type, g_names.getattribute));
  Check(PyModule_AddFunctions(module, kFunctions));
}

}  // namespace mica::python
