// Traces for mica.fx: entering and leaving the frame, and the tape as Python objects. What
// becomes of them is in mica/fx/_make_fx.py.
#include <optional>

#include <mica/tracing.h>
#include "bindings/python/src/module/init.h"
#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/operators/boxing.h"
#include "bindings/python/src/tensor/item.h"
#include "bindings/python/src/tensor/symbolic.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/registration/layer_table.h"
#include "schema/default.h"

namespace mica::python {

PyTypeObject* g_symbolic_type = nullptr;

namespace {

using frames::Frame;

constexpr const char* kTraceName = "mica.trace";

const MicaTracing& Layer() {
  return LayerTable<MicaTracing>(MICA_TRACING_EXTENSION, "layer:trace", "make_fx needs the trace plugin.");
}

// A tape, and the frame while it is entered. The table is that of the build that made the tape.
struct Traced {
  explicit Traced(const MicaTracing& table) : layer(table) {}
  const MicaTracing& layer;
  MicaTape* tape = nullptr;
  std::optional<frames::FrameScope> scope;
  ~Traced() {
    if (tape) layer.destroy(tape);
  }
};

PyObject* OwnerOf(const MicaTape& tape) { return static_cast<PyObject*>(tape.owner); }

void DeleteTraced(PyObject* capsule) {
  auto* traced = static_cast<Traced*>(PyCapsule_GetPointer(capsule, kTraceName));
  if (traced->scope) return;  // a frame that nobody left stays with its tape and its sizes
  Py_XDECREF(OwnerOf(*traced->tape));
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
    auto traced = std::make_unique<Traced>(Layer());
    ThrowIfError(traced->layer.create(fake ? MICA_TAPE_FAKE : 0, &traced->tape));
    if (sizes != Py_None) traced->tape->owner = Py_NewRef(sizes);
    const Ref capsule = Own(PyCapsule_New(traced.get(), kTraceName, DeleteTraced));
    Traced& kept = *traced.release();
    ThreadState& thread = CurrentThread();
    const bool grad_enabled = thread.grad_enabled;
    kept.scope.emplace(kind, kept.tape);
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
    Py_XDECREF(static_cast<PyObject*>(std::exchange(traced.tape->owner, nullptr)));
    return NewNone();
  });
}

// What stands for a tensor in the current trace, and the number of its value.
struct Inside {
  Tensor tensor;
  int64_t number = 0;
};
Inside Enter(const Tensor& t, bool as_input) {
  Inside inside;
  const MicaTensorResult r = Layer().enter(t.impl(), as_input, &inside.number);
  ThrowIfError(r.status);
  inside.tensor = Tensor::Steal(r.value);
  return inside;
}

// _trace_input(tensor, device=None) -> (the tensor inside of the current trace, the number of its
// value). With a device it shows that one.
PyObject* Input(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *o, *device = Py_None;
    if (!PyArg_ParseTuple(args, "O|O:_trace_input", &o, &device)) throw PythonErrorIsSet();
    Inside inside = Enter(TensorIn(o, "An input of a trace"), true);
    if (device != Py_None) frames::ShowDevice(inside.tensor, ToDevice(device));
    return Py_BuildValue("(NL)", Wrap(std::move(inside.tensor)), static_cast<long long>(inside.number));
  });
}

// _trace_number(tensor): of its value in the current trace; a tensor from outside becomes a constant.
PyObject* Number(PyObject*, PyObject* o) {
  return Guarded([&] { return PyLong_FromLongLong(Enter(TensorIn(o, "A value of a trace"), false).number); });
}

// _trace_inside(tensor): what stands for it in the current trace.
PyObject* InsideOf(PyObject*, PyObject* o) {
  return Guarded([&] { return Wrap(Enter(TensorIn(o, "A value of a trace"), false).tensor); });
}

// _trace_constants(capsule) -> [(number, tensor, whether the function made it, whether it was written)]
PyObject* Constants(PyObject*, PyObject* capsule) {
  return Guarded([&] {
    const Ref list = Own(PyList_New(0));
    const Traced& traced = TracedOf(capsule);
    for (int64_t i = 0, n = traced.layer.num_constants(traced.tape); i < n; ++i) {
      MicaTracedConstant c;
      traced.layer.constant(traced.tape, i, &c);
      const Ref item =
          Own(Py_BuildValue("(LNNN)", static_cast<long long>(c.number), Wrap(Tensor::Borrow(c.tensor)),
                            NewBool(c.made_inside != 0), NewBool(c.written != 0)));
      Check(PyList_Append(list.get(), item.get()));
    }
    return Py_NewRef(list.get());
  });
}

// _trace_values(capsule) -> [(dtype, device, shape, stride)], in the order of the numbers
PyObject* Values(PyObject*, PyObject* capsule) {
  return Guarded([&] {
    const Ref list = Own(PyList_New(0));
    const Traced& traced = TracedOf(capsule);
    for (int64_t i = 0, n = traced.layer.num_values(traced.tape); i < n; ++i) {
      MicaTracedValue v;
      traced.layer.value(traced.tape, i, &v);
      const Ref item = Own(Py_BuildValue(
          "(NNNN)", FromDType(static_cast<DType>(v.dtype)), FromDevice(Device::FromAbi(v.device)),
          FromSizes({v.sizes.data, v.sizes.size}), FromInts({v.strides.data, v.strides.size})));
      Check(PyList_Append(list.get(), item.get()));
    }
    return Py_NewRef(list.get());
  });
}

PyObject* Referenced(int64_t ref, const Traced& traced, PyObject* values) {
  if (ref == 0) return NewNone();
  if (ref < 0) return FromScalar(ItemOf(Tensor::Ref(traced.layer.number(traced.tape, -ref))));
  const Ref key = Own(PyLong_FromLongLong(ref));
  return Check(PyObject_GetItem(values, key.get()));
}

// A list, each item by `make`.
template <typename Make>
PyObject* ListOf(MicaIntSpan numbers, Make&& make) {
  const Ref list = Own(PyList_New(static_cast<Py_ssize_t>(numbers.size)));
  for (int64_t i = 0; i < numbers.size; ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), make(numbers.data[i]));
  return Py_NewRef(list.get());
}

PyObject* ArgumentOf(const MicaTracedArgument& a, const schema::Type& type, const Traced& traced,
                     PyObject* values) {
  const auto referenced = [&](int64_t ref) { return Referenced(ref, traced, values); };
  return a.kind == MICA_TRACED_PLAIN    ? FromValue(a.value, type)
         : a.kind == MICA_TRACED_TENSOR ? referenced(a.refs.data[0])
                                        : ListOf(a.refs, referenced);
}

bool IsDefault(const MicaTracedArgument& a, const schema::Argument& s) {
  if (!s.default_value || a.kind == MICA_TRACED_TENSORS) return false;
  if (a.kind == MICA_TRACED_TENSOR) return a.refs.data[0] == 0;
  return schema::Default(s) == Value::FromBorrowed(a.value);
}

PyObject* ResultOf(const MicaTracedResult& r) {
  if (r.is_list) return ListOf(r.values, [](int64_t number) { return PyLong_FromLongLong(number); });
  return PyLong_FromLongLong(r.values.size == 0 ? 0 : r.values.data[0]);
}

// One call as (operator's name, args, kwargs, results); arguments that equal their defaults are left out.
Ref CallOf(const MicaTracedCall& call, const Traced& traced, PyObject* values) {
  const auto& op = *static_cast<const Operator*>(call.op);
  const schema::FunctionSchema& schema = op.schema();
  const auto argument = [&](size_t i) {
    return Own(ArgumentOf(call.args[i], schema.arguments[i].type, traced, values));
  };
  size_t positional = static_cast<size_t>(schema.NumPositional());
  while (positional > 0 && IsDefault(call.args[positional - 1], schema.arguments[positional - 1]))
    --positional;
  const Ref args = Own(PyTuple_New(static_cast<Py_ssize_t>(positional)));
  for (size_t i = 0; i < positional; ++i)
    PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), argument(i).release());
  const Ref kwargs = Own(PyDict_New());
  for (auto i = static_cast<size_t>(schema.NumPositional()); i < static_cast<size_t>(call.num_args); ++i) {
    if (!IsDefault(call.args[i], schema.arguments[i]))
      Check(PyDict_SetItemString(kwargs.get(), schema.arguments[i].name.c_str(), argument(i).get()));
  }
  const Ref results = Own(PyList_New(0));
  for (int64_t i = 0; i < call.num_results; ++i)
    Check(PyList_Append(results.get(), Own(ResultOf(call.results[i])).get()));
  return Own(Py_BuildValue("(NOOO)", NewStr(op.name()), args.get(), kwargs.get(), results.get()));
}

// _trace_calls(capsule, values, emit): emit(name, args, kwargs, results) for each call, in order;
// `values` maps numbers to what stands for them among the arguments.
PyObject* Calls(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *capsule, *values, *emit;
    if (!PyArg_ParseTuple(args, "OOO:_trace_calls", &capsule, &values, &emit)) throw PythonErrorIsSet();
    const Traced& traced = TracedOf(capsule);
    for (int64_t i = 0, n = traced.layer.num_calls(traced.tape); i < n; ++i) {
      MicaTracedCall call;
      traced.layer.call(traced.tape, i, &call);
      Own(PyObject_CallObject(emit, CallOf(call, traced, values).get()));
    }
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
                            {"_trace_inside", InsideOf, METH_O, nullptr},
                            {"_trace_constants", Constants, METH_O, nullptr},
                            {"_trace_values", Values, METH_O, nullptr},
                            {"_trace_text", Text, METH_O, nullptr},
                            {"_trace_calls", Calls, METH_VARARGS, nullptr},
                            {"_set_symbolic_type", SetSymbolicType, METH_O, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

// The value of a symbolic trace that is current behind `t`, and how many dimensions of it `t` hides.
struct Origin {
  const MicaTape* tape = nullptr;
  int64_t number = 0;
  int hidden = 0;
};
Origin OriginOf(const Tensor& t) {
  Origin found;
  for (const Tensor* inner = &t; frames::IsWrapper(*inner); inner = &frames::WrapperOf(*inner).value) {
    const frames::Wrapper& w = frames::WrapperOf(*inner);
    for (const Frame* f = frames::Current(); f; f = f->parent) {
      if (f->tag != w.tag || frames::KindOf(f->kind).name != "trace") continue;
      const auto* tape = static_cast<const MicaTape*>(f->payload);
      if (tape && tape->owner && w.number != 0) return {tape, w.number, found.hidden};
    }
    found.hidden += w.hidden;
  }
  return found;
}

PyObject* Symbolic(const Origin& from, int64_t dim, int64_t hint) {
  return Check(PyObject_CallFunction(OwnerOf(*from.tape), "LLL", static_cast<long long>(from.number),
                                     static_cast<long long>(dim + from.hidden),
                                     static_cast<long long>(hint)));
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
  return Enter(t, false).tensor;
}

void InitTrace(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
