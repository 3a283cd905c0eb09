// Backends by name: which there are, which have devices, which one a program means, and telling Python of new
// ones.
#include "bindings/python/src/devices/backends.h"

#include <algorithm>
#include <string>
#include <vector>

#include "bindings/python/src/creation/convert.h"
#include "bindings/python/src/module/init.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/plugins/plugins.h"

namespace mica::python {
namespace {

// What torch calls PrivateUse1: the name that a program gives its own backend. Guarded by the GIL.
std::string& PrivateName() {
  static auto* name = new std::string("privateuseone");
  return *name;
}

// Opens the plugin that provides the backend.
int CountOf(const std::string& backend) {
  if (BackendIndex(backend) < 0) EnsureProvider("backend:" + backend);
  return DeviceCount(BackendIndex(backend));
}

PyObject* ListOf(const std::vector<std::string>& names) {
  Ref list = Own(PyList_New(0));
  for (const std::string& name : names) Check(PyList_Append(list.get(), Own(NewStr(name)).get()));
  return list.release();
}

PyObject* DeviceCountFunction(PyObject*, PyObject* name) {
  return Guarded([&] { return PyLong_FromLong(CountOf(std::string(StrView(name)))); });
}
PyObject* BackendNames(PyObject*, PyObject*) {
  return Guarded([&] {
    std::vector<std::string> names;
    for (int b = 0; b < BackendNameCount(); ++b) names.push_back(BackendName(b));
    return ListOf(names);
  });
}
// _known_backends(look): False looks in the folders, True everywhere, None nowhere.
PyObject* KnownBackendsFunction(PyObject*, PyObject* look) {
  return Guarded([&] {
    if (look == Py_None) return ListOf(KnownBackends(Look::kNowhere));
    return ListOf(KnownBackends(ToBool(look) ? Look::kEverywhere : Look::kInFolders));
  });
}
// _accelerators(open)
PyObject* AcceleratorsFunction(PyObject*, PyObject* open) {
  return Guarded([&] { return ListOf(Accelerators(ToBool(open))); });
}
PyObject* PrivateBackend(PyObject*, PyObject*) {
  return Guarded([&] { return NewStr(PrivateName()); });
}

PyObject* g_told = nullptr;  // what is called when there may be more backends; kept for good

void TellPython() {
  if (!Py_IsInitialized()) return;
  const GilAcquire gil;
  PyObject* const said = PyObject_CallNoArgs(g_told);
  if (!said) PyErr_WriteUnraisable(g_told);  // nobody waits for an exception here
  Py_XDECREF(said);
}
// A name without a plugin: devices of it can be spelled and compared, and there are none.
PyObject* RegisterName(PyObject*, PyObject* name) {
  return Guarded([&] {
    RegisterBackendName(StrView(name));
    TellPython();
    return NewNone();
  });
}
PyObject* RenamePrivate(PyObject*, PyObject* name) {
  return Guarded([&] {
    MICA_CHECK(
        RegisterBackendName(StrView(name)) > keys::kMeta, "The backend (", std::string(StrView(name)),
        ") is Mica's own, and cannot be the private one; give rename_privateuse1_backend() the name of "
        "a plugin's backend, or a new one.");
    PrivateName() = std::string(StrView(name));
    TellPython();
    return NewNone();
  });
}
// _tell_of_backends(function): it is called without arguments, on any thread.
PyObject* TellOfBackends(PyObject*, PyObject* function) {
  return Guarded([&] {
    if (!PyCallable_Check(function))
      Raise(PyExc_TypeError, std::string("_tell_of_backends() gets a function; this value is of type (") +
                                 TypeName(function) + ").");
    g_told = Py_NewRef(function);
    SetBackendsHook(TellPython);
    return NewNone();
  });
}

PyMethodDef kFunctions[] = {{"_register_backend_name", RegisterName, METH_O, nullptr},
                            {"_device_count", DeviceCountFunction, METH_O, nullptr},
                            {"_backend_names", BackendNames, METH_NOARGS, nullptr},
                            {"_known_backends", KnownBackendsFunction, METH_O, nullptr},
                            {"_accelerators", AcceleratorsFunction, METH_O, nullptr},
                            {"_private_backend", PrivateBackend, METH_NOARGS, nullptr},
                            {"_rename_private_backend", RenamePrivate, METH_O, nullptr},
                            {"_tell_of_backends", TellOfBackends, METH_O, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

std::vector<std::string> Accelerators(bool open) {
  std::vector<std::string> names;
  if (open) {
    for (const std::string& name : KnownBackends(Look::kEverywhere)) CountOf(name);
  }
  for (int b = 2; b < BackendNameCount(); ++b) {
    if (DeviceCount(b) > 0) names.push_back(BackendName(b));
  }
  std::stable_partition(names.begin(), names.end(), [](const std::string& n) { return n == PrivateName(); });
  return names;
}

int Accelerator() {
  for (const bool open : {false, true}) {
    const std::vector<std::string> names = Accelerators(open);
    if (!names.empty()) return BackendIndex(names[0]);
  }
  return -1;
}

void InitBackends(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
