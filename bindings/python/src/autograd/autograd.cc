// Functions under mica.autograd and the grad modes: thin covers of Autograd's
// table. The public functions are in mica/autograd/.
#include "bindings/python/src/autograd/graph_node.h"
#include "bindings/python/src/module/collector.h"
#include "bindings/python/src/module/init.h"
#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/tensor/symbolic.h"
#include "dispatcher/calls/thread_state.h"

namespace mica::python {
namespace {

PyObject* GradEnabled(PyObject*, PyObject*) { return NewBool(CurrentThread().grad_enabled); }
PyObject* SetGradEnabled(PyObject*, PyObject* on) {
  return Guarded([&] {
    const bool enabled = ToBool(on);
    return NewBool(std::exchange(CurrentThread().grad_enabled, enabled));
  });
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

// None, a tensor or a sequence of tensors and Nones, as the current frame knows them.
std::vector<Tensor> TensorsOf(PyObject* o, const char* what) {
  if (o == Py_None) return {};
  if (IsTensor(o)) return {Resident(Unwrap(o))};
  MICA_CHECK_TYPE(IsTensorList(o, true), what, " must be a Tensor or a sequence of Tensors.");
  std::vector<Tensor> list = ToTensorList(o);
  for (Tensor& t : list) t = Resident(t);
  return list;
}

// A Tensor, or a GradientEdge: a tuple that begins with a Node and a number.
bool IsEdge(PyObject* o) {
  return PyTuple_Check(o) && PyTuple_GET_SIZE(o) >= 2 && IsNode(PyTuple_GET_ITEM(o, 0));
}
GradientPoint PointOf(PyObject* o, const char* what) {
  if (IsTensor(o)) return {Resident(Unwrap(o)), {}};
  MICA_CHECK_TYPE(IsEdge(o), "Argument `", what, "` holds a value of type (", TypeName(o),
                  ") where a Tensor or a GradientEdge is expected.");
  return {Tensor(), {NodeOf(PyTuple_GET_ITEM(o, 0)), ToInt(PyTuple_GET_ITEM(o, 1))}};
}
GradientPoints PointsOf(PyObject* o, const char* what) {
  if (o == Py_None) return {};
  if (IsTensor(o) || IsEdge(o)) return {PointOf(o, what)};
  const Ref list(PySequence_Fast(o, ""));
  if (!list) PyErr_Clear();
  MICA_CHECK_TYPE(list, "Argument `", what,
                  "` must be a Tensor, a GradientEdge or a sequence of them, not a value of type (",
                  TypeName(o), ").");
  GradientPoints points;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i)
    points.push_back(PointOf(PySequence_Fast_GET_ITEM(list.get(), i), what));
  return points;
}

MicaStatus InterruptStatus() { return CatchAll(CheckInterrupt); }
uint64_t FlagsOf(int retain_graph, int create_graph) {
  return (retain_graph ? MICA_BACKWARD_RETAIN_GRAPH : 0) | (create_graph ? MICA_BACKWARD_CREATE_GRAPH : 0);
}

// _backward(tensors, grads, inputs, retain_graph, create_graph)
PyObject* Backward(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *tensors, *grads, *inputs;
    int retain, create;
    if (!PyArg_ParseTuple(args, "OOOpp:_backward", &tensors, &grads, &inputs, &retain, &create))
      throw PythonErrorIsSet();
    const GradientPoints t = PointsOf(tensors, "tensors"), i = PointsOf(inputs, "inputs");
    MICA_CHECK(inputs == Py_None || !i.empty(),
               "backward: Argument `inputs` cannot be empty; name the tensors that get a gradient, or leave "
               "it out.");
    const std::vector<Tensor> g = TensorsOf(grads, "grad_tensors");
    const Autograd autograd = GetAutograd();
    autograd->set_interrupt_check(&InterruptStatus);
    RunLarge([&] { autograd.Backward(t, g, i, FlagsOf(retain, create)); });
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
    const GradientPoints o = PointsOf(outputs, "outputs"), i = PointsOf(inputs, "inputs");
    const std::vector<Tensor> g = TensorsOf(grads, "grad_outputs");
    const uint64_t flags = FlagsOf(retain, create) | (unused ? MICA_BACKWARD_ALLOW_UNUSED : 0) |
                           (materialize ? MICA_BACKWARD_MATERIALIZE_GRADS : 0);
    const Autograd autograd = GetAutograd();
    autograd->set_interrupt_check(&InterruptStatus);
    return FromTensorList(RunLarge([&] { return autograd.Gradients(o, i, g, flags); }));
  });
}

// _add_tensor_hook(tensor, hook), _add_accumulate_hook(tensor, hook) -> a function that takes it away
template <typename Function>
PyObject* AddHook(PyObject* args, HookRemover (Autograd::*add)(const Tensor&, Function, MicaHeld) const,
                  Function function) {
  return Guarded([&] {
    PyObject *tensor, *hook;
    if (!PyArg_ParseTuple(args, "O!O", &TensorType, &tensor, &hook)) throw PythonErrorIsSet();
    HookRemover remover = (GetAutograd().*add)(Unwrap(tensor), function, HoldObject(hook));
    Track(tensor);
    return FromRemover(std::move(remover));
  });
}
PyObject* AddTensorHook(PyObject*, PyObject* args) {
  return AddHook(args, &Autograd::AddTensorHook, &CallTensorHook);
}
PyObject* AddAccumulateHook(PyObject*, PyObject* args) {
  return AddHook(args, &Autograd::AddAccumulateHook, &CallAccumulateHook);
}
// _gradient_edge(tensor) -> (Node or None, number)
PyObject* GradientEdgeOf(PyObject*, PyObject* tensor) {
  return Guarded([&] {
    GraphEdge edge = GetAutograd().GradientEdge(TensorIn(tensor, "What a gradient edge is asked for of"));
    return Check(Py_BuildValue("(NL)", WrapNode(std::move(edge.node)), edge.input_nr));
  });
}
// The number of the running backward, None outside of one; whether it comes to a node.
PyObject* BackwardNumber(PyObject*, PyObject*) {
  const Autograd autograd = LoadedAutograd();
  const uint64_t number = autograd ? autograd->backward_number() : 0;
  return number ? PyLong_FromUnsignedLongLong(number) : NewNone();
}
PyObject* WillRun(PyObject*, PyObject* node) {
  return Guarded([&] {
    MICA_CHECK_TYPE(IsNode(node), "A Node is expected.");
    return NewBool(GetAutograd().WillRun(UnwrapNode(node)));
  });
}

// ---- anomaly mode
MicaStatus RecordStack(void*, void* to, void (*write)(void* to, MicaStr text)) {
  return CatchAll([&] {
    GilAcquire gil;
    const Ref module(CheckCall(PyImport_ImportModule("mica.autograd.anomaly_mode")));
    const Ref text(CheckCall(PyObject_CallMethod(module.get(), "_record_stack", nullptr)));
    write(to, StrOf(StrView(text.get())));
  });
}
MicaStatus ReportFailure(void*, MicaStr report) {
  return CatchAll([&] {
    GilAcquire gil;
    // A warning that is made an error is printed: what backward raises is what failed.
    if (PyErr_WarnEx(PyExc_UserWarning, std::string(ViewOf(report)).c_str(), 1) < 0)
      PyErr_WriteUnraisable(nullptr);
  });
}
uint64_t AnomalyMode() {
  const Autograd autograd = LoadedAutograd();
  return autograd ? autograd->anomaly_mode() : 0;
}
PyObject* SetAnomaly(PyObject*, PyObject* args) {
  return Guarded([&] {
    int enabled, check_nan;
    if (!PyArg_ParseTuple(args, "pp", &enabled, &check_nan)) throw PythonErrorIsSet();
    const Autograd autograd = GetAutograd();
    autograd->set_anomaly_mode((enabled ? MICA_ANOMALY_ON : 0) | (check_nan ? MICA_ANOMALY_CHECK_NAN : 0));
    ThrowIfError(autograd->set_anomaly_hooks(&RecordStack, &ReportFailure, {}));
    return NewNone();
  });
}
PyObject* AnomalyEnabled(PyObject*, PyObject*) { return NewBool((AnomalyMode() & MICA_ANOMALY_ON) != 0); }
PyObject* AnomalyCheckNan(PyObject*, PyObject*) {
  return NewBool((AnomalyMode() & MICA_ANOMALY_CHECK_NAN) != 0);
}

PyObject* PushSavedHooks(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *pack, *unpack;
    if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) throw PythonErrorIsSet();
    GetAutograd().PushSavedTensorHooks(MakeSavedTensorHooks(pack, unpack));
    return NewNone();
  });
}
PyObject* PopSavedHooks(PyObject*, PyObject*) {
  return Guarded([&] {
    GetAutograd().PopSavedTensorHooks();
    return NewNone();
  });
}
// _forbid_saved_tensor_hooks(message or None) -> the message before
PyObject* ForbidSavedHooks(PyObject*, PyObject* message) {
  return Guarded([&] {
    std::optional<std::string_view> text;
    if (message != Py_None) text = StrView(message);
    const std::optional<std::string> before = GetAutograd().ForbidSavedTensorHooks(text);
    return before ? NewStr(*before) : NewNone();
  });
}
// _push_copy_on_write() -> a function: (only copies?) -> what is still saved for backward
constexpr const char* kSavedCopies = "mica.saved_copies";
SavedCopies* CopiesOf(PyObject* capsule) {
  return static_cast<SavedCopies*>(PyCapsule_GetPointer(capsule, kSavedCopies));
}
PyObject* ListSaved(PyObject* capsule, PyObject* copies) {
  return Guarded([&] { return FromTensorList(CopiesOf(capsule)->List(copies == Py_True)); });
}
PyObject* PushCopyOnWrite(PyObject*, PyObject*) {
  static PyMethodDef method = {"saved", ListSaved, METH_O, "saved(only_copies) -> tuple of Tensors"};
  return Guarded([&] {
    std::unique_ptr<SavedCopies> copies = GetAutograd().PushCopyOnWrite();
    const Ref capsule =
        Own(PyCapsule_New(copies.get(), kSavedCopies, [](PyObject* o) { delete CopiesOf(o); }));
    static_cast<void>(copies.release());
    return Check(PyCFunction_New(&method, capsule.get()));
  });
}
PyObject* PopCopyOnWrite(PyObject*, PyObject*) {
  return Guarded([&] {
    GetAutograd().PopCopyOnWrite();
    return NewNone();
  });
}
PyObject* QueueCallback(PyObject*, PyObject* callback) {
  return Guarded([&] {
    const auto call = [](void* function) {
      return CatchAll([&] {
        GilAcquire gil;
        const Ref result(CheckCall(PyObject_CallNoArgs(static_cast<PyObject*>(function))));
      });
    };
    GetAutograd().QueueCallback(call, HoldObject(callback));
    return NewNone();
  });
}
// _increment_version(tensor): as if an in-place operator had written it.
PyObject* IncrementVersion(PyObject*, PyObject* tensor) {
  return Guarded([&] {
    MICA_CHECK_TYPE(IsTensor(tensor), "increment_version takes Tensors, not a value of type (",
                    TypeName(tensor), ").");
    const Tensor t = Unwrap(tensor);
    MICA_CHECK(!t.is_inference(), "A tensor that was made in inference mode has no version to increment.");
    t.impl()->storage->BumpVersion();
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
    {"_add_accumulate_hook", AddAccumulateHook, METH_VARARGS, nullptr},
    {"_gradient_edge", GradientEdgeOf, METH_O, nullptr},
    {"_backward_number", BackwardNumber, METH_NOARGS, nullptr},
    {"_will_run", WillRun, METH_O, nullptr},
    {"_increment_version", IncrementVersion, METH_O, nullptr},
    {"_set_anomaly", SetAnomaly, METH_VARARGS, nullptr},
    {"is_anomaly_enabled", AnomalyEnabled, METH_NOARGS, "is_anomaly_enabled() -> bool"},
    {"is_anomaly_check_nan_enabled", AnomalyCheckNan, METH_NOARGS, nullptr},
    {"_push_saved_tensor_hooks", PushSavedHooks, METH_VARARGS, nullptr},
    {"_pop_saved_tensor_hooks", PopSavedHooks, METH_NOARGS, nullptr},
    {"_forbid_saved_tensor_hooks", ForbidSavedHooks, METH_O, nullptr},
    {"_push_copy_on_write", PushCopyOnWrite, METH_NOARGS, nullptr},
    {"_pop_copy_on_write", PopCopyOnWrite, METH_NOARGS, nullptr},
    {"_queue_callback", QueueCallback, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InitAutograd(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
