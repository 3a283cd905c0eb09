// Nodes and hooks as Python sees them; see graph_node.h.
#include "bindings/python/src/autograd/graph_node.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "bindings/python/src/module/collector.h"
#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/operators/boxing.h"

namespace mica::python {
namespace {

// Holds the node; of a leaf's node, which is part of the leaf, the leaf's object instead, so that the
// garbage collector sees who holds the leaf.
struct NodeObject {
  PyObject_HEAD GraphNode* node;
  PyObject* leaf;
};
NodeObject* AsNode(PyObject* o) { return reinterpret_cast<NodeObject*>(o); }

// Of a hook or a context that garbage collection took: nobody is left who could call it.
std::shared_ptr<void> Alive(const std::weak_ptr<void>& object) {
  std::shared_ptr<void> alive = object.lock();
  MICA_INTERNAL(alive, "A hook runs after Python's garbage collector took it.");
  return alive;
}
PyObject* Object(const std::shared_ptr<void>& object) { return static_cast<PyObject*>(object.get()); }

Ref TupleOf(const std::vector<Tensor>& tensors) { return Ref(FromTensorList(std::vector<Tensor>(tensors))); }

// What a hook returned instead of `tensors`: None (nothing) or a tuple.
void Replace(std::vector<Tensor>& tensors, PyObject* result) {
  if (result == Py_None) return;
  MICA_CHECK_TYPE(
      PyTuple_Check(result) && IsTensorList(result, true),
      "A hook of a node must return None or a tuple of tensors and Nones; it was expected tuple, but "
      "hook returned '",
      TypeName(result), "'.");
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
// The ctx of a custom function's node; NULL of others.
PyObject* ContextOf(PyObject* self) {
  AutogradInterface* const autograd = LoadedAutogradInterface();
  const std::shared_ptr<void>* context = autograd ? autograd->Context(UnwrapNode(self)) : nullptr;
  return context ? Object(*context) : nullptr;
}
PyObject* GetNodeAttribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  if (PyObject* context = ContextOf(self)) {
    PyErr_Clear();
    return PyObject_GetAttr(context, name);
  }
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
int SetNodeAttribute(PyObject* self, PyObject* name, PyObject* value) {
  PyObject* context = ContextOf(self);
  return context ? PyObject_SetAttr(context, name, value) : PyObject_GenericSetAttr(self, name, value);
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
    return FromRemover(GetAutogradInterface().AddNodePostHook(UnwrapNode(self), MakeNodePostHook(hook)));
  });
}
PyObject* AddPreHook(PyObject* self, PyObject* hook) {
  return Guarded(
      [&] { return FromRemover(GetAutogradInterface().AddNodeHook(UnwrapNode(self), MakeNodeHook(hook))); });
}
PyObject* NodeCompare(PyObject* a, PyObject* b, int op) {
  if (!IsNode(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
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
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef kAttributes[] = {
    {"next_functions", NextFunctions, nullptr, "Pairs (node, input number) to which gradients flow.",
     nullptr},
    {"variable", NodeVariable, nullptr, "The leaf of an AccumulateGrad node.", nullptr},
    {"_input_metadata", NodeResults, nullptr, "What each result of the forward looked like.", nullptr},
    {"metadata", NodeMetadata, nullptr, "A dictionary for the user.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- the object
int NodeTraverse(PyObject* o, visitproc visit, void* arg) {
  const NodeObject* self = AsNode(o);
  if (self->leaf) return visit(self->leaf, arg);
  AutogradInterface* const autograd = LoadedAutogradInterface();  // none while its plugin is disabled
  if (!autograd || !self->node || !self->node->IsHeldOnce() ||
      g_without_gil.load(std::memory_order_relaxed) != 0)
    return 0;
  return VisitShared([&](const auto& f) { autograd->VisitHeld(self->node, f); }, visit, arg);
}
int NodeClear(PyObject* o) {
  const NodeObject* self = AsNode(o);
  AutogradInterface* const autograd = LoadedAutogradInterface();
  if (autograd && !self->leaf && self->node && self->node->IsHeldOnce())
    ClearShared([&](const auto& f) { autograd->VisitHeld(self->node, f); });
  return 0;
}
void NodeDealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  NodeObject* self = AsNode(o);
  if (self->node) {
    self->node->object = nullptr;
    if (!self->leaf) self->node->Release();
  }
  Py_CLEAR(self->leaf);
  Py_TYPE(o)->tp_free(o);
}

// The class of nodes of that name, made for the first of them.
PyTypeObject* TypeOfNodes(const std::string& name) {
  static auto& types = *new absl::flat_hash_map<std::string, PyTypeObject*>();
  PyTypeObject*& type = types[name];
  if (!type) {
    const Ref arguments = Own(Py_BuildValue("s(O){sss()}", name.c_str(), &GraphNodeType, "__module__",
                                            "mica.autograd", "__slots__"));
    type = reinterpret_cast<PyTypeObject*>(
        Check(PyObject_CallObject(reinterpret_cast<PyObject*>(&PyType_Type), arguments.get())));
  }
  return type;
}

constexpr const char* kRemover = "mica.hook_remover";
PyObject* CallRemover(PyObject* capsule, PyObject*) {
  return Guarded([&] {
    (*static_cast<HookRemover*>(PyCapsule_GetPointer(capsule, kRemover)))();
    return NewNone();
  });
}

}  // namespace

PyObject* FromRemover(HookRemover remover) {
  static PyMethodDef method = {"remove", CallRemover, METH_NOARGS, "Takes the hook away."};
  auto kept = std::make_unique<HookRemover>(std::move(remover));
  const Ref capsule = Own(PyCapsule_New(kept.get(), kRemover, [](PyObject* o) {
    delete static_cast<HookRemover*>(PyCapsule_GetPointer(o, kRemover));
  }));
  static_cast<void>(kept.release());
  return Check(PyCFunction_New(&method, capsule.get()));
}

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
  if (node->object) return Py_NewRef(static_cast<PyObject*>(node->object));
  PyTypeObject* const type = TypeOfNodes(node->name());
  const Tensor leaf = GetAutogradInterface().Variable(node.get());
  Ref held(leaf.defined() ? Wrap(leaf) : nullptr);
  if (held) Track(held.get());
  PyObject* o = Check(type->tp_alloc(type, 0));
  AsNode(o)->leaf = held.release();
  AsNode(o)->node = AsNode(o)->leaf ? node.get() : node.release();
  AsNode(o)->node->object = o;
  return o;
}

GraphNode* UnwrapNode(PyObject* o) { return AsNode(o)->node; }

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
    MICA_CHECK_TYPE(
        IsTensor(result.get()),
        "Output of saved tensor unpack_hook expected to be a Tensor, but the hook returned a value of type (",
        TypeName(result.get()), ").");
    return Unwrap(result.get());
  };
  return hooks;
}

TensorHook MakeTensorHook(PyObject* callable) {
  const std::shared_ptr<void> object = SharedObject(callable);
  const auto call = [f = std::weak_ptr<void>(object)](const Tensor& grad) -> Tensor {
    GilAcquire gil;
    const Ref argument(Wrap(grad));
    const Ref result(CheckCall(PyObject_CallOneArg(Object(Alive(f)), argument.get())));
    if (result.get() == Py_None) return Tensor();
    MICA_CHECK_TYPE(IsTensor(result.get()),
                    "A hook of a tensor must return None or a Tensor; this one returned a value of type (",
                    TypeName(result.get()), ").");
    return Unwrap(result.get());
  };
  return {call, object};
}

AccumulateHook MakeAccumulateHook(PyObject* callable) {
  const std::shared_ptr<void> object = SharedObject(callable);
  const auto call = [f = std::weak_ptr<void>(object)](const Tensor& variable) {
    GilAcquire gil;
    const Ref argument(Wrap(variable));
    const Ref result(CheckCall(PyObject_CallOneArg(Object(Alive(f)), argument.get())));
  };
  return {call, object};
}

NodeHook MakeNodeHook(PyObject* callable) {
  const std::shared_ptr<void> object = SharedObject(callable);
  const auto call = [f = std::weak_ptr<void>(object)](std::vector<Tensor>& grads) {
    GilAcquire gil;
    const Ref argument = TupleOf(grads);
    const Ref result(CheckCall(PyObject_CallOneArg(Object(Alive(f)), argument.get())));
    Replace(grads, result.get());
  };
  return {call, object};
}

NodePostHook MakeNodePostHook(PyObject* callable) {
  const std::shared_ptr<void> object = SharedObject(callable);
  const auto call = [f = std::weak_ptr<void>(object)](std::vector<Tensor>& grad_inputs,
                                                      const std::vector<Tensor>& grad_outputs) {
    GilAcquire gil;
    const Ref inputs = TupleOf(grad_inputs);
    const Ref outputs = TupleOf(grad_outputs);
    const Ref result(
        CheckCall(PyObject_CallFunctionObjArgs(Object(Alive(f)), inputs.get(), outputs.get(), nullptr)));
    Replace(grad_inputs, result.get());
  };
  return {call, object};
}

void InitGraphNode(PyObject* module) {
  GraphNodeType.tp_name = "mica.autograd.Node";
  GraphNodeType.tp_doc = "A node of the backward graph.";
  GraphNodeType.tp_basicsize = sizeof(NodeObject);
  GraphNodeType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  GraphNodeType.tp_dealloc = NodeDealloc;
  GraphNodeType.tp_traverse = NodeTraverse;
  GraphNodeType.tp_clear = NodeClear;
  GraphNodeType.tp_repr = NodeRepr;
  GraphNodeType.tp_getattro = GetNodeAttribute;
  GraphNodeType.tp_setattro = SetNodeAttribute;
  GraphNodeType.tp_hash = [](PyObject* o) -> Py_hash_t { return _Py_HashPointer(UnwrapNode(o)); };
  GraphNodeType.tp_richcompare = NodeCompare;
  GraphNodeType.tp_methods = kMethods;
  GraphNodeType.tp_getset = kAttributes;
  Check(PyType_Ready(&GraphNodeType));
  Check(PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(&GraphNodeType)));
}

}  // namespace mica::python
