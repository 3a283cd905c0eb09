// What mica.amp is made of: the thread's autocast state, behind the layer's table.
#include <mica/autocast.h>

#include "bindings/python/src/creation/convert.h"
#include "bindings/python/src/module/init.h"
#include "dispatcher/plugins/plugins.h"
#include "dispatcher/registration/layer_table.h"

namespace mica::python {
namespace {

// The layer's table, with its plugin opened on first use.
const MicaAutocast& Layer() {
  return LayerTable<MicaAutocast>(MICA_AUTOCAST_EXTENSION, "layer:Autocast",
                                  "Autocast needs the autocast plugin.");
}
// The table that is there, else the one that was there last, by which contexts are left also where the plugin
// was disabled since. NULL: there was none yet.
const MicaAutocast* Known() {
  static const std::atomic<const void*>& place = ExtensionPlace(MICA_AUTOCAST_EXTENSION);
  static std::atomic<const void*> last{nullptr};
  const void* const now = place.load(std::memory_order_acquire);
  if (now) last.store(now, std::memory_order_release);
  return static_cast<const MicaAutocast*>(now ? now : last.load(std::memory_order_acquire));
}

// The number of the backend of that name; raises where no plugin provides it.
int BackendNamed(PyObject* name) {
  const std::string text(StrView(name));
  if (BackendIndex(text) < 0) EnsureProvider("backend:" + text);
  const int backend = BackendIndex(text);
  MICA_CHECK_VALUE(backend >= 0, "The device type (", text,
                   ") of autocast is not that of a device: ", MissingProviderSentence("backend:" + text));
  return backend;
}

// The lower dtype of a thread that never asked for another.
DType UnsetDType(int backend) { return backend == keys::kCpu ? DType::kBF16 : DType::kF16; }

// _autocast_enabled(device_type or None): for any device with None.
PyObject* IsEnabled(PyObject*, PyObject* name) {
  return Guarded([&] {
    const int backend = name == Py_None ? -1 : BackendNamed(name);
    return NewBool(Known() && Known()->enabled(backend) != 0);
  });
}

PyObject* LowerDType(PyObject*, PyObject* name) {
  return Guarded([&] {
    const int backend = BackendNamed(name);
    return FromDType(Known() ? static_cast<DType>(Known()->lower_dtype(backend)) : UnsetDType(backend));
  });
}

// _set_autocast(device_type, enabled, dtype)
PyObject* Set(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *name, *object;
    int enabled;
    if (!PyArg_ParseTuple(args, "OpO:_set_autocast", &name, &enabled, &object)) throw PythonErrorIsSet();
    const int backend = BackendNamed(name);
    const DType dtype = ToDType(object);
    MICA_CHECK_VALUE(dtype == DType::kF16 || dtype == DType::kBF16, "The dtype (", Name(dtype),
                     ") of autocast is not one that it casts to; expected float16 or bfloat16.");
    // What is off, and as it is anyway, needs no layer.
    const bool needed = enabled || (!Known() && dtype != UnsetDType(backend));
    const MicaAutocast* const layer = needed ? &Layer() : Known();
    if (!layer) return NewNone();
    ThrowIfError(layer->set_lower_dtype(backend, static_cast<int32_t>(dtype)));
    ThrowIfError(layer->set_enabled(backend, enabled));
    return NewNone();
  });
}

PyObject* Enter(PyObject*, PyObject*) {
  return Guarded([] { return PyLong_FromLong(Known() ? Known()->enter() : 0); });
}
PyObject* Leave(PyObject*, PyObject*) {
  return Guarded([] { return PyLong_FromLong(Known() ? Known()->leave() : 0); });
}
PyObject* ClearCache(PyObject*, PyObject*) {
  return Guarded([] {
    if (Known()) Known()->clear_cache();
    return NewNone();
  });
}
PyObject* IsCacheEnabled(PyObject*, PyObject*) { return NewBool(!Known() || Known()->cache_enabled() != 0); }
PyObject* SetCacheEnabled(PyObject*, PyObject* on) {
  return Guarded([&] {
    const bool enabled = ToBool(on);
    if (!Known() && enabled) return NewNone();  // as it is
    (Known() ? *Known() : Layer()).set_cache_enabled(enabled);
    return NewNone();
  });
}

PyMethodDef kFunctions[] = {
    {"_autocast_enabled", IsEnabled, METH_O, nullptr},
    {"_autocast_dtype", LowerDType, METH_O, nullptr},
    {"_set_autocast", Set, METH_VARARGS, nullptr},
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
