// What mica.amp is made of: the thread's autocast state as functions of plain values.
#include "dispatcher/layers/autocast.h"

#include "bindings/python/src/creation/convert.h"
#include "bindings/python/src/module/init.h"
#include "dispatcher/plugins/plugins.h"

namespace mica::python {
namespace {

// The number of the backend of that name; raises where no plugin provides it.
int BackendNamed(PyObject* name) {
  const std::string text(StrView(name));
  if (BackendIndex(text) < 0) EnsureProvider("backend:" + text);
  const int backend = BackendIndex(text);
  MICA_CHECK_VALUE(backend >= 0, "The device type (", text,
                   ") of autocast is not that of a device: ", MissingProviderSentence("backend:" + text));
  return backend;
}

PyObject* Get(PyObject*, PyObject* name) {
  return Guarded([&] {
    const int backend = BackendNamed(name);
    const AutocastState& state = CurrentAutocast();
    return Py_BuildValue("(NN)", NewBool((state.enabled >> backend & 1) != 0),
                         FromDType(state.dtypes[static_cast<size_t>(backend)]));
  });
}

// _set_autocast(device_type, enabled, dtype)
PyObject* Set(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *name, *dtype;
    int enabled;
    if (!PyArg_ParseTuple(args, "OpO:_set_autocast", &name, &enabled, &dtype)) throw PythonErrorIsSet();
    const int backend = BackendNamed(name);
    SetAutocastDType(backend, ToDType(dtype));
    SetAutocastEnabled(backend, enabled != 0);
    return NewNone();
  });
}

PyObject* IsAnyEnabled(PyObject*, PyObject*) { return NewBool(CurrentAutocast().enabled != 0); }
PyObject* Enter(PyObject*, PyObject*) {
  return Guarded([] { return PyLong_FromLong(EnterAutocast()); });
}
PyObject* Leave(PyObject*, PyObject*) {
  return Guarded([] { return PyLong_FromLong(LeaveAutocast()); });
}
PyObject* ClearCache(PyObject*, PyObject*) {
  return Guarded([] {
    ClearAutocastCache();
    return NewNone();
  });
}
PyObject* IsCacheEnabled(PyObject*, PyObject*) { return NewBool(CurrentAutocast().cache); }
PyObject* SetCacheEnabled(PyObject*, PyObject* on) {
  return Guarded([&] {
    CurrentAutocast().cache = ToBool(on);
    return NewNone();
  });
}

PyMethodDef kFunctions[] = {
    {"_get_autocast", Get, METH_O, nullptr},
    {"_set_autocast", Set, METH_VARARGS, nullptr},
    {"_is_any_autocast_enabled", IsAnyEnabled, METH_NOARGS, nullptr},
    {"_enter_autocast", Enter, METH_NOARGS, nullptr},
    {"_leave_autocast", Leave, METH_NOARGS, nullptr},
    {"clear_autocast_cache", ClearCache, METH_NOARGS, "Empties this thread's cache of cast parameters."},
    {"is_autocast_cache_enabled", IsCacheEnabled, METH_NOARGS, "Whether casts of parameters are kept."},
    {"set_autocast_cache_enabled", SetCacheEnabled, METH_O, "Whether casts of parameters are kept."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void InitAutocast(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
