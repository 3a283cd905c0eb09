// Frames for mica.func and mica.autograd.forward_ad: entering and leaving them, and the
// tensors of the current one. Thin covers of dispatcher/frames/frames.h; the checks that users
// see are in the Python modules.
#include "dispatcher/frames/frames.h"

#include "bindings/python/src/autograd/gradients.h"
#include "bindings/python/src/module/init.h"
#include "bindings/python/src/operators/arguments.h"

namespace mica::python {
namespace {

using frames::Frame;

constexpr const char* kScope = "mica.frame";
constexpr const char* kLeft = "mica.left_frame";

const Frame& CurrentFrame() {
  const Frame* frame = frames::Current();
  MICA_CHECK(frame, "No transform is active on this thread.");
  return *frame;
}

// _frame_enter(kind, tag=0) -> capsule. The caller leaves it by _frame_exit.
PyObject* Enter(PyObject*, PyObject* args) {
  return Guarded([&] {
    const char* kind;
    unsigned long long tag = 0;
    if (!PyArg_ParseTuple(args, "s|K:_frame_enter", &kind, &tag)) throw PythonErrorIsSet();
    const int number = frames::ProvidedKind(kind, absl::StrCat("No transform has the name (", kind, ")."));
    auto scope = std::make_unique<frames::FrameScope>(number, nullptr, tag);
    PyObject* capsule = Check(PyCapsule_New(scope.get(), kScope, nullptr));
    static_cast<void>(scope.release());
    return capsule;
  });
}

// Leaves the frame, and what was entered inside of it and not left.
PyObject* Exit(PyObject*, PyObject* capsule) {
  return Guarded([&] {
    auto* scope = static_cast<frames::FrameScope*>(PyCapsule_GetPointer(capsule, kScope));
    if (!scope) throw PythonErrorIsSet();
    const Frame* innermost = frames::Current();
    const Frame* frame = innermost;
    while (frame && frame != &scope->frame()) frame = frame->parent;
    MICA_CHECK(frame, "A transform is left twice, or on another thread than it was entered on.");
    delete scope;
    MICA_CHECK(frame == innermost, "A transform is left while one that was entered inside of it is active.");
    return NewNone();
  });
}

PyObject* Tag(PyObject*, PyObject*) {
  return Guarded([&] { return PyLong_FromUnsignedLongLong(CurrentFrame().tag); });
}
PyObject* KindName(PyObject*, PyObject*) {
  const Frame* frame = frames::Current();
  return frame ? NewStr(frames::KindOf(frame->kind).name) : NewNone();
}
PyObject* Depth(PyObject*, PyObject*) {
  long depth = 0;
  for (const Frame* f = frames::Current(); f; f = f->parent) ++depth;
  return PyLong_FromLong(depth);
}

// While the capsule is kept, the current frame's parent is current.
PyObject* Leave(PyObject*, PyObject*) {
  return Guarded([&] {
    static_cast<void>(CurrentFrame());
    auto left = std::make_unique<frames::LeaveFrame>();
    PyObject* capsule = Check(PyCapsule_New(left.get(), kLeft, nullptr));
    static_cast<void>(left.release());
    return capsule;
  });
}
PyObject* Return(PyObject*, PyObject* capsule) {
  return Guarded([&] {
    auto* left = static_cast<frames::LeaveFrame*>(PyCapsule_GetPointer(capsule, kLeft));
    if (!left) throw PythonErrorIsSet();
    delete left;
    return NewNone();
  });
}

PyObject* GradInput(PyObject*, PyObject* value) {
  return Guarded([&] {
    static_cast<void>(CurrentFrame());
    return Wrap(GetAutograd().GradInput(TensorIn(value, "A transform's value")));
  });
}

// _frame_dual(value, tangent or None)
PyObject* MakeDual(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *value, *tangent;
    if (!PyArg_ParseTuple(args, "OO:_frame_dual", &value, &tangent)) throw PythonErrorIsSet();
    static_cast<void>(CurrentFrame());
    return Wrap(
        GetAutograd().MakeDual(TensorIn(value, "A transform's value"),
                               tangent == Py_None ? Tensor() : TensorIn(tangent, "A transform's value")));
  });
}

// A constant of the current frame.
PyObject* Constant(PyObject*, PyObject* value) {
  return Guarded([&] { return Wrap(frames::Lift(TensorIn(value, "A transform's value"), CurrentFrame())); });
}

PyObject* Value(PyObject*, PyObject* o) {
  return Guarded([&]() -> PyObject* {
    if (!IsTensor(o)) return Py_NewRef(o);
    const frames::Wrapper* w = frames::Own(Unwrap(o), CurrentFrame());
    return w ? Wrap(frames::KindOf(w->kind).read ? frames::Behind(Unwrap(o)) : w->value) : Py_NewRef(o);
  });
}

PyObject* Tangent(PyObject*, PyObject* o) {
  return Guarded([&] {
    if (!IsTensor(o) || !frames::Own(Unwrap(o), CurrentFrame())) return NewNone();
    const frames::LeaveFrame left;
    Tensor tangent = GetAutograd().Tangent(Unwrap(o));
    return tangent.defined() ? Wrap(std::move(tangent)) : NewNone();
  });
}

PyObject* Owns(PyObject*, PyObject* o) {
  return Guarded(
      [&] { return NewBool(frames::Current() && IsTensor(o) && frames::Own(Unwrap(o), CurrentFrame())); });
}

// The name of the transform that the tensor escaped from; None for others.
PyObject* EscapedFrom(PyObject*, PyObject* o) {
  return Guarded([&]() -> PyObject* {
    const Tensor& t = TensorIn(o, "A transform's value");
    if (!frames::IsWrapper(t)) return NewNone();
    for (const Frame* f = frames::Current(); f; f = f->parent)
      if (frames::Own(t, *f)) return NewNone();
    return NewStr(frames::KindOf(frames::WrapperOf(t).kind).name);
  });
}

PyMethodDef kFunctions[] = {{"_frame_enter", Enter, METH_VARARGS, nullptr},
                            {"_frame_exit", Exit, METH_O, nullptr},
                            {"_frame_tag", Tag, METH_NOARGS, nullptr},
                            {"_frame_kind", KindName, METH_NOARGS, nullptr},
                            {"_frame_depth", Depth, METH_NOARGS, nullptr},
                            {"_frame_leave", Leave, METH_NOARGS, nullptr},
                            {"_frame_return", Return, METH_O, nullptr},
                            {"_frame_grad_input", GradInput, METH_O, nullptr},
                            {"_frame_dual", MakeDual, METH_VARARGS, nullptr},
                            {"_frame_constant", Constant, METH_O, nullptr},
                            {"_frame_value", Value, METH_O, nullptr},
                            {"_frame_tangent", Tangent, METH_O, nullptr},
                            {"_frame_owns", Owns, METH_O, nullptr},
                            {"_frame_escaped_from", EscapedFrom, METH_O, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InitFrames(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
