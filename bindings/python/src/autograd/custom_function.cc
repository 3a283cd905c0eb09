// Custom functions (mica.autograd.Function): their node, what they save, and the history of what
// they return. The public class is in mica/autograd/function.py.
//
// Note [Nodes and contexts]
// The node holds its context (ctx), and the context finds the node by a Saved that the two share. The
// two live as long as somebody holds either: when the node's last reference goes while others hold the
// context, Saved keeps the node, which holds the context weakly from then on; when the node is asked
// for again it leaves Saved and holds the context as before. All of it under the GIL.
#include "bindings/python/src/autograd/graph_node.h"
#include "bindings/python/src/module/collector.h"
#include "bindings/python/src/module/init.h"
#include "bindings/python/src/operators/arguments.h"

namespace mica::python {
namespace {

class PythonBackward;
struct Saved {
  std::string name;
  const MicaAutograd* table = nullptr;
  MicaNode* node = nullptr;  // not counted; NULL when it is gone
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

// The object of the custom function that stands for one call of Python's.
class PythonBackward {
 public:
  PythonBackward(std::shared_ptr<Saved> saved, PyObject* context)
      : saved_(std::move(saved)), context_(Ref::Borrow(context)) {}
  // Under the GIL.
  ~PythonBackward() {
    saved_->Free();
    saved_->node = nullptr;
  }
  void Apply(MicaTensorSpan grads, MicaTensor** gradients, int64_t n) {
    GilAcquire gil;
    const Ref context = context_;
    MICA_INTERNAL(context, "The backward of ", saved_->name,
                  " runs after Python's garbage collector took its ctx.");
    const Ref function = Own(PyObject_GetAttrString(context.get(), "_backward"));
    const TensorSpan list = AbiType<TensorSpan>::From(grads);
    const Ref arguments(FromTensorList(std::vector<Tensor>(list.begin(), list.end())));
    const Ref result(CheckCall(PyObject_CallObject(function.get(), arguments.get())));
    MICA_CHECK_TYPE(IsTensorList(result.get(), true), "The backward of ", saved_->name,
                    " must return Tensors and Nones.");
    std::vector<Tensor> given = ToTensorList(result.get());
    for (size_t i = 0; i < given.size(); ++i) {
      if (static_cast<int64_t>(i) < n) {
        gradients[i] = given[i].release();
        continue;
      }
      MICA_CHECK(!given[i].defined(), "The backward of ", saved_->name, " returned (", given.size(),
                 ") gradients; its forward has (", n, ") inputs.");
    }
  }
  void ReleaseSaved() {
    GilAcquire gil;
    saved_->Free();
  }
  PyObject* context() const { return context_.get(); }
  void VisitHeld(void* to, MicaVisitHeld visit) {
    const MicaHeld held = {context_.get(), &ReleaseHeldObject};
    if (context_ && visit(to, &held)) static_cast<void>(context_.release());
  }
  bool Keep(MicaNode* node) {
    if (!Py_IsInitialized()) return false;
    GilAcquire gil;
    if (!saved_->node) return false;  // refused while it was made: nobody was given it
    if (!context_ || Py_REFCNT(context_.get()) == 1) return false;
    weak_context_ = Ref(PyWeakref_NewRef(context_.get(), nullptr));
    if (!weak_context_) PyErr_Clear();
    if (!weak_context_) return false;
    saved_->kept = NodePtr::Borrow(saved_->table, node);
    context_ = Ref();
    return true;
  }
  // The node leaves Saved.
  NodePtr Unkeep() {
    context_ = Ref::Borrow(PyWeakref_GetObject(weak_context_.get()));
    weak_context_ = Ref();
    return std::move(saved_->kept);
  }

 private:
  const std::shared_ptr<Saved> saved_;
  Ref context_, weak_context_;
};

NodePtr Saved::Node() {
  if (kept) return backward->Unkeep();
  return node && table->node_retain_living(node) ? NodePtr(table, node) : NodePtr();
}

PythonBackward& BackwardOf(void* object) { return *static_cast<PythonBackward*>(object); }
constexpr MicaCustomFunction kPythonFunction = {
    .struct_size = sizeof(MicaCustomFunction),
    .backward = [](void* object, MicaTensorSpan grads, MicaTensor** gradients,
                   int64_t n) { return CatchAll([&] { BackwardOf(object).Apply(grads, gradients, n); }); },
    .release_saved = [](void* object) { BackwardOf(object).ReleaseSaved(); },
    .keep = [](void* object, MicaNode* node) -> int32_t { return BackwardOf(object).Keep(node); },
    .visit_held = [](void* object, void* to,
                     MicaVisitHeld visit) { BackwardOf(object).VisitHeld(to, visit); },
    .destroy =
        [](void* object) {
          if (!Py_IsInitialized()) return;
          GilAcquire gil;
          delete &BackwardOf(object);
        },
};

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
    const std::vector<Tensor> of = ToTensorList(inputs);
    const Autograd autograd = GetAutograd();
    saved->backward = new PythonBackward(saved, context);
    NodePtr node = autograd.MakeCustomNode(kPythonFunction, saved->backward, name, of);
    saved->table = node.table();
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
    MICA_CHECK_TYPE(node == Py_None || IsNode(node),
                    "_finish_custom takes the node of _make_custom_node, or "
                    "None, and got (",
                    Py_TYPE(node)->tp_name, ").");
    const std::vector<Tensor> i = ToTensorList(inputs), o = ToTensorList(outputs), d = ToTensorList(dirty),
                              f = ToTensorList(fixed);
    const NodePtr n = node == Py_None ? NodePtr() : mica::python::NodeOf(node);
    const Ref results = Own(FromTensorList(GetAutograd().FinishCustom(n, {i, o, d, f, materialize != 0})));
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
      saved.boxes.push_back(list[i].defined() ? GetAutograd().SaveTensor(list[i], saved.node, is_output)
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
    auto box = GetAutograd().SaveTensor(TensorIn(tensor, "What is saved"), nullptr, false);
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

PyObject* ContextOf(const MicaAutograd& table, MicaNode* node) {
  void* const object = table.custom_object(node, &kPythonFunction);
  return object ? BackwardOf(object).context() : nullptr;
}

void InitCustomFunctions(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
