// Traces for mica.fx: entering and leaving the frame, and the tape as Python objects. What
// becomes of them is in mica/fx/_make_fx.py.
#include <optional>

#include "bindings/python/src/module/init.h"
#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/operators/boxing.h"
#include "bindings/python/src/tensor/item.h"
#include "bindings/python/src/tensor/symbolic.h"
#include "dispatcher/layers/tracing.h"
#include "schema/default.h"

namespace mica::python {

PyTypeObject* g_symbolic_type = nullptr;

namespace {

using frames::Frame;
using frames::Tape;

constexpr const char* kTraceName = "mica.trace";

// A tape, and the frame while it is entered.
struct Traced {
  Tape tape;
  std::optional<frames::FrameScope> scope;
};

void DeleteTraced(PyObject* capsule) {
  auto* traced = static_cast<Traced*>(PyCapsule_GetPointer(capsule, kTraceName));
  if (traced->scope) return;  // a frame that nobody left stays with its tape and its sizes
  Py_XDECREF(static_cast<PyObject*>(traced->tape.owner));
  delete traced;
}

Traced& TracedOf(PyObject* capsule) {
  auto* traced = static_cast<Traced*>(PyCapsule_GetPointer(capsule, kTraceName));
  if (!traced) throw PythonErrorIsSet();
  return *traced;
}

// _trace_enter(fake, sizes) -> capsule. `sizes(number, dim, hint)` makes the SymInts; None: sizes are ints.
PyObject* EnterFrame(PyObject*, PyObject* args) {
  return Guarded([&] {
    int fake;
    PyObject* sizes;
    if (!PyArg_ParseTuple(args, "pO:_trace_enter", &fake, &sizes)) throw PythonErrorIsSet();
    const int kind = frames::ProvidedKind("trace", "make_fx needs the trace plugin.");
    auto traced = std::make_unique<Traced>();
    traced->tape.fake = fake != 0;
    traced->tape.symbolic = sizes != Py_None;
    traced->tape.owner = Py_NewRef(sizes);
    const Ref capsule = Own(PyCapsule_New(traced.get(), kTraceName, DeleteTraced));
    Traced& kept = *traced.release();
    ThreadState& thread = CurrentThread();
    const bool grad_enabled = thread.grad_enabled;
    kept.scope.emplace(kind, &kept.tape);
    thread.grad_enabled = grad_enabled;
    return Py_NewRef(capsule.get());
  });
}

PyObject* ExitFrame(PyObject*, PyObject* capsule) {
  return Guarded([&] {
    Traced& traced = TracedOf(capsule);
    MICA_CHECK(traced.scope && frames::Current() == &traced.scope->frame(),
               "A trace is left while a transform that was entered inside of it is active.");
    traced.scope.reset();
    // Nobody reads sizes any more, and the collector does not see through a capsule.
    Py_XDECREF(static_cast<PyObject*>(std::exchange(traced.tape.owner, nullptr)));
    return NewNone();
  });
}

// _trace_input(tensor, device=None) -> (the tensor inside of the current trace, the number of its
// value). With a device it shows that one.
PyObject* Input(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *o, *device = Py_None;
    if (!PyArg_ParseTuple(args, "O|O:_trace_input", &o, &device)) throw PythonErrorIsSet();
    Tensor inside = frames::EnterTrace(TensorIn(o, "An input of a trace"), true);
    if (device != Py_None) frames::ShowDevice(inside, ToDevice(device));
    const int64_t number = frames::WrapperOf(inside).number;
    return Py_BuildValue("(NL)", Wrap(std::move(inside)), static_cast<long long>(number));
  });
}

// _trace_number(tensor): of its value in the current trace; a tensor from outside becomes a constant.
PyObject* Number(PyObject*, PyObject* o) {
  return Guarded([&] {
    const Tensor inside = frames::EnterTrace(TensorIn(o, "A value of a trace"), false);
    return PyLong_FromLongLong(frames::WrapperOf(inside).number);
  });
}

// _trace_inside(tensor): what stands for it in the current trace.
PyObject* Inside(PyObject*, PyObject* o) {
  return Guarded([&] { return Wrap(frames::EnterTrace(TensorIn(o, "A value of a trace"), false)); });
}

// _trace_constants(capsule) -> [(number, tensor, whether the function made it, whether it was written)]
PyObject* Constants(PyObject*, PyObject* capsule) {
  return Guarded([&] {
    const Ref list = Own(PyList_New(0));
    for (const Tape::Constant& c : TracedOf(capsule).tape.constants) {
      const Ref item = Own(Py_BuildValue("(LNNN)", static_cast<long long>(c.number), Wrap(c.tensor),
                                         NewBool(c.made_inside), NewBool(Tape::Written(c))));
      Check(PyList_Append(list.get(), item.get()));
    }
    return Py_NewRef(list.get());
  });
}

// _trace_values(capsule) -> [(dtype, device, shape, stride)], in the order of the numbers
PyObject* Values(PyObject*, PyObject* capsule) {
  return Guarded([&] {
    const Ref list = Own(PyList_New(0));
    for (const Tape::TracedValue& v : TracedOf(capsule).tape.values) {
      const Ref item = Own(Py_BuildValue("(NNNN)", FromDType(v.dtype), FromDevice(v.device),
                                         FromSizes(v.sizes), FromInts(v.strides)));
      Check(PyList_Append(list.get(), item.get()));
    }
    return Py_NewRef(list.get());
  });
}

PyObject* Referenced(int64_t ref, const Tape& tape, PyObject* values) {
  if (ref == 0) return NewNone();
  if (ref < 0) return FromScalar(ItemOf(tape.numbers[static_cast<size_t>(-ref - 1)]));
  const Ref key = Own(PyLong_FromLongLong(ref));
  return Check(PyObject_GetItem(values, key.get()));
}

PyObject* ArgumentOf(const Tape::Argument& a, const schema::Type& type, const Tape& tape, PyObject* values) {
  if (!a.is_tensor) return FromValue(a.value.Borrow(), type);
  if (!a.is_list) return Referenced(a.refs[0], tape, values);
  const Ref list = Own(PyList_New(static_cast<Py_ssize_t>(a.refs.size())));
  for (size_t i = 0; i < a.refs.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Referenced(a.refs[i], tape, values));
  return Py_NewRef(list.get());
}

bool IsDefault(const Tape::Argument& a, const schema::Argument& s) {
  if (!s.default_value) return false;
  if (a.is_tensor) return !a.is_list && a.refs[0] == 0;
  return schema::Default(s) == a.value;
}

PyObject* ResultOf(const Tape::Result& r) {
  if (!r.is_list) return PyLong_FromLongLong(r.values.empty() ? 0 : r.values[0]);
  const Ref list = Own(PyList_New(static_cast<Py_ssize_t>(r.values.size())));
  for (size_t i = 0; i < r.values.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(r.values[i]));
  return Py_NewRef(list.get());
}

// One call as (operator's name, args, kwargs, results); arguments that equal their defaults are left out.
Ref CallOf(const Tape::Call& call, const Tape& tape, PyObject* values) {
  const schema::FunctionSchema& schema = call.op->schema();
  const auto argument = [&](size_t i) {
    return Own(ArgumentOf(call.args[i], schema.arguments[i].type, tape, values));
  };
  size_t positional = static_cast<size_t>(schema.NumPositional());
  while (positional > 0 && IsDefault(call.args[positional - 1], schema.arguments[positional - 1]))
    --positional;
  const Ref args = Own(PyTuple_New(static_cast<Py_ssize_t>(positional)));
  for (size_t i = 0; i < positional; ++i)
    PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), argument(i).release());
  const Ref kwargs = Own(PyDict_New());
  for (auto i = static_cast<size_t>(schema.NumPositional()); i < call.args.size(); ++i) {
    if (!IsDefault(call.args[i], schema.arguments[i]))
      Check(PyDict_SetItemString(kwargs.get(), schema.arguments[i].name.c_str(), argument(i).get()));
  }
  const Ref results = Own(PyList_New(0));
  for (const Tape::Result& r : call.results) Check(PyList_Append(results.get(), Own(ResultOf(r)).get()));
  return Own(Py_BuildValue("(NOOO)", NewStr(call.op->name()), args.get(), kwargs.get(), results.get()));
}

// _trace_calls(capsule, values, emit): emit(name, args, kwargs, results) for each call, in order;
// `values` maps numbers to what stands for them among the arguments.
PyObject* Calls(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *capsule, *values, *emit;
    if (!PyArg_ParseTuple(args, "OOO:_trace_calls", &capsule, &values, &emit)) throw PythonErrorIsSet();
    const Tape& tape = TracedOf(capsule).tape;
    for (const Tape::Call& call : tape.calls)
      Own(PyObject_CallObject(emit, CallOf(call, tape, values).get()));
    return NewNone();
  });
}

// _trace_text(tensor): what it shows of itself while its elements cannot be read; None of others.
PyObject* Text(PyObject*, PyObject* o) {
  return Guarded([&] {
    const Tensor& t = TensorIn(o, "A value of a trace");
    for (const Tensor* inner = &t; frames::IsWrapper(*inner); inner = &frames::WrapperOf(*inner).value)
      if (!frames::KindOf(frames::WrapperOf(*inner).kind).unreadable.empty()) return NewStr(t.ToString());
    return NewNone();
  });
}

// _set_symbolic_type(type): of objects with a `hint` that operators take for a number.
PyObject* SetSymbolicType(PyObject*, PyObject* type) {
  Py_XSETREF(g_symbolic_type, reinterpret_cast<PyTypeObject*>(Py_NewRef(type)));
  return NewNone();
}

PyMethodDef kFunctions[] = {{"_trace_enter", EnterFrame, METH_VARARGS, nullptr},
                            {"_trace_exit", ExitFrame, METH_O, nullptr},
                            {"_trace_input", Input, METH_VARARGS, nullptr},
                            {"_trace_number", Number, METH_O, nullptr},
                            {"_trace_inside", Inside, METH_O, nullptr},
                            {"_trace_constants", Constants, METH_O, nullptr},
                            {"_trace_values", Values, METH_O, nullptr},
                            {"_trace_text", Text, METH_O, nullptr},
                            {"_trace_calls", Calls, METH_VARARGS, nullptr},
                            {"_set_symbolic_type", SetSymbolicType, METH_O, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

// The value of a symbolic trace that is current behind `t`, and how many dimensions of it `t` hides.
struct Origin {
  const Tape* tape = nullptr;
  int64_t number = 0;
  int hidden = 0;
};
Origin OriginOf(const Tensor& t) {
  Origin found;
  for (const Tensor* inner = &t; frames::IsWrapper(*inner); inner = &frames::WrapperOf(*inner).value) {
    const frames::Wrapper& w = frames::WrapperOf(*inner);
    for (const Frame* f = frames::Current(); f; f = f->parent) {
      if (f->tag != w.tag || frames::KindOf(f->kind).name != "trace") continue;
      if (!frames::TapeOf(*f).symbolic || w.number == 0) continue;
      return {&frames::TapeOf(*f), w.number, found.hidden};
    }
    found.hidden += w.hidden;
  }
  return found;
}

PyObject* Symbolic(const Origin& from, int64_t dim, int64_t hint) {
  return Check(PyObject_CallFunction(
      static_cast<PyObject*>(from.tape->owner), "LLL", static_cast<long long>(from.number),
      static_cast<long long>(dim + from.hidden), static_cast<long long>(hint)));
}

}  // namespace

Ref HintOf(PyObject* symbolic) { return Own(PyObject_GetAttrString(symbolic, "hint")); }

PyObject* ShapeInFrames(const Tensor& t) {
  PyObject* shape = FromSizes(t.sizes());
  const Origin from = OriginOf(t);
  for (int64_t d = 0; from.tape && d < t.ndim(); ++d) {
    PyObject* size = Symbolic(from, d, t.sizes()[d]);
    Py_DECREF(PyTuple_GET_ITEM(shape, d));
    PyTuple_SET_ITEM(shape, d, size);
  }
  return shape;
}

PyObject* SizeInFrames(const Tensor& t, int64_t dim) {
  const int64_t hint = t.size(dim);
  const Origin from = OriginOf(t);
  return from.tape ? Symbolic(from, dim < 0 ? dim + t.ndim() : dim, hint) : PyLong_FromLongLong(hint);
}

PyObject* NumelInFrames(const Tensor& t) {
  const Origin from = OriginOf(t);
  if (!from.tape) return PyLong_FromLongLong(t.numel());
  Ref product = Own(PyLong_FromLong(1));
  for (int64_t d = 0; d < t.ndim(); ++d) {
    const Ref size = Own(Symbolic(from, d, t.sizes()[d]));
    product = Own(PyNumber_Multiply(product.get(), size.get()));
  }
  return product.release();
}

Tensor ResidentInTrace(const Tensor& t) {
  const Frame& frame = *frames::Current();
  if (!t.requires_grad() || frames::KindOf(frame.kind).name != "trace") return t;
  return frames::EnterTrace(t, false);
}

void InitTrace(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
