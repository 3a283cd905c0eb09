// Nodes and hooks as Python sees them; see graph_node.h.
#include "bindings/python/src/autograd/graph_node.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "bindings/python/src/module/collector.h"
#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/operators/boxing.h"

namespace mica::python {
namespace {

// Holds the node, and the table that it goes back by; of a leaf's node, which is part of the leaf, the
// leaf's object instead, so that the garbage collector sees who holds the leaf.
struct NodeObject {
  PyObject_HEAD const MicaAutograd* table;
  MicaNode* node;
  PyObject* leaf;
};
NodeObject* AsNode(PyObject* o) { return reinterpret_cast<NodeObject*>(o); }

// A function that a hook holds, and that its caller keeps.
PyObject* Object(void* held) { return static_cast<PyObject*>(held); }

// Of tensors that the caller keeps.
std::vector<Tensor> Borrowed(MicaTensor* const* tensors, int64_t n) {
  std::vector<Tensor> list;
  for (int64_t i = 0; i < n; ++i) list.push_back(tensors[i] ? Tensor::Borrow(tensors[i]) : Tensor());
  return list;
}
Ref TupleOf(MicaTensor* const* tensors, int64_t n) { return Ref(FromTensorList(Borrowed(tensors, n))); }

// What a hook returned instead of `tensors`: None (nothing) or a tuple.
void Replace(MicaTensor** tensors, int64_t n, PyObject* result) {
  if (result == Py_None) return;
  MICA_CHECK_TYPE(
      PyTuple_Check(result) && IsTensorList(result, true),
      "A hook of a node must return None or a tuple of tensors and Nones; it was expected tuple, but "
      "hook returned '",
      TypeName(result), "'.");
  std::vector<Tensor> replacement = ToTensorList(result);
  MICA_CHECK(std::ssize(replacement) == n, "A hook of a node returned ", replacement.size(),
             " gradients where it got ", n, ".");
  for (int64_t i = 0; i < n; ++i) {
    const Tensor before = Tensor::Steal(tensors[i]);
    tensors[i] = replacement[static_cast<size_t>(i)].release();
  }
}

PyObject* NodeName(PyObject* self, PyObject*) {
  return Guarded([&] { return NewStr(NodeOf(self).name()); });
}
PyObject* NodeRepr(PyObject* self) {
  return PyUnicode_FromFormat("<%s object at %p>", std::string(NodeOf(self).name()).c_str(),
                              UnwrapNode(self));
}
PyObject* NextFunctions(PyObject* self, void*) {
  return Guarded([&] {
    std::vector<GraphEdge> edges = GetAutograd().NextEdges(UnwrapNode(self));
    Ref tuple = Own(PyTuple_New(static_cast<Py_ssize_t>(edges.size())));
    for (size_t i = 0; i < edges.size(); ++i) {
      PyTuple_SET_ITEM(tuple.get(), i,
                       Check(Py_BuildValue("(NL)", WrapNode(std::move(edges[i].node)), edges[i].input_nr)));
    }
    return tuple.release();
  });
}
PyObject* NodeVariable(PyObject* self, void*) {
  return Guarded([&] { return Wrap(GetAutograd().Variable(UnwrapNode(self))); });
}
PyObject* SequenceNumber(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(AsNode(self)->table->node_sequence(UnwrapNode(self)));
}
PyObject* NodeMetadata(PyObject* self, void*) {
  return Guarded([&] {
    const Autograd autograd = GetAutograd();
    if (void* data = autograd->node_data(UnwrapNode(self))) return Py_NewRef(Object(data));
    Ref data = Own(PyDict_New());
    ThrowIfError(autograd->set_node_data(UnwrapNode(self), HoldObject(data.get())));
    return data.release();
  });
}
// InputMetadata(shape, dtype, device) of each result of the forward, None where no
// gradient flows.
PyObject* NodeResults(PyObject* self, void*) {
  return Guarded([&] {
    const std::vector<MicaNodeResult> results = GetAutograd().Results(UnwrapNode(self));
    const Ref module = Own(PyImport_ImportModule("mica.autograd.graph"));
    const Ref type = Own(PyObject_GetAttrString(module.get(), "InputMetadata"));
    Ref tuple = Own(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
    for (size_t i = 0; i < results.size(); ++i) {
      const MicaNodeResult& v = results[i];
      PyObject* item =
          v.defined ? Check(PyObject_CallFunction(type.get(), "NNN", FromSizes({v.sizes.data, v.sizes.size}),
                                                  FromDType(static_cast<DType>(v.dtype)),
                                                  FromDevice(Device::FromAbi(v.device))))
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
PyObject* ContextOfObject(PyObject* self) { return ContextOf(*AsNode(self)->table, UnwrapNode(self)); }
PyObject* GetNodeAttribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  if (PyObject* context = ContextOfObject(self)) {
    PyErr_Clear();
    return PyObject_GetAttr(context, name);
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  return Guarded([&] {
    const std::string_view text = StrView(name);
    const Autograd autograd = GetAutograd();
    MicaNode* node = UnwrapNode(self);
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
  PyObject* context = ContextOfObject(self);
  return context ? PyObject_SetAttr(context, name, value) : PyObject_GenericSetAttr(self, name, value);
}
PyObject* SavedNames(PyObject* self, PyObject*) {
  return Guarded([&] {
    Ref list = Own(PyList_New(0));
    for (const std::string& name : GetAutograd().SavedNames(UnwrapNode(self)))
      Check(PyList_Append(list.get(), Own(NewStr(name)).get()));
    return list.release();
  });
}
PyObject* NodeDir(PyObject* self, PyObject*) {
  return Guarded([&] {
    Ref list =
        Own(PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", self));
    for (const std::string& name : GetAutograd().SavedNames(UnwrapNode(self)))
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
    GetAutograd().HookSaved(UnwrapNode(self), name, index, MakeSavedTensorHooks(pack, unpack));
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
    return FromRemover(GetAutograd().AddNodePostHook(UnwrapNode(self), &CallNodePostHook, HoldObject(hook)));
  });
}
PyObject* AddPreHook(PyObject* self, PyObject* hook) {
  return Guarded([&] {
    return FromRemover(GetAutograd().AddNodeHook(UnwrapNode(self), &CallNodeHook, HoldObject(hook)));
  });
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
// Whether the node's objects are seen by the object alone.
bool IsHeldOnce(const NodeObject& o) { return !o.leaf && o.node && o.table->node_held_once(o.node) != 0; }

int NodeTraverse(PyObject* o, visitproc visit, void* arg) {
  const NodeObject& self = *AsNode(o);
  if (self.leaf) return visit(self.leaf, arg);
  if (!IsHeldOnce(self) || g_without_gil.load(std::memory_order_relaxed) != 0) return 0;
  return VisitHeldObjects([&](void* to, auto f) { self.table->node_visit_held(self.node, to, f); }, visit,
                          arg);
}
int NodeClear(PyObject* o) {
  const NodeObject& self = *AsNode(o);
  if (IsHeldOnce(self))
    ClearHeldObjects([&](void* to, auto f) { self.table->node_visit_held(self.node, to, f); });
  return 0;
}
void NodeDealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  NodeObject* self = AsNode(o);
  if (self->node) {
    self->node->object = nullptr;
    if (!self->leaf) self->table->node_release(self->node);
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

void ReleaseHeldObject(void* object) {
  if (!Py_IsInitialized()) return;
  GilAcquire gil;
  Py_DECREF(Object(object));
}

PyTypeObject GraphNodeType = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* WrapNewNode(NodePtr node) {
  PyTypeObject* const type = TypeOfNodes(std::string(node.name()));
  const Tensor leaf = Autograd(node.table()).Variable(node.get());
  Ref held(leaf.defined() ? Wrap(leaf) : nullptr);
  if (held) Track(held.get());
  PyObject* o = Check(type->tp_alloc(type, 0));
  AsNode(o)->table = node.table();
  AsNode(o)->leaf = held.release();
  AsNode(o)->node = AsNode(o)->leaf ? node.get() : node.release();
  AsNode(o)->node->object = o;
  return o;
}

MicaNode* UnwrapNode(PyObject* o) { return AsNode(o)->node; }
NodePtr NodeOf(PyObject* o) { return NodePtr::Borrow(AsNode(o)->table, AsNode(o)->node); }

namespace {

// The functions of a pair of saved-tensor hooks.
struct PackAndUnpack {
  Ref pack, unpack;
};

MicaStatus CallPack(void* hooks, MicaTensor* t, MicaHeld* packed) {
  return CatchAll([&] {
    GilAcquire gil;
    const Ref argument(Wrap(Tensor::Borrow(t)));
    const Ref result(
        CheckCall(PyObject_CallOneArg(static_cast<PackAndUnpack*>(hooks)->pack.get(), argument.get())));
    *packed = HoldObject(result.get());
  });
}

MicaTensorResult CallUnpack(void* hooks, void* packed) {
  return AbiReturn<Tensor>::PackNoexcept([&] {
    GilAcquire gil;
    const Ref result(
        CheckCall(PyObject_CallOneArg(static_cast<PackAndUnpack*>(hooks)->unpack.get(), Object(packed))));
    MICA_CHECK_TYPE(
        IsTensor(result.get()),
        "Output of saved tensor unpack_hook expected to be a Tensor, but the hook returned a value of type (",
        TypeName(result.get()), ").");
    return Unwrap(result.get());
  });
}

}  // namespace

MicaSavedTensorHooks MakeSavedTensorHooks(PyObject* pack, PyObject* unpack) {
  auto* const functions = new PackAndUnpack{Ref::Borrow(pack), Ref::Borrow(unpack)};
  const auto destroy = [](void* hooks) {
    if (!Py_IsInitialized()) return;
    GilAcquire gil;
    delete static_cast<PackAndUnpack*>(hooks);
  };
  return {sizeof(MicaSavedTensorHooks), &CallPack, &CallUnpack, {functions, destroy}};
}

MicaTensorResult CallTensorHook(void* function, MicaTensor* grad) {
  return AbiReturn<Tensor>::PackNoexcept([&]() -> Tensor {
    GilAcquire gil;
    const Ref argument(Wrap(grad ? Tensor::Borrow(grad) : Tensor()));
    const Ref result(CheckCall(PyObject_CallOneArg(Object(function), argument.get())));
    if (result.get() == Py_None) return Tensor();
    MICA_CHECK_TYPE(IsTensor(result.get()),
                    "A hook of a tensor must return None or a Tensor; this one returned a value of type (",
                    TypeName(result.get()), ").");
    return Unwrap(result.get());
  });
}

MicaStatus CallAccumulateHook(void* function, MicaTensor* leaf) {
  return CatchAll([&] {
    GilAcquire gil;
    const Ref argument(Wrap(Tensor::Borrow(leaf)));
    const Ref result(CheckCall(PyObject_CallOneArg(Object(function), argument.get())));
  });
}

MicaStatus CallNodeHook(void* function, MicaTensor** grads, int64_t n) {
  return CatchAll([&] {
    GilAcquire gil;
    const Ref argument = TupleOf(grads, n);
    const Ref result(CheckCall(PyObject_CallOneArg(Object(function), argument.get())));
    Replace(grads, n, result.get());
  });
}

MicaStatus CallNodePostHook(void* function, MicaTensor** grad_inputs, int64_t num_inputs,
                            MicaTensor* const* grad_outputs, int64_t num_outputs) {
  return CatchAll([&] {
    GilAcquire gil;
    const Ref inputs = TupleOf(grad_inputs, num_inputs);
    const Ref outputs = TupleOf(grad_outputs, num_outputs);
    const Ref result(
        CheckCall(PyObject_CallFunctionObjArgs(Object(function), inputs.get(), outputs.get(), nullptr)));
    Replace(grad_inputs, num_inputs, result.get());
  });
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
