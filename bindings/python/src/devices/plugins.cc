// Plugins as Python sees them: loading, listing, and the finder that asks Python's
// entry points.
//
// The loader waits for nobody who holds the GIL: the host lets it go before it takes
// the loader's lock, and the finder takes it while that lock is free.
#include "dispatcher/plugins/plugins.h"

#include <mica/abi.h>
#include "absl/strings/str_cat.h"
#include "bindings/python/src/module/errors.h"
#include "bindings/python/src/module/init.h"
#include "dispatcher/plugins/host.h"

namespace mica::python {
namespace {

// Paths and what is said of them may be any bytes.
Ref Text(std::string_view s) {
  return Own(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "surrogateescape"));
}
void Set(PyObject* dict, const char* key, const Ref& value) {
  Check(PyDict_SetItemString(dict, key, value.get()));
}
void SetText(PyObject* dict, const char* key, std::string_view value) { Set(dict, key, Text(value)); }
void SetBool(PyObject* dict, const char* key, bool value) { Set(dict, key, Own(NewBool(value))); }

template <typename F>
auto WithoutGil(F&& f) {
  const GilRelease release;
  return f();
}

void ThrowIfBad(const absl::Status& s) {
  if (!s.ok()) MICA_THROW(kRuntime, s.message());
}

// The path that a str or os.PathLike stands for, in the file system's bytes.
std::string PathOf(PyObject* o) {
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(o, &bytes)) throw PythonErrorIsSet();
  const Ref owned(bytes);
  return {PyBytes_AS_STRING(bytes), static_cast<size_t>(PyBytes_GET_SIZE(bytes))};
}

Ref InfoOf(const PluginInfo& p) {
  static constexpr const char* kStates[] = {"found", "loaded", "disabled", "refused"};
  const Manifest& m = p.manifest;
  Ref item = Own(PyDict_New());
  PyObject* d = item.get();
  SetText(d, "name", m.name);
  SetText(d, "state", kStates[static_cast<int>(p.state)]);
  SetText(d, "provides", m.provides);
  SetText(d, "path", p.path);
  SetText(d, "version", m.version);
  SetText(d, "vendor", m.vendor);
  SetText(d, "abi", m.name.empty() ? "" : absl::StrCat(m.abi_major, ".", m.abi_minor));
  SetText(d, "cpu_features", m.cpu_features);
  SetText(d, "runtime_version", m.runtime_version);
  SetText(d, "found_by", p.found_by);
  SetText(d, "description", p.description);
  SetText(d, "reason", p.reason);
  SetBool(d, "asked", p.asked);
  const Ref notes = Own(PyList_New(0));
  for (const std::string& note : p.notes) Check(PyList_Append(notes.get(), Text(note).get()));
  Set(d, "notes", notes);
  return item;
}

PyObject* PluginsFunction(PyObject*, PyObject*) {
  return Guarded([&] {
    Ref list = Own(PyList_New(0));
    for (const PluginInfo& p : WithoutGil([] { return Plugins(); }))
      Check(PyList_Append(list.get(), InfoOf(p).get()));
    return list.release();
  });
}

// What a file says of itself, without opening it.
PyObject* ReadPluginFunction(PyObject*, PyObject* path) {
  return Guarded([&] {
    PluginInfo info;
    info.path = RealPath(PathOf(path));
    if (absl::StatusOr<Manifest> m = ReadManifest(info.path); m.ok()) {
      info.manifest = *std::move(m);
    } else {
      info.state = PluginState::kRefused;
      info.reason = std::string(m.status().message());
    }
    return InfoOf(info).release();
  });
}

PyObject* RegistrationsFunction(PyObject*, PyObject* path) {
  return Guarded([&] {
    const std::string file = PathOf(path);
    Ref list = Own(PyList_New(0));
    for (const Registration& r : WithoutGil([&] { return RegistrationsOf(file); })) {
      const Ref item = Own(PyDict_New());
      SetText(item.get(), "kind", r.kind);
      SetText(item.get(), "name", r.name);
      SetText(item.get(), "key", r.key);
      SetText(item.get(), "overrides", r.overrides);
      SetBool(item.get(), "waits", r.waits);
      Check(PyList_Append(list.get(), item.get()));
    }
    return list.release();
  });
}

template <absl::Status (*kOpen)(const std::string& path)>
PyObject* OpenPlugin(PyObject*, PyObject* path) {
  return Guarded([&] {
    const std::string file = PathOf(path);
    ThrowIfBad(WithoutGil([&] { return kOpen(file); }));
    return NewNone();
  });
}

PyObject* EnablePluginFunction(PyObject*, PyObject* args) {
  return Guarded([&] {
    const char* name;
    int on;
    if (!PyArg_ParseTuple(args, "sp:_enable_plugin", &name, &on)) throw PythonErrorIsSet();
    ThrowIfBad(WithoutGil([&] { return on ? EnablePlugin(name) : DisablePlugin(name); }));
    return NewNone();
  });
}

PyObject* AddPluginFolderFunction(PyObject*, PyObject* path) {
  return Guarded([&] {
    const std::string folder = PathOf(path);
    WithoutGil([&] {
      AddPluginFolder(folder);
      return 0;
    });
    return NewNone();
  });
}

// Asks mica._runtime.entry_points, which is imported now and not before: importlib.metadata
// costs more than the rest of `import mica`.
std::vector<FoundPlugin> FindByEntryPoints() {
  const GilAcquire gil;
  const Ref module(PyImport_ImportModule("mica._runtime.entry_points"));
  const Ref found(module ? PyObject_CallMethod(module.get(), "find", nullptr) : nullptr);
  std::vector<FoundPlugin> out;
  for (Py_ssize_t i = 0; found && i < PyList_GET_SIZE(found.get()); ++i) {
    const char *path, *found_by, *error;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(found.get(), i), "sss", &path, &found_by, &error)) break;
    out.push_back({path, found_by, error});
  }
  if (PyErr_Occurred()) PyErr_WriteUnraisable(module.get());
  return out;
}

PyMethodDef kFunctions[] = {
    {"_plugins", PluginsFunction, METH_NOARGS, nullptr},
    {"_read_plugin", ReadPluginFunction, METH_O, nullptr},
    {"_plugin_registrations", RegistrationsFunction, METH_O, nullptr},
    {"load_plugin", OpenPlugin<&LoadPlugin>, METH_O, "load_plugin(path)\n\nOpens a plugin now."},
    {"_replace_plugin", OpenPlugin<&ReplacePlugin>, METH_O, nullptr},
    {"_enable_plugin", EnablePluginFunction, METH_VARARGS, nullptr},
    {"_add_plugin_folder", AddPluginFolderFunction, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// The GIL as the host knows it.
void* ReleaseGil() { return Py_IsInitialized() && PyGILState_Check() ? GilRelease::Save() : nullptr; }
void TakeGil(void* state) { GilRelease::Restore(static_cast<PyThreadState*>(state)); }

}  // namespace

void InitPlugins(PyObject* module) {
  SetInterpreterLock({ReleaseGil, TakeGil});
  Check(PyModule_AddFunctions(module, kFunctions));
  const std::string abi = absl::StrCat(MICA_ABI_MAJOR, ".", MICA_ABI_MINOR);
  Check(PyModule_AddStringConstant(module, "_abi_version", abi.c_str()));
  SetPluginFinder(FindByEntryPoints);
}

}  // namespace mica::python
