// mica._C: the extension module. It makes the types, adds the generated functions
// and the small functions of the runtime (default dtype, threads, plugins,
// explain). The package mica/ gives all of it its public place.
#include "bindings/python/src/autograd/graph_node.h"
#include "bindings/python/src/creation/creation.h"
#include "bindings/python/src/interception/dispatch_modes.h"
#include "bindings/python/src/module/init.h"
#include "bindings/python/src/module/interrupt.h"
#include "bindings/python/src/module/library_name.h"
#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/operators/boxing.h"
#include "bindings/python/src/operators/result_types.h"
#include "dispatcher/calls/kernel_call.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/calls/warn_once.h"
#include "dispatcher/explain/explain.h"
#include "dispatcher/plugins/host.h"
#include "dispatcher/plugins/settings.h"
#include "kernels/uninitialized.h"
#include "tensor/promote.h"

namespace mica::python {

#define MICA_FOR_SHARDS(X) X(0) X(1) X(2) X(3)
#define MICA_DECLARE(i) extern const PythonFunctionShard kFunctionShard##i;
MICA_FOR_SHARDS(MICA_DECLARE)

namespace {

PyObject* GetDefaultDType(PyObject*, PyObject*) { return FromDType(DefaultDType()); }
PyObject* SetFillUninitializedFunction(PyObject*, PyObject* fill) {
  SetFillUninitialized(fill == Py_True);
  Py_RETURN_NONE;
}
PyObject* SetDefaultDTypeFunction(PyObject*, PyObject* dtype) {
  return Guarded([&] {
    SetDefaultDType(ToDType(dtype));
    return NewNone();
  });
}
PyObject* PromoteTypesFunction(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "OO:promote_types", &a, &b)) throw PythonErrorIsSet();
    return FromDType(PromoteTypes(ToDType(a), ToDType(b)));
  });
}
PyObject* CanCastFunction(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "OO:can_cast", &a, &b)) throw PythonErrorIsSet();
    return NewBool(CanCast(ToDType(a), ToDType(b)));
  });
}
PyObject* ResultTypeFunction(PyObject*, PyObject* args) {
  return Guarded([&] {
    ResultType result;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* o = PyTuple_GET_ITEM(args, i);
      if (IsTensor(o))
        result.Add(Unwrap(o));
      else
        result.Add(ToScalar(o));
    }
    return FromDType(result.dtype());
  });
}

PyObject* GetNumThreads(PyObject*, PyObject*) { return PyLong_FromLong(NumThreads()); }
PyObject* SetNumThreadsFunction(PyObject*, PyObject* n) {
  return Guarded([&] {
    const int64_t count = ToInt(n);
    MICA_CHECK(count > 0 && count <= 4096, "The number of threads (", count, ") must be from 1 to 4096.");
    SetNumThreads(static_cast<int>(count));
    return NewNone();
  });
}

// The arguments of a call, defaults filled in, behind its name; nothing where they are not a whole call.
std::vector<Value> WholeCall(const Operator& op, PyObject* name_and_args) {
  try {
    const Ref args = Own(PyTuple_GetSlice(name_and_args, 1, PyTuple_GET_SIZE(name_and_args)));
    return BindToSchema(op.schema(), args.get(), nullptr);
  } catch (const PythonErrorIsSet&) {
    PyErr_Clear();
  } catch (const Error&) {
  }
  return {};
}

// explain(name, *tensors): the operator's path for these arguments.
PyObject* ExplainFunction(PyObject*, PyObject* args) {
  return Guarded([&] {
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (n < 1 || !PyUnicode_Check(PyTuple_GET_ITEM(args, 0)))
      Raise(PyExc_TypeError, "explain() takes an operator's name first.");
    const Operator& op = GetOperator(StrView(PyTuple_GET_ITEM(args, 0)));
    uint64_t bits = 0;
    for (Py_ssize_t i = 1; i < n; ++i) {
      PyObject* o = PyTuple_GET_ITEM(args, i);
      if (IsTensor(o)) bits |= Unwrap(o).keys().bits();
      if (IsTensorList(o, true))
        for (const Tensor& t : ToTensorList(o)) bits |= t.defined() ? t.keys().bits() : 0;
    }
    const ThreadState& state = CurrentThread();
    if (!(KeySet(bits) & keys::kBackends).bits()) bits |= KeySet::Of(state.default_device.backend).bits();
    const KeySet keys = (KeySet(bits) | state.include) - state.exclude;
    const std::vector<Value> values = WholeCall(op, args);
    if (values.empty()) return NewStr(ExplainText(op, keys));
    const std::vector<MicaValue> borrowed = BorrowAll(values);
    return NewStr(ExplainText(op, keys, borrowed.data(), static_cast<int64_t>(borrowed.size())));
  });
}

// Adds Python functions to Tensor's type, which is static and so closed to
// setattr; modes and subclasses may take their calls. What is there already is replaced.
PyObject* AddTensorAttributes(PyObject* module, PyObject* dict) {
  return Guarded([&] {
    const Ref overridable = Own(PyObject_GetAttrString(module, "_Overridable"));
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &name, &value);) {
      Ref entry = Ref::Borrow(value);
      if (PyFunction_Check(value)) {
        Check(PyObject_SetAttrString(value, "__name__", name));
        const Ref full = Own(PyUnicode_FromFormat("Tensor.%U", name));
        Check(PyObject_SetAttrString(value, "__qualname__", full.get()));
        entry = Own(PyObject_CallOneArg(overridable.get(), value));
      }
      Check(PyDict_SetItem(TensorType.tp_dict, name, entry.get()));
    }
    PyType_Modified(&TensorType);
    return NewNone();
  });
}
// The singleton dtype, layout or memory format of a name, for pickle.
PyObject* MetadataObject(PyObject* module, PyObject* name) { return PyObject_GetAttr(module, name); }

PyObject* StorageLives(PyObject*, PyObject* number) {
  return Guarded([&] { return NewBool(StorageImpl::Lives(ToInt(number))); });
}

// _warn_once(key, message), as mica::WarnOnce.
PyObject* WarnOnceFunction(PyObject*, PyObject* args) {
  return Guarded([&]() -> PyObject* {
    const char *key, *message;
    Check(PyArg_ParseTuple(args, "ss", &key, &message) - 1);
    WarnOnce(key, message);
    if (PyErr_Occurred()) throw PythonErrorIsSet();
    return NewNone();
  });
}
PyObject* SetWarnAlways(PyObject*, PyObject* always) {
  return Guarded([&] {
    WarnAlways(always == Py_True);
    return NewNone();
  });
}
PyObject* GetWarnAlways(PyObject*, PyObject*) { return NewBool(IsWarnAlways()); }

PyObject* SettingFunction(PyObject*, PyObject* args) {
  return Guarded([&] {
    const char* name;
    if (!PyArg_ParseTuple(args, "s:_setting", &name)) throw PythonErrorIsSet();
    return PyLong_FromLongLong(GetSetting(name));
  });
}
PyObject* SetSettingFunction(PyObject*, PyObject* args) {
  return Guarded([&] {
    const char* name;
    long long value;
    if (!PyArg_ParseTuple(args, "sL:_set_setting", &name, &value)) throw PythonErrorIsSet();
    SetSetting(name, value);
    return NewNone();
  });
}

PyObject* PluginOptionsFunction(PyObject*, PyObject*) {
  return Guarded([&] {
    Ref options = Own(PyDict_New());
    for (const auto& [name, value] : PluginOptions())
      Check(PyDict_SetItemString(options.get(), name.c_str(), Own(PyLong_FromLongLong(value)).get()));
    return options.release();
  });
}
PyObject* SetPluginOptionFunction(PyObject*, PyObject* args) {
  return Guarded([&] {
    const char* name;
    long long value;
    if (!PyArg_ParseTuple(args, "sL:set_plugin_option", &name, &value)) throw PythonErrorIsSet();
    SetPluginOption(name, value);
    return NewNone();
  });
}

PyMethodDef kFunctions[] = {
    {"get_default_dtype", GetDefaultDType, METH_NOARGS, "get_default_dtype() -> dtype"},
    {"_set_fill_uninitialized", SetFillUninitializedFunction, METH_O, nullptr},
    {"_setting", SettingFunction, METH_VARARGS, nullptr},
    {"_set_setting", SetSettingFunction, METH_VARARGS, nullptr},
    {"_plugin_options", PluginOptionsFunction, METH_NOARGS, nullptr},
    {"_set_plugin_option", SetPluginOptionFunction, METH_VARARGS, nullptr},
    {"set_default_dtype", SetDefaultDTypeFunction, METH_O,
     "set_default_dtype(dtype)\n\nOf tensors made from Python floats."},
    {"promote_types", PromoteTypesFunction, METH_VARARGS, "promote_types(type1, type2) -> dtype"},
    {"can_cast", CanCastFunction, METH_VARARGS, "can_cast(from_, to) -> bool"},
    {"result_type", ResultTypeFunction, METH_VARARGS, "result_type(tensor1, tensor2) -> dtype"},
    {"get_num_threads", GetNumThreads, METH_NOARGS, "get_num_threads() -> int"},
    {"set_num_threads", SetNumThreadsFunction, METH_O,
     "set_num_threads(n)\n\nAt most this many threads in a kernel."},
    {"_warn_once", WarnOnceFunction, METH_VARARGS, nullptr},
    {"_set_warn_always", SetWarnAlways, METH_O, nullptr},
    {"_is_warn_always", GetWarnAlways, METH_NOARGS, nullptr},
    {"_explain", ExplainFunction, METH_VARARGS, nullptr},
    {"_add_tensor_attributes", AddTensorAttributes, METH_O, nullptr},
    {"_metadata_object", MetadataObject, METH_O, nullptr},
    {"_storage_lives", StorageLives, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

void WarnInPython(std::string_view message) {
  GilAcquire gil;
  if (PyErr_WarnEx(PyExc_UserWarning, std::string(message).c_str(), 1) < 0) PyErr_WriteUnraisable(nullptr);
}

void InitModule(PyObject* module) {
  InitErrors(module);
  InitMetadataObjects(module);
  InitSize(module);
  InitGenerator(module);
  InitTensorType(module);
  InitGraphNode(module);
  InitBufferType(module);
  InitFrames(module);
  InitVmap(module);
  InitFunctionalize(module);
  InitTrace(module);
  InitAutograd(module);
  InitCustomFunctions(module);
  InitLibrary(module);
  InitObjects(module);
  InitPlugins(module);
  InitBackends(module);
  InitDevices(module);
  InitGraphs(module);
  InitMemory(module);
  InitAutocast(module);
  InitOverride(module);
  InitOverridable(module);
  InitDispatchModes(module);
  InitSubclasses(module);
  InitModuleSlots(module);
  InitLibraryName(module);
  InitResultTypes(module);
  Check(PyModule_AddFunctions(module, kFunctions));
  Check(PyModule_AddFunctions(module, kCreationFunctions));
  Check(PyModule_AddFunctions(module, kDlpackFunctions));
  const Ref functions = Own(PyDict_New());
  Check(PyModule_AddObjectRef(module, "_functions", functions.get()));
#define MICA_ADD(i) AddFunctions(module, kFunctionShard##i);
  MICA_FOR_SHARDS(MICA_ADD)
  PyType_Modified(&TensorType);
  SetWarningHandler(WarnInPython);
  InitInterrupt();
}

PyModuleDef kModule = {PyModuleDef_HEAD_INIT,
                       "mica._C",
                       "Mica's extension module.",
                       -1,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr};

}  // namespace
}  // namespace mica::python

PyMODINIT_FUNC PyInit__C() {
  using mica::python::Ref;
  Ref module(PyModule_Create(&mica::python::kModule));
  if (!module) return nullptr;
  try {
    mica::python::InitModule(module.get());
  } catch (...) {
    mica::python::SetErrorFromException();
    return nullptr;
  }
  return module.release();
}
