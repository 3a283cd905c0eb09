// The Python object of a node of the backward graph: grad_fn, next_functions.
#pragma once

#include "mica/bindings/python/object.h"
#include "mica/dispatcher/autograd_interface.h"

namespace mica::python {

extern PyTypeObject GraphNodeType;

// A new object for the node; None for NULL. Objects of one node compare equal.
PyObject* WrapNode(NodePtr node);
GraphNode* UnwrapNode(PyObject* o);
void InitGraphNode(PyObject* module);

// A Python object that C++ owns, released under the GIL wherever that happens.
std::shared_ptr<PyObject> SharedObject(PyObject* o);

// Python callables as hooks; they take the GIL when called.
std::shared_ptr<SavedTensorHooks> MakeSavedTensorHooks(PyObject* pack, PyObject* unpack);
TensorHook MakeTensorHook(PyObject* callable);
AccumulateHook MakeAccumulateHook(PyObject* callable);
NodeHook MakeNodeHook(PyObject* callable);
NodePostHook MakeNodePostHook(PyObject* callable);

}  // namespace mica::python
