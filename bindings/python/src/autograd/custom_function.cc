// Custom functions (mica.autograd.Function): their node, what they save, and the history of what
// they return. The public class is in mica/autograd/function.py.
//
// Note [Nodes and contexts]
// The node holds its context (ctx), and the context finds the node by a Saved that the two share. The
// two live as long as somebody holds either: when the node's last reference goes while others hold the
// context, Saved keeps the node, which holds the context weakly from then on; when the node is asked
// for again it leaves Saved and holds the context as before. All of it under the GIL.
#include "bindings/python/src/autograd/graph_node.h"
#include "bindings/python/src/module/init.h"
#include "bindings/python/src/operators/arguments.h"

namespace mica::python {
namespace {

AutogradInterface& Autograd() { return GetAutogradInterface(); }

class PythonBackward;
struct Saved {
  std::string name;
  GraphNode* node = nullptr;  // not counted; NULL when it is gone
  PythonBackward* backward = nullptr;
  NodePtr kept;
  bool freed = false;
  std::vector<std::shared_ptr<SavedTensorBox>> boxes;

  void Free() {
    freed = true;
    std::vector<std::shared_ptr<SavedTensorBox>> dropped;  // what dropping them runs finds none
    dropped.swap(boxes);
  }
  // The node, unless it is gone.
  NodePtr Node();
};

class PythonBackward final : public CustomBackward {
 public:
  PythonBackward(std::shared_ptr<Saved> saved, PyObject* context)
      : saved_(std::move(saved)), context_(SharedObject(context)) {}
  ~PythonBackward() override {
    if (!Py_IsInitialized()) return;
    GilAcquire gil;
    saved_->Free();
    saved_->node = nullptr;
    context_.reset();
    Py_CLEAR(weak_context_);
  }
  std::string Name() const override { return saved_->name; }
  std::vector<Tensor> Apply(std::vector<Tensor> grads) override {
    GilAcquire gil;
    const std::shared_ptr<void> context = context_;
    MICA_INTERNAL(context, "The backward of ", Name(),
                  " runs after Python's garbage collector took its ctx.");
    const Ref function = Own(PyObject_GetAttrString(static_cast<PyObject*>(context.get()), "_backward"));
    const Ref arguments(FromTensorList(std::move(grads)));
    const Ref result(CheckCall(PyObject_CallObject(function.get(), arguments.get())));
    MICA_CHECK_TYPE(IsTensorList(result.get(), true), "The backward of ", Name(),
                    " must return Tensors and Nones.");
    return ToTensorList(result.get());
  }
  void ReleaseSaved() override {
    GilAcquire gil;
    saved_->Free();
  }
  std::shared_ptr<void>* Context() override { return &context_; }
  bool Keep(GraphNode* node) override {
    if (!Py_IsInitialized()) return false;
    GilAcquire gil;
    auto* context = static_cast<PyObject*>(context_.get());
    if (!context || Py_REFCNT(context) == 1) return false;
    weak_context_ = PyWeakref_NewRef(context, nullptr);
    if (!weak_context_) PyErr_Clear();
    if (!weak_context_) return false;
    saved_->kept = NodePtr::Borrow(node);
    context_.reset();
    return true;
  }
  // The node leaves Saved.
  NodePtr Unkeep() {
    context_ = SharedObject(PyWeakref_GetObject(weak_context_));
    Py_CLEAR(weak_context_);
    return std::move(saved_->kept);
  }

 private:
  const std::shared_ptr<Saved> saved_;
  std::shared_ptr<void> context_;
  PyObject* weak_context_ = nullptr;
};

NodePtr Saved::Node() {
  if (kept) return backward->Unkeep();
  return node && node->TryRetain() ? NodePtr::Steal(node) : NodePtr();
}

constexpr const char* kSavedName = "mica.saved_tensors";
Saved& SavedOf(PyObject* capsule) {
  auto* saved = static_cast<std::shared_ptr<Saved>*>(PyCapsule_GetPointer(capsule, kSavedName));
  if (!saved) throw PythonErrorIsSet();
  return **saved;
}

// _make_custom_node(name, ctx, inputs) -> (Node or None, saved)
PyObject* MakeCustomNode(PyObject*, PyObject* args) {
  return Guarded([&] {
    const char* name;
    PyObject *context, *inputs;
    if (!PyArg_ParseTuple(args, "sOO", &name, &context, &inputs)) throw PythonErrorIsSet();
    auto saved = std::make_shared<Saved>();
    saved->name = name;
    auto backward = std::make_unique<PythonBackward>(saved, context);
    saved->backward = backward.get();
    NodePtr node = Autograd().MakeCustomNode(std::move(backward), ToTensorList(inputs));
    saved->node = node.get();
    auto kept = std::make_unique<std::shared_ptr<Saved>>(std::move(saved));
    Ref capsule = Own(PyCapsule_New(kept.get(), kSavedName, [](PyObject* o) {  // goes with the context
      auto* held = static_cast<std::shared_ptr<Saved>*>(PyCapsule_GetPointer(o, kSavedName));
      const NodePtr node = std::move((*held)->kept);
      delete held;
    }));
    static_cast<void>(kept.release());
    return Check(Py_BuildValue("(NN)", WrapNode(std::move(node)), capsule.release()));
  });
}

// _finish_custom(node, inputs, outputs, dirty, non_differentiable, materialize)
PyObject* FinishCustom(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *node, *inputs, *outputs, *dirty, *fixed;
    int materialize;
    if (!PyArg_ParseTuple(args, "OOOOOp", &node, &inputs, &outputs, &dirty, &fixed, &materialize))
      throw PythonErrorIsSet();
    const std::vector<Tensor> i = ToTensorList(inputs), o = ToTensorList(outputs), d = ToTensorList(dirty),
                              f = ToTensorList(fixed);
    const NodePtr n = node == Py_None ? NodePtr() : NodePtr::Borrow(UnwrapNode(node));
    const Ref results = Own(FromTensorList(Autograd().FinishCustom(n, {i, o, d, f, materialize != 0})));
    for (Py_ssize_t k = 0; n && k < PyTuple_GET_SIZE(results.get()); ++k)
      if (PyObject* t = PyTuple_GET_ITEM(results.get(), k); IsTensor(t)) Track(t);  // they hold the context
    return Py_NewRef(results.get());
  });
}

// _save_for_backward(saved, tensors and Nones, whether each is an output)
PyObject* SaveForBackward(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *capsule, *tensors, *flags;
    if (!PyArg_ParseTuple(args, "OOO!", &capsule, &tensors, &PyTuple_Type, &flags)) throw PythonErrorIsSet();
    Saved& saved = SavedOf(capsule);
    const std::vector<Tensor> list = ToTensorList(tensors);
    for (size_t i = 0; i < list.size(); ++i) {
      const bool is_output = PyTuple_GET_ITEM(flags, static_cast<Py_ssize_t>(i)) == Py_True;
      saved.boxes.push_back(list[i].defined() ? Autograd().SaveTensor(list[i], saved.node, is_output)
                                              : nullptr);
    }
    return NewNone();
  });
}
// _unpack_for_backward(saved) -> a tuple of tensors and Nones
PyObject* UnpackForBackward(PyObject*, PyObject* capsule) {
  return Guarded([&] {
    Saved& saved = SavedOf(capsule);
    const NodePtr node = saved.Node();
    MICA_CHECK(
        node && !saved.freed,
        "Trying to backward through the graph a second time (or directly access saved tensors after they "
        "have already been freed): the tensors that ",
        saved.name,
        " saved are freed by the first backward. Specify retain_graph=True in the first call to keep them.");
    const std::vector<std::shared_ptr<SavedTensorBox>> boxes = saved.boxes;
    std::vector<Tensor> tensors;
    for (const auto& box : boxes) tensors.push_back(box ? box->Unpack() : Tensor());
    return FromTensorList(std::move(tensors));
  });
}
// _node_of(saved) -> the node, or None
PyObject* NodeOf(PyObject*, PyObject* capsule) {
  return Guarded([&] { return WrapNode(SavedOf(capsule).Node()); });
}

// ---- tensors that are saved as an operator's inputs are, without a node
constexpr const char* kBoxName = "mica.saved_tensor";
// _save_tensor(tensor) -> capsule; _unpack_saved(capsule) -> Tensor
PyObject* SaveTensor(PyObject*, PyObject* tensor) {
  return Guarded([&] {
    auto box = Autograd().SaveTensor(TensorIn(tensor, "What is saved"), nullptr, false);
    return Check(PyCapsule_New(box.release(), kBoxName, [](PyObject* capsule) {
      delete static_cast<SavedTensorBox*>(PyCapsule_GetPointer(capsule, kBoxName));
    }));
  });
}
PyObject* UnpackSaved(PyObject*, PyObject* capsule) {
  return Guarded([&] {
    auto* box = static_cast<SavedTensorBox*>(PyCapsule_GetPointer(capsule, kBoxName));
    if (!box) throw PythonErrorIsSet();
    return Wrap(box->Unpack());
  });
}

PyMethodDef kFunctions[] = {{"_make_custom_node", MakeCustomNode, METH_VARARGS, nullptr},
                            {"_finish_custom", FinishCustom, METH_VARARGS, nullptr},
                            {"_save_for_backward", SaveForBackward, METH_VARARGS, nullptr},
                            {"_unpack_for_backward", UnpackForBackward, METH_O, nullptr},
                            {"_node_of", NodeOf, METH_O, nullptr},
                            {"_save_tensor", SaveTensor, METH_O, nullptr},
                            {"_unpack_saved", UnpackSaved, METH_O, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InitCustomFunctions(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
