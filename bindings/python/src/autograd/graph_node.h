// The Python object of a node of the backward graph: grad_fn, next_functions.
#pragma once

#include "bindings/python/src/module/object.h"
#include "dispatcher/layers/autograd_interface.h"

namespace mica::python {

extern PyTypeObject GraphNodeType;

// The object of the node, of a subclass of Node that is named after it; None for NULL. A node has one
// object at a time.
PyObject* WrapNode(NodePtr node);
inline bool IsNode(PyObject* o) { return PyObject_TypeCheck(o, &GraphNodeType); }
GraphNode* UnwrapNode(PyObject* o);
void InitGraphNode(PyObject* module);

// A Python object that C++ owns, released under the GIL wherever that happens.
std::shared_ptr<PyObject> SharedObject(PyObject* o);

// A function without arguments that calls `remover`.
PyObject* FromRemover(HookRemover remover);

// Python callables as hooks; they take the GIL when called.
std::shared_ptr<SavedTensorHooks> MakeSavedTensorHooks(PyObject* pack, PyObject* unpack);
TensorHook MakeTensorHook(PyObject* callable);
AccumulateHook MakeAccumulateHook(PyObject* callable);
NodeHook MakeNodeHook(PyObject* callable);
NodePostHook MakeNodePostHook(PyObject* callable);

}  // namespace mica::python
