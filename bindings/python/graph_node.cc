// Nodes and hooks as Python sees them; see graph_node.h.
#include "mica/bindings/python/graph_node.h"

#include "mica/bindings/python/arguments.h"

namespace mica::python {
namespace {

struct NodeObject {
  PyObject_HEAD NodePtr node;
};

// A Python object that C++ owns, released under the GIL wherever that happens.
std::shared_ptr<PyObject> Shared(PyObject* o) {
  Py_INCREF(o);
  return std::shared_ptr<PyObject>(o, [](PyObject* p) {
    if (!Py_IsInitialized()) return;
    GilAcquire gil;
    Py_DECREF(p);
  });
}

Ref TupleOf(const std::vector<Tensor>& tensors) { return Ref(FromTensorList(std::vector<Tensor>(tensors))); }

// What a hook returned instead of `tensors`: None (nothing), a tensor, a tuple.
void Replace(std::vector<Tensor>& tensors, PyObject* result) {
  if (result == Py_None) return;
  if (IsTensor(result) && tensors.size() == 1) {
    tensors[0] = Unwrap(result);
    return;
  }
  MICA_CHECK_TYPE(IsTensorList(result, true), "A hook of a node must return None or a tuple of tensors.");
  std::vector<Tensor> replacement = ToTensorList(result);
  MICA_CHECK(replacement.size() == tensors.size(), "A hook of a node returned ", replacement.size(),
             " gradients where it got ", tensors.size(), ".");
  tensors = std::move(replacement);
}

PyObject* NodeName(PyObject* self, PyObject*) {
  return Guarded([&] { return NewStr(UnwrapNode(self)->name()); });
}
PyObject* NodeRepr(PyObject* self) {
  return PyUnicode_FromFormat("<%s object at %p>", UnwrapNode(self)->name().c_str(), UnwrapNode(self));
}
PyObject* NextFunctions(PyObject* self, void*) {
  return Guarded([&] {
    const std::vector<GraphEdge> edges = GetAutogradInterface().NextEdges(UnwrapNode(self));
    Ref tuple = Own(PyTuple_New(static_cast<Py_ssize_t>(edges.size())));
    for (size_t i = 0; i < edges.size(); ++i) {
      PyTuple_SET_ITEM(tuple.get(), i,
                       Check(Py_BuildValue("(NI)", WrapNode(edges[i].node), edges[i].input_nr)));
    }
    return tuple.release();
  });
}
PyObject* NodeVariable(PyObject* self, void*) {
  return Guarded([&] { return Wrap(GetAutogradInterface().Variable(UnwrapNode(self))); });
}
PyObject* SequenceNumber(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(UnwrapNode(self)->sequence_number());
}
PyObject* NodeMetadata(PyObject* self, void*) {
  return Guarded([&] {
    std::shared_ptr<void>& data = GetAutogradInterface().NodeData(UnwrapNode(self));
    if (!data) data = Shared(Own(PyDict_New()).get());
    return Py_NewRef(static_cast<PyObject*>(data.get()));
  });
}
PyObject* AddPostHook(PyObject* self, PyObject* hook) {
  return Guarded([&] {
    return PyLong_FromUnsignedLongLong(
        GetAutogradInterface().AddNodePostHook(UnwrapNode(self), MakeNodePostHook(hook)));
  });
}
PyObject* AddPreHook(PyObject* self, PyObject* hook) {
  return Guarded([&] {
    return PyLong_FromUnsignedLongLong(
        GetAutogradInterface().AddNodeHook(UnwrapNode(self), MakeNodeHook(hook)));
  });
}
PyObject* RemoveHook(PyObject* self, PyObject* id) {
  return Guarded([&] {
    GetAutogradInterface().RemoveNodeHook(UnwrapNode(self), static_cast<uint64_t>(ToInt(id)));
    return NewNone();
  });
}
PyObject* NodeCompare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(b) != &GraphNodeType || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return NewBool((UnwrapNode(a) == UnwrapNode(b)) == (op == Py_EQ));
}

PyMethodDef kMethods[] = {
    {"name", NodeName, METH_NOARGS, "The node's name."},
    {"_sequence_nr", SequenceNumber, METH_NOARGS, "The order in which nodes were made."},
    {"_add_hook", AddPostHook, METH_O, nullptr},
    {"_add_prehook", AddPreHook, METH_O, nullptr},
    {"_remove_hook", RemoveHook, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef kAttributes[] = {
    {"next_functions", NextFunctions, nullptr, "Pairs (node, input number) to which gradients flow.",
     nullptr},
    {"variable", NodeVariable, nullptr, "The leaf of an AccumulateGrad node.", nullptr},
    {"metadata", NodeMetadata, nullptr, "A dictionary for the user.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

PyTypeObject GraphNodeType = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* WrapNode(NodePtr node) {
  if (!node) return NewNone();
  PyObject* o = Check(GraphNodeType.tp_alloc(&GraphNodeType, 0));
  new (&reinterpret_cast<NodeObject*>(o)->node) NodePtr(std::move(node));
  return o;
}

GraphNode* UnwrapNode(PyObject* o) { return reinterpret_cast<NodeObject*>(o)->node.get(); }

TensorHook MakeTensorHook(PyObject* callable) {
  return [f = Shared(callable)](const Tensor& grad) -> Tensor {
    GilAcquire gil;
    const Ref argument(Wrap(grad));
    const Ref result(CheckCall(PyObject_CallOneArg(f.get(), argument.get())));
    if (result.get() == Py_None) return Tensor();
    MICA_CHECK_TYPE(IsTensor(result.get()),
                    "A hook of a tensor must return None or a Tensor; this one returned a value of type (",
                    TypeName(result.get()), ").");
    return Unwrap(result.get());
  };
}

AccumulateHook MakeAccumulateHook(PyObject* callable) {
  return [f = Shared(callable)](const Tensor& variable) {
    GilAcquire gil;
    const Ref argument(Wrap(variable));
    const Ref result(CheckCall(PyObject_CallOneArg(f.get(), argument.get())));
  };
}

NodeHook MakeNodeHook(PyObject* callable) {
  return [f = Shared(callable)](std::vector<Tensor>& grads) {
    GilAcquire gil;
    const Ref argument = TupleOf(grads);
    const Ref result(CheckCall(PyObject_CallOneArg(f.get(), argument.get())));
    Replace(grads, result.get());
  };
}

NodePostHook MakeNodePostHook(PyObject* callable) {
  return [f = Shared(callable)](std::vector<Tensor>& grad_inputs, const std::vector<Tensor>& grad_outputs) {
    GilAcquire gil;
    const Ref inputs = TupleOf(grad_inputs);
    const Ref outputs = TupleOf(grad_outputs);
    const Ref result(CheckCall(PyObject_CallFunctionObjArgs(f.get(), inputs.get(), outputs.get(), nullptr)));
    Replace(grad_inputs, result.get());
  };
}

void InitGraphNode(PyObject* module) {
  GraphNodeType.tp_name = "mica.autograd.Node";
  GraphNodeType.tp_doc = "A node of the backward graph.";
  GraphNodeType.tp_basicsize = sizeof(NodeObject);
  GraphNodeType.tp_flags = Py_TPFLAGS_DEFAULT;
  GraphNodeType.tp_dealloc = [](PyObject* o) {
    reinterpret_cast<NodeObject*>(o)->node.~NodePtr();
    Py_TYPE(o)->tp_free(o);
  };
  GraphNodeType.tp_repr = NodeRepr;
  GraphNodeType.tp_hash = [](PyObject* o) -> Py_hash_t { return _Py_HashPointer(UnwrapNode(o)); };
  GraphNodeType.tp_richcompare = NodeCompare;
  GraphNodeType.tp_methods = kMethods;
  GraphNodeType.tp_getset = kAttributes;
  Check(PyType_Ready(&GraphNodeType));
  Check(PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(&GraphNodeType)));
}

}  // namespace mica::python
