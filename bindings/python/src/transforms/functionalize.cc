// functionalize for mica.func: the border of its frame. The checks that users see are in
// mica/func/_functionalize.py.
#include "bindings/python/src/module/init.h"
#include "bindings/python/src/operators/arguments.h"
#include "dispatcher/layers/functionalization.h"

namespace mica::python {
namespace {

constexpr const char* kScope = "mica.functionalize";

Functionalization& Of(PyObject* capsule) {
  auto* f = static_cast<Functionalization*>(PyCapsule_GetPointer(capsule, kScope));
  if (!f) throw PythonErrorIsSet();
  return *f;
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
    std::unique_ptr<Functionalization> entered = Functionalize(PyObject_IsTrue(remove_views) == 1);
    PyObject* capsule = Check(PyCapsule_New(entered.get(), kScope, nullptr));
    static_cast<void>(entered.release());
    return capsule;
  });
}

PyObject* Exit(PyObject*, PyObject* capsule) {
  return Guarded([&] {
    delete &Of(capsule);
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
    return ListOf(Of(capsule).Lift(inputs));
  });
}

PyObject* Updates(PyObject*, PyObject* capsule) {
  return Guarded([&] { return ListOf(Of(capsule).Updates()); });
}

// _functionalize_apply(capsule, inputs)
PyObject* Apply(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject* capsule;
    int inputs;
    if (!PyArg_ParseTuple(args, "Op:_functionalize_apply", &capsule, &inputs)) throw PythonErrorIsSet();
    Of(capsule).Apply(inputs != 0);
    return NewNone();
  });
}

// _functionalize_result(capsule, tensor)
PyObject* Result(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *capsule, *o;
    if (!PyArg_ParseTuple(args, "OO:_functionalize_result", &capsule, &o)) throw PythonErrorIsSet();
    return Wrap(Of(capsule).Result(TensorIn(o, "A value of functionalize")));
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
