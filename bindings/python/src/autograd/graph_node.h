// The Python object of a node of the backward graph (grad_fn, next_functions), and Python functions as
// hooks.
#pragma once

#include "bindings/python/src/autograd/gradients.h"
#include "bindings/python/src/module/object.h"

namespace mica::python {

extern PyTypeObject GraphNodeType;

// The object of the node, of a subclass of Node that is named after it; None for NULL. A node has one
// object at a time.
PyObject* WrapNewNode(NodePtr node);  // of a node that has none yet
inline PyObject* WrapNode(NodePtr node) {
  if (!node) return NewNone();
  void* const object = node.get()->object;
  return object ? Py_NewRef(static_cast<PyObject*>(object)) : WrapNewNode(std::move(node));
}
inline bool IsNode(PyObject* o) { return PyObject_TypeCheck(o, &GraphNodeType); }
MicaNode* UnwrapNode(PyObject* o);
NodePtr NodeOf(PyObject* o);
void InitGraphNode(PyObject* module);

// The ctx of a node of mica.autograd.Function, borrowed; NULL of other nodes.
PyObject* ContextOf(const MicaAutograd& table, MicaNode* node);

// A function without arguments that calls `remover`.
PyObject* FromRemover(HookRemover remover);

// To be given on, once.
MicaSavedTensorHooks MakeSavedTensorHooks(PyObject* pack, PyObject* unpack);

// Call the Python function that they hold, under the GIL.
MicaTensorResult CallTensorHook(void* function, MicaTensor* grad);
MicaStatus CallAccumulateHook(void* function, MicaTensor* leaf);
MicaStatus CallNodeHook(void* function, MicaTensor** grads, int64_t n);
MicaStatus CallNodePostHook(void* function, MicaTensor** grad_inputs, int64_t num_inputs,
                            MicaTensor* const* grad_outputs, int64_t num_outputs);

}  // namespace mica::python
