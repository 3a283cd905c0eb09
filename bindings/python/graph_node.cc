// Nodes and hooks as Python sees them; see graph_node.h.
#include "mica/bindings/python/graph_node.h"

#include <algorithm>

#include "mica/bindings/python/arguments.h"
#include "mica/bindings/python/boxing.h"

namespace mica::python {
namespace {

struct NodeObject {
  PyObject_HEAD NodePtr node;
};

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
    if (!data) data = SharedObject(Own(PyDict_New()).get());
    return Py_NewRef(static_cast<PyObject*>(data.get()));
  });
}
// InputMetadata(shape, dtype, device) of each result of the forward, None where no
// gradient flows.
PyObject* NodeResults(PyObject* self, void*) {
  return Guarded([&] {
    const std::vector<GraphValue> results = GetAutogradInterface().Results(UnwrapNode(self));
    const Ref module = Own(PyImport_ImportModule("mica.autograd.graph"));
    const Ref type = Own(PyObject_GetAttrString(module.get(), "InputMetadata"));
    Ref tuple = Own(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
    for (size_t i = 0; i < results.size(); ++i) {
      const GraphValue& v = results[i];
      PyObject* item = v.defined ? Check(PyObject_CallFunction(type.get(), "NNN", FromSizes(v.sizes),
                                                               FromDType(v.dtype), FromDevice(v.device)))
                                 : NewNone();
      PyTuple_SET_ITEM(tuple.get(), i, item);
    }
    return tuple.release();
  });
}

// ---- _saved_<name>: what the node keeps; _raw_saved_<name>: the place that keeps it
constexpr std::string_view kSaved = "_saved_";
constexpr std::string_view kRawSaved = "_raw_saved_";

PyObject* RawSaved(PyObject* self, std::string_view name) {
  const Ref module = Own(PyImport_ImportModule("mica.autograd.graph"));
  return Check(PyObject_CallMethod(module.get(), "_raw_saved", "OO", self, Own(NewStr(name)).get()));
}
PyObject* GetNodeAttribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  return Guarded([&] {
    const std::string_view text = StrView(name);
    AutogradInterface& autograd = GetAutogradInterface();
    GraphNode* node = UnwrapNode(self);
    const bool raw = text.substr(0, kRawSaved.size()) == kRawSaved;
    const bool saved = text.substr(0, kSaved.size()) == kSaved;
    const std::string_view key = text.substr(std::min(text.size(), raw ? kRawSaved.size() : kSaved.size()));
    if (!(raw || saved) || !autograd.HasSaved(node, key)) {
      PyErr_Restore(type, value, trace);
      throw PythonErrorIsSet();
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    if (raw) return RawSaved(self, key);
    const Value kept = autograd.Saved(node, key);
    if (!kept.is(Value::Tag::kTensorList)) return FromValue(kept.Borrow(), schema::Type());
    const TensorSpan list = kept.ToTensors();
    return Check(FromTensorList(std::vector<Tensor>(list.begin(), list.end())));
  });
}
PyObject* SavedNames(PyObject* self, PyObject*) {
  return Guarded([&] {
    Ref list = Own(PyList_New(0));
    for (const std::string& name : GetAutogradInterface().SavedNames(UnwrapNode(self)))
      Check(PyList_Append(list.get(), Own(NewStr(name)).get()));
    return list.release();
  });
}
PyObject* NodeDir(PyObject* self, PyObject*) {
  return Guarded([&] {
    Ref list =
        Own(PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", self));
    for (const std::string& name : GetAutogradInterface().SavedNames(UnwrapNode(self)))
      for (const std::string_view prefix : {kSaved, kRawSaved})
        Check(PyList_Append(list.get(), Own(NewStr(std::string(prefix) + name)).get()));
    return list.release();
  });
}
// _hook_saved(name, index, pack, unpack)
PyObject* HookSaved(PyObject* self, PyObject* args) {
  return Guarded([&] {
    const char* name;
    Py_ssize_t index;
    PyObject *pack, *unpack;
    if (!PyArg_ParseTuple(args, "snOO:_hook_saved", &name, &index, &pack, &unpack)) throw PythonErrorIsSet();
    GetAutogradInterface().HookSaved(UnwrapNode(self), name, index, MakeSavedTensorHooks(pack, unpack));
    return NewNone();
  });
}

// ---- hooks
// node.register_hook(...) and its like: the functions of mica.autograd.graph.
PyObject* CallOfModule(const char* function, PyObject* self, PyObject* hook) {
  return Guarded([&] {
    const Ref module = Own(PyImport_ImportModule("mica.autograd.graph"));
    return CheckCall(PyObject_CallMethod(module.get(), function, "OO", self, hook));
  });
}
PyObject* RegisterHook(PyObject* self, PyObject* hook) { return CallOfModule("register_hook", self, hook); }
PyObject* RegisterPrehook(PyObject* self, PyObject* hook) {
  return CallOfModule("register_prehook", self, hook);
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
    {"name", NodeName, METH_NOARGS, "name($self, /)\n--\n\nThe node's name."},
    {"_sequence_nr", SequenceNumber, METH_NOARGS, "The order in which nodes were made."},
    {"register_hook", RegisterHook, METH_O,
     "register_hook($self, fn, /)\n--\n\nCalls fn(grad_inputs, grad_outputs) after the node ran; what it "
     "returns replaces grad_inputs."},
    {"register_prehook", RegisterPrehook, METH_O,
     "register_prehook($self, fn, /)\n--\n\nCalls fn(grad_outputs) before the node runs; what it returns "
     "replaces them."},
    {"_saved_names", SavedNames, METH_NOARGS, nullptr},
    {"_hook_saved", HookSaved, METH_VARARGS, nullptr},
    {"__dir__", NodeDir, METH_NOARGS, nullptr},
    {"_add_hook", AddPostHook, METH_O, nullptr},
    {"_add_prehook", AddPreHook, METH_O, nullptr},
    {"_remove_hook", RemoveHook, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef kAttributes[] = {
    {"next_functions", NextFunctions, nullptr, "Pairs (node, input number) to which gradients flow.",
     nullptr},
    {"variable", NodeVariable, nullptr, "The leaf of an AccumulateGrad node.", nullptr},
    {"_input_metadata", NodeResults, nullptr, "What each result of the forward looked like.", nullptr},
    {"metadata", NodeMetadata, nullptr, "A dictionary for the user.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

std::shared_ptr<PyObject> SharedObject(PyObject* o) {
  Py_INCREF(o);
  return std::shared_ptr<PyObject>(o, [](PyObject* p) {
    if (!Py_IsInitialized()) return;
    GilAcquire gil;
    Py_DECREF(p);
  });
}

PyTypeObject GraphNodeType = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* WrapNode(NodePtr node) {
  if (!node) return NewNone();
  PyObject* o = Check(GraphNodeType.tp_alloc(&GraphNodeType, 0));
  new (&reinterpret_cast<NodeObject*>(o)->node) NodePtr(std::move(node));
  return o;
}

GraphNode* UnwrapNode(PyObject* o) { return reinterpret_cast<NodeObject*>(o)->node.get(); }

std::shared_ptr<SavedTensorHooks> MakeSavedTensorHooks(PyObject* pack, PyObject* unpack) {
  auto hooks = std::make_shared<SavedTensorHooks>();
  hooks->pack = [f = SharedObject(pack)](const Tensor& t) -> std::shared_ptr<void> {
    GilAcquire gil;
    const Ref argument(Wrap(t));
    const Ref packed(CheckCall(PyObject_CallOneArg(f.get(), argument.get())));
    return SharedObject(packed.get());
  };
  hooks->unpack = [f = SharedObject(unpack)](const std::shared_ptr<void>& packed) {
    GilAcquire gil;
    const Ref result(CheckCall(PyObject_CallOneArg(f.get(), static_cast<PyObject*>(packed.get()))));
    MICA_CHECK_TYPE(IsTensor(result.get()),
                    "The unpack hook of a saved tensor must return a Tensor; it returned a value of type (",
                    TypeName(result.get()), ").");
    return Unwrap(result.get());
  };
  return hooks;
}

TensorHook MakeTensorHook(PyObject* callable) {
  return [f = SharedObject(callable)](const Tensor& grad) -> Tensor {
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
  return [f = SharedObject(callable)](const Tensor& variable) {
    GilAcquire gil;
    const Ref argument(Wrap(variable));
    const Ref result(CheckCall(PyObject_CallOneArg(f.get(), argument.get())));
  };
}

NodeHook MakeNodeHook(PyObject* callable) {
  return [f = SharedObject(callable)](std::vector<Tensor>& grads) {
    GilAcquire gil;
    const Ref argument = TupleOf(grads);
    const Ref result(CheckCall(PyObject_CallOneArg(f.get(), argument.get())));
    Replace(grads, result.get());
  };
}

NodePostHook MakeNodePostHook(PyObject* callable) {
  return [f = SharedObject(callable)](std::vector<Tensor>& grad_inputs,
                                      const std::vector<Tensor>& grad_outputs) {
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
  GraphNodeType.tp_getattro = GetNodeAttribute;
  GraphNodeType.tp_hash = [](PyObject* o) -> Py_hash_t { return _Py_HashPointer(UnwrapNode(o)); };
  GraphNodeType.tp_richcompare = NodeCompare;
  GraphNodeType.tp_methods = kMethods;
  GraphNodeType.tp_getset = kAttributes;
  Check(PyType_Ready(&GraphNodeType));
  Check(PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(&GraphNodeType)));
}

}  // namespace mica::python
