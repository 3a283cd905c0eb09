// Functions under mica.autograd and the grad modes: thin covers of
// AutogradInterface. The public functions are in mica/autograd/.
#include "mica/bindings/python/arguments.h"
#include "mica/bindings/python/graph_node.h"
#include "mica/bindings/python/init.h"
#include "mica/dispatcher/thread_state.h"

namespace mica::python {
namespace {

AutogradInterface& Autograd() { return GetAutogradInterface(); }

PyObject* GradEnabled(PyObject*, PyObject*) { return NewBool(CurrentThread().grad_enabled); }
PyObject* SetGradEnabled(PyObject*, PyObject* on) {
  const bool was = CurrentThread().grad_enabled;
  CurrentThread().grad_enabled = ToBool(on);
  return NewBool(was);
}
PyObject* InferenceEnabled(PyObject*, PyObject*) { return NewBool(CurrentThread().inference_mode); }
// Sets (inference, grad); returns the old pair.
PyObject* SetInference(PyObject*, PyObject* args) {
  int inference, grad;
  if (!PyArg_ParseTuple(args, "pp", &inference, &grad)) return nullptr;
  ThreadState& t = CurrentThread();
  PyObject* old = Py_BuildValue("(NN)", NewBool(t.inference_mode), NewBool(t.grad_enabled));
  t.inference_mode = inference != 0;
  t.grad_enabled = grad != 0;
  SetInferenceMode(t.inference_mode);
  return old;
}

// None, a tensor or a sequence of tensors and Nones.
std::vector<Tensor> TensorsOf(PyObject* o, const char* what) {
  if (o == Py_None) return {};
  if (IsTensor(o)) return {Unwrap(o)};
  MICA_CHECK_TYPE(IsTensorList(o, true), what, " must be a Tensor or a sequence of Tensors.");
  return ToTensorList(o);
}

// _backward(tensors, grads, inputs, retain_graph, create_graph)
PyObject* Backward(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *tensors, *grads, *inputs;
    int retain, create;
    if (!PyArg_ParseTuple(args, "OOOpp:_backward", &tensors, &grads, &inputs, &retain, &create))
      throw PythonErrorIsSet();
    const std::vector<Tensor> t = TensorsOf(tensors, "tensors"), g = TensorsOf(grads, "grad_tensors"),
                              i = TensorsOf(inputs, "inputs");
    Autograd().SetInterruptCheck(CheckInterrupt);
    RunLarge(
        [&] { Autograd().Backward(t, g, i, {.retain_graph = retain != 0, .create_graph = create != 0}); });
    return NewNone();
  });
}

// _gradients(outputs, inputs, grad_outputs, retain, create, allow_unused, materialize)
PyObject* Gradients(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *outputs, *inputs, *grads;
    int retain, create, unused, materialize;
    if (!PyArg_ParseTuple(args, "OOOpppp:_gradients", &outputs, &inputs, &grads, &retain, &create, &unused,
                          &materialize))
      throw PythonErrorIsSet();
    const std::vector<Tensor> o = TensorsOf(outputs, "outputs"), i = TensorsOf(inputs, "inputs"),
                              g = TensorsOf(grads, "grad_outputs");
    Autograd().SetInterruptCheck(CheckInterrupt);
    return FromTensorList(RunLarge([&] {
      return Autograd().Gradients(o, i, g, {retain != 0, create != 0, unused != 0, materialize != 0});
    }));
  });
}

PyObject* AddTensorHook(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *tensor, *hook;
    if (!PyArg_ParseTuple(args, "O!O", &TensorType, &tensor, &hook)) throw PythonErrorIsSet();
    return PyLong_FromUnsignedLongLong(Autograd().AddTensorHook(Unwrap(tensor), MakeTensorHook(hook)));
  });
}
PyObject* RemoveTensorHook(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject* tensor;
    unsigned long long id;
    if (!PyArg_ParseTuple(args, "O!K", &TensorType, &tensor, &id)) throw PythonErrorIsSet();
    Autograd().RemoveTensorHook(Unwrap(tensor), id);
    return NewNone();
  });
}
PyObject* AddAccumulateHook(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *tensor, *hook;
    if (!PyArg_ParseTuple(args, "O!O", &TensorType, &tensor, &hook)) throw PythonErrorIsSet();
    return PyLong_FromUnsignedLongLong(
        Autograd().AddAccumulateHook(Unwrap(tensor), MakeAccumulateHook(hook)));
  });
}
PyObject* RemoveAccumulateHook(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject* tensor;
    unsigned long long id;
    if (!PyArg_ParseTuple(args, "O!K", &TensorType, &tensor, &id)) throw PythonErrorIsSet();
    Autograd().RemoveAccumulateHook(Unwrap(tensor), id);
    return NewNone();
  });
}
PyObject* GradientNode(PyObject*, PyObject* tensor) {
  return Guarded([&] { return WrapNode(Autograd().GradientEdge(Unwrap(tensor)).node); });
}

// ---- anomaly mode
PyObject* SetAnomaly(PyObject*, PyObject* args) {
  return Guarded([&] {
    int enabled, check_nan;
    if (!PyArg_ParseTuple(args, "pp", &enabled, &check_nan)) throw PythonErrorIsSet();
    Autograd().SetAnomalyMode(enabled != 0, check_nan != 0);
    Autograd().SetAnomalyHooks(
        [] {
          GilAcquire gil;
          const Ref module(CheckCall(PyImport_ImportModule("mica.autograd.anomaly_mode")));
          const Ref text(CheckCall(PyObject_CallMethod(module.get(), "_record_stack", nullptr)));
          return std::string(StrView(text.get()));
        },
        [](const std::string& report) {
          GilAcquire gil;
          if (PyErr_WarnEx(PyExc_UserWarning, report.c_str(), 1) < 0) throw PythonException::Take();
        });
    return NewNone();
  });
}
PyObject* AnomalyEnabled(PyObject*, PyObject*) {
  return NewBool(LoadedAutogradInterface() && Autograd().AnomalyEnabled());
}
PyObject* AnomalyCheckNan(PyObject*, PyObject*) {
  return NewBool(LoadedAutogradInterface() && Autograd().AnomalyCheckNan());
}

// ---- custom functions
class PythonBackward final : public CustomBackward {
 public:
  PythonBackward(std::string name, PyObject* backward)
      : name_(std::move(name)), backward_(Py_NewRef(backward)) {}
  ~PythonBackward() override { Drop(); }
  std::string Name() const override { return name_; }
  std::vector<Tensor> Apply(std::vector<Tensor> grads) override {
    GilAcquire gil;
    MICA_CHECK(backward_, "The saved tensors of ", name_,
               " were freed by an earlier backward; pass retain_graph=True to it.");
    const Ref arguments(FromTensorList(std::move(grads)));
    const Ref result(CheckCall(PyObject_CallObject(backward_, arguments.get())));
    if (IsTensor(result.get())) return {Unwrap(result.get())};
    if (result.get() == Py_None) return {Tensor()};
    MICA_CHECK_TYPE(IsTensorList(result.get(), true), "The backward of ", name_,
                    " must return Tensors and Nones.");
    return ToTensorList(result.get());
  }
  void ReleaseSaved() override { Drop(); }

 private:
  void Drop() {
    if (!backward_ || !Py_IsInitialized()) return;
    GilAcquire gil;
    Py_CLEAR(backward_);
  }
  std::string name_;
  PyObject* backward_;
};

// _make_custom_node(name, backward, inputs) -> Node or None
PyObject* MakeCustomNode(PyObject*, PyObject* args) {
  return Guarded([&] {
    const char* name;
    PyObject *backward, *inputs;
    if (!PyArg_ParseTuple(args, "sOO", &name, &backward, &inputs)) throw PythonErrorIsSet();
    return WrapNode(
        Autograd().MakeCustomNode(std::make_unique<PythonBackward>(name, backward), ToTensorList(inputs)));
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
    return FromTensorList(Autograd().FinishCustom(n, {i, o, d, f, materialize != 0}));
  });
}

constexpr const char* kSavedName = "mica.saved_tensor";
// _save_tensor(tensor, node, is_output) -> capsule; _unpack_saved(capsule) -> Tensor
PyObject* SaveTensor(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *tensor, *node;
    int is_output;
    if (!PyArg_ParseTuple(args, "O!Op", &TensorType, &tensor, &node, &is_output)) throw PythonErrorIsSet();
    auto box =
        Autograd().SaveTensor(Unwrap(tensor), node == Py_None ? nullptr : UnwrapNode(node), is_output != 0);
    return Check(PyCapsule_New(box.release(), kSavedName, [](PyObject* capsule) {
      delete static_cast<SavedTensorBox*>(PyCapsule_GetPointer(capsule, kSavedName));
    }));
  });
}
PyObject* UnpackSaved(PyObject*, PyObject* capsule) {
  return Guarded([&] {
    auto* box = static_cast<SavedTensorBox*>(PyCapsule_GetPointer(capsule, kSavedName));
    if (!box) throw PythonErrorIsSet();
    return Wrap(box->Unpack());
  });
}

std::shared_ptr<void> SharedObject(PyObject* o) {
  Py_INCREF(o);
  return std::shared_ptr<void>(o, [](void* p) {
    if (!Py_IsInitialized()) return;
    GilAcquire gil;
    Py_DECREF(static_cast<PyObject*>(p));
  });
}
PyObject* PushSavedHooks(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *pack, *unpack;
    if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) throw PythonErrorIsSet();
    auto hooks = std::make_shared<SavedTensorHooks>();
    hooks->pack = [f = SharedObject(pack)](const Tensor& t) {
      GilAcquire gil;
      const Ref argument(Wrap(t));
      const Ref packed(CheckCall(PyObject_CallOneArg(static_cast<PyObject*>(f.get()), argument.get())));
      return SharedObject(packed.get());
    };
    hooks->unpack = [f = SharedObject(unpack)](const std::shared_ptr<void>& packed) {
      GilAcquire gil;
      const Ref result(CheckCall(
          PyObject_CallOneArg(static_cast<PyObject*>(f.get()), static_cast<PyObject*>(packed.get()))));
      MICA_CHECK_TYPE(IsTensor(result.get()), "The unpack hook must return a Tensor.");
      return Unwrap(result.get());
    };
    Autograd().PushSavedTensorHooks(std::move(hooks));
    return NewNone();
  });
}
PyObject* PopSavedHooks(PyObject*, PyObject*) {
  return Guarded([&] {
    Autograd().PopSavedTensorHooks();
    return NewNone();
  });
}
PyObject* QueueCallback(PyObject*, PyObject* callback) {
  return Guarded([&] {
    Autograd().QueueCallback([f = SharedObject(callback)] {
      GilAcquire gil;
      const Ref result(CheckCall(PyObject_CallNoArgs(static_cast<PyObject*>(f.get()))));
    });
    return NewNone();
  });
}

PyMethodDef kFunctions[] = {
    {"is_grad_enabled", GradEnabled, METH_NOARGS, "is_grad_enabled() -> bool"},
    {"_set_grad_enabled", SetGradEnabled, METH_O, nullptr},
    {"is_inference_mode_enabled", InferenceEnabled, METH_NOARGS, "is_inference_mode_enabled() -> bool"},
    {"_set_inference", SetInference, METH_VARARGS, nullptr},
    {"_backward", Backward, METH_VARARGS, nullptr},
    {"_gradients", Gradients, METH_VARARGS, nullptr},
    {"_add_tensor_hook", AddTensorHook, METH_VARARGS, nullptr},
    {"_remove_tensor_hook", RemoveTensorHook, METH_VARARGS, nullptr},
    {"_add_accumulate_hook", AddAccumulateHook, METH_VARARGS, nullptr},
    {"_remove_accumulate_hook", RemoveAccumulateHook, METH_VARARGS, nullptr},
    {"_gradient_node", GradientNode, METH_O, nullptr},
    {"_set_anomaly", SetAnomaly, METH_VARARGS, nullptr},
    {"is_anomaly_enabled", AnomalyEnabled, METH_NOARGS, "is_anomaly_enabled() -> bool"},
    {"is_anomaly_check_nan_enabled", AnomalyCheckNan, METH_NOARGS, nullptr},
    {"_make_custom_node", MakeCustomNode, METH_VARARGS, nullptr},
    {"_finish_custom", FinishCustom, METH_VARARGS, nullptr},
    {"_save_tensor", SaveTensor, METH_VARARGS, nullptr},
    {"_unpack_saved", UnpackSaved, METH_O, nullptr},
    {"_push_saved_tensor_hooks", PushSavedHooks, METH_VARARGS, nullptr},
    {"_pop_saved_tensor_hooks", PopSavedHooks, METH_NOARGS, nullptr},
    {"_queue_callback", QueueCallback, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InitAutograd(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
