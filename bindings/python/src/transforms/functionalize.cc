// functionalize for mica.func: the border of its frame. The checks that users see are in
// mica/func/_functionalize.py.
#include <mica/functionalize.h>

#include "bindings/python/src/module/init.h"
#include "bindings/python/src/operators/arguments.h"
#include "dispatcher/calls/adapters_return.h"
#include "dispatcher/registration/layer_table.h"

namespace mica::python {
namespace {

constexpr const char* kScope = "mica.functionalize";

// A level, and the table of the build that entered it.
struct Entered {
  explicit Entered(const MicaFunctionalize& table) : layer(table) {}
  const MicaFunctionalize& layer;
  MicaFunctionalLevel* level = nullptr;
};

const MicaFunctionalize& Layer() {
  return LayerTable<MicaFunctionalize>(MICA_FUNCTIONALIZE_EXTENSION, "layer:functionalize",
                                       "functionalize needs the functionalize plugin.");
}

Entered& Of(PyObject* capsule) {
  auto* entered = static_cast<Entered*>(PyCapsule_GetPointer(capsule, kScope));
  if (!entered) throw PythonErrorIsSet();
  return *entered;
}

std::vector<Tensor> Taken(MicaStatus status, const MicaValue& list) {
  ThrowIfError(status);
  return TakeTensorList(list.u.tensors);
}

// Undefined tensors are None.
PyObject* ListOf(std::vector<Tensor> tensors) {
  Ref list = Own(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyObject* item = tensors[i].defined() ? Check(Wrap(std::move(tensors[i]))) : NewNone();
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item);
  }
  return list.release();
}

// _functionalize_enter(remove_views) -> capsule, which the caller gives to _functionalize_exit.
PyObject* Enter(PyObject*, PyObject* remove_views) {
  return Guarded([&] {
    auto entered = std::make_unique<Entered>(Layer());
    Ref capsule = Own(PyCapsule_New(entered.get(), kScope, nullptr));
    ThrowIfError(entered->layer.enter(PyObject_IsTrue(remove_views) == 1, &entered->level));
    static_cast<void>(entered.release());
    return capsule.release();
  });
}

PyObject* Exit(PyObject*, PyObject* capsule) {
  return Guarded([&] {
    const std::unique_ptr<Entered> entered(&Of(capsule));
    entered->layer.leave(entered->level);
    return NewNone();
  });
}

// _functionalize_lift(capsule, list of tensors) -> list
PyObject* Lift(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *capsule, *list;
    if (!PyArg_ParseTuple(args, "OO!:_functionalize_lift", &capsule, &PyList_Type, &list))
      throw PythonErrorIsSet();
    std::vector<Tensor> inputs;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i)
      inputs.push_back(TensorIn(PyList_GET_ITEM(list, i), "A value of functionalize"));
    const Entered& entered = Of(capsule);
    MicaValue lifted{};
    const MicaStatus status = entered.layer.lift(entered.level, AbiType<TensorSpan>::To(inputs), &lifted);
    return ListOf(Taken(status, lifted));
  });
}

PyObject* Updates(PyObject*, PyObject* capsule) {
  return Guarded([&] {
    const Entered& entered = Of(capsule);
    MicaValue updated{};
    const MicaStatus status = entered.layer.updates(entered.level, &updated);
    return ListOf(Taken(status, updated));
  });
}

// _functionalize_apply(capsule, inputs)
PyObject* Apply(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject* capsule;
    int inputs;
    if (!PyArg_ParseTuple(args, "Op:_functionalize_apply", &capsule, &inputs)) throw PythonErrorIsSet();
    const Entered& entered = Of(capsule);
    ThrowIfError(entered.layer.apply(entered.level, inputs));
    return NewNone();
  });
}

// _functionalize_result(capsule, tensor)
PyObject* Result(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *capsule, *o;
    if (!PyArg_ParseTuple(args, "OO:_functionalize_result", &capsule, &o)) throw PythonErrorIsSet();
    const Entered& entered = Of(capsule);
    const Tensor& t = TensorIn(o, "A value of functionalize");
    const MicaTensorResult made = entered.layer.result(entered.level, t.impl());
    ThrowIfError(made.status);
    return Wrap(Tensor::Steal(made.value));
  });
}

PyMethodDef kFunctions[] = {{"_functionalize_enter", Enter, METH_O, nullptr},
                            {"_functionalize_exit", Exit, METH_O, nullptr},
                            {"_functionalize_lift", Lift, METH_VARARGS, nullptr},
                            {"_functionalize_updates", Updates, METH_O, nullptr},
                            {"_functionalize_apply", Apply, METH_VARARGS, nullptr},
                            {"_functionalize_result", Result, METH_VARARGS, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InitFunctionalize(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
