// The layers DispatchMode and PythonSubclass; see dispatch_modes.h.
//
// Within an interceptor the layers that the call has passed are left out, the mode itself
// too: what it calls goes to the next mode, to the subclasses, and to the backend.
//
// A composite that Autograd opens, for want of a gradient formula, is opened before a mode
// sees it, so that a program shows the same operators whether or not something requires
// grad. Composites with a formula, those without a gradient, and factories are shown whole.
#include "bindings/python/src/interception/dispatch_modes.h"

#include <optional>
#include <unordered_map>
#include <utility>

#include "bindings/python/src/creation/convert.h"
#include "bindings/python/src/interception/override.h"
#include "bindings/python/src/module/errors.h"
#include "bindings/python/src/operators/boxing.h"
#include "dispatcher/explain/explain.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/plugins/plugins.h"
#include "dispatcher/registration/registration.h"
#include "schema/default.h"

namespace mica::python {
namespace {

// The modes of a thread, innermost last. A thread that ends within a mode has no
// interpreter to give it back to, and leaves it.
struct ThreadModes {
  std::vector<Ref> list;
  ~ThreadModes() {
    for (Ref& mode : list) static_cast<void>(mode.release());
  }
};
std::vector<Ref>& Modes() {
  static thread_local ThreadModes modes;
  return modes.list;
}

// Includes the layer in this thread's calls or not, and in those that leave its frames.
void IncludeModes(bool on) {
  const KeySet bit = KeySet::Of(keys::kDispatchMode);
  const auto change = [&](KeySet& keys) { keys = on ? keys | bit : keys - bit; };
  change(CurrentThread().include);
  for (frames::Frame* f = frames::Current(); f; f = f->parent) change(f->outer_include);
}

// The innermost mode, away from the stack while it lives.
class WithoutInnermost {
 public:
  WithoutInnermost() : mode_(Modes().back()) {
    Modes().pop_back();
    IncludeModes(!Modes().empty());
  }
  ~WithoutInnermost() {
    Modes().push_back(mode_);
    IncludeModes(true);
  }
  WithoutInnermost(const WithoutInnermost&) = delete;
  WithoutInnermost& operator=(const WithoutInnermost&) = delete;
  PyObject* mode() const { return mode_.get(); }

 private:
  Ref mode_;
};

// The layers that a call has passed when it comes here. Frames are not among them: an
// interceptor may enter a transform of its own.
constexpr KeySet kPassed =
    KeySet(~((uint64_t{2} << keys::kDispatchMode) - 1)) -
    (KeySet::Of(keys::kFrame) | KeySet::Of(keys::kFrameEscape) | KeySet::Of(keys::kFrameBelow));

bool IsNone(const MicaValue& v) {
  return v.tag == MICA_VALUE_NONE || (v.tag == MICA_VALUE_TENSOR && !v.u.tensor) ||
         (v.tag == MICA_VALUE_GENERATOR && !v.u.generator) ||
         (v.tag == MICA_VALUE_SCALAR && v.u.scalar.tag == MICA_SCALAR_NONE);
}

template <typename Span>
bool SameItems(const Span& a, const Span& b) {
  return a.size == b.size && std::equal(a.data, a.data + a.size, b.data);
}

bool SameScalar(const MicaScalar& a, const MicaScalar& b) {
  return Scalar::FromAbi(a).ToComplex() == Scalar::FromAbi(b).ToComplex();
}

// Whether a boxed argument is what stands in the schema for its absence.
bool Same(const MicaValue& a, const MicaValue& b) {
  if (IsNone(a) || IsNone(b)) return IsNone(a) && IsNone(b);
  if (a.tag != b.tag) return false;
  switch (a.tag) {
    case MICA_VALUE_INT:
    case MICA_VALUE_BOOL:
    case MICA_VALUE_DTYPE:
    case MICA_VALUE_LAYOUT:
    case MICA_VALUE_MEMORY_FORMAT:
      return a.u.i == b.u.i;
    case MICA_VALUE_FLOAT:
      return a.u.f == b.u.f;
    case MICA_VALUE_SCALAR:
      return SameScalar(a.u.scalar, b.u.scalar);
    case MICA_VALUE_STR:
      return SameItems(a.u.str, b.u.str);
    case MICA_VALUE_INTS:
      return SameItems(a.u.ints, b.u.ints);
    case MICA_VALUE_FLOATS:
      return SameItems(a.u.floats, b.u.floats);
    case MICA_VALUE_BOOLS:
      return SameItems(a.u.bools, b.u.bools);
    default:
      return false;
  }
}

// What interceptors get of an operator, made once for each: finding the object and reading the defaults took
// half of a call. Guarded by the interpreter's lock.
struct Shown {
  Ref function;                                // mica.ops.overload(name)
  std::vector<std::optional<Value>> defaults;  // of the arguments that have one

  static const Shown& Of(const Operator& op) {
    static auto* const known = new std::unordered_map<const Operator*, Shown>();
    const auto it = known->find(&op);
    if (it != known->end()) return it->second;
    Shown made;
    const Ref module(CheckCall(PyImport_ImportModule("mica.ops")));
    const std::string name(op.name());
    made.function = Ref(CheckCall(PyObject_CallMethod(module.get(), "overload", "s", name.c_str())));
    for (const schema::Argument& a : op.schema().arguments)
      made.defaults.push_back(a.default_value ? std::optional<Value>(schema::Default(a)) : std::nullopt);
    return known->emplace(&op, std::move(made)).first->second;
  }
  bool IsLeftOut(size_t i, const MicaValue& v) const {
    return i < defaults.size() && defaults[i] && Same(v, defaults[i]->Borrow());
  }
};

// A call as its interceptor gets it. Arguments that have their defaults are left out: of
// those with a position the last ones, of keywords all.
struct Call {
  const Shown& shown;
  Ref args, kwargs;
  std::vector<PyObject*> subclasses;  // borrowed from args and kwargs

  Call(const Operator& op, const MicaValue* values, int64_t n) : shown(Shown::Of(op)) {
    const schema::FunctionSchema& schema = op.schema();
    int64_t positional = std::min<int64_t>(schema.NumPositional(), n);
    while (positional > 0 && shown.IsLeftOut(static_cast<size_t>(positional - 1), values[positional - 1]))
      --positional;
    args = Ref(CheckCall(PyTuple_New(positional)));
    kwargs = Ref(CheckCall(PyDict_New()));
    for (int64_t i = 0; i < n; ++i) {
      const schema::Argument& a = schema.arguments[i];
      if (i >= positional &&
          (i < schema.NumPositional() || shown.IsLeftOut(static_cast<size_t>(i), values[i])))
        continue;
      Ref value(CheckCall(FromValue(values[i], a.type)));
      Note(value.get());
      if (i < positional)
        PyTuple_SET_ITEM(args.get(), i, value.release());
      else
        Check(PyDict_SetItemString(kwargs.get(), a.name.c_str(), value.get()));
    }
  }

  Ref Types() const {
    Ref types(CheckCall(PyTuple_New(static_cast<Py_ssize_t>(subclasses.size()))));
    for (size_t i = 0; i < subclasses.size(); ++i)
      PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                       Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(subclasses[i]))));
    return types;
  }

 private:
  void Note(PyObject* value) {
    if (const Items items = ItemsOf(value))
      for (Py_ssize_t i = 0; i < items.size; ++i) NoteOne(items.data[i]);
    NoteOne(value);
  }
  void NoteOne(PyObject* o) {
    if (!IsTensor(o) || !(TraitsOf(Py_TYPE(o)) & traits::kDispatch)) return;
    auto at = subclasses.end();
    for (auto it = subclasses.begin(); it != subclasses.end(); ++it) {
      if (Py_TYPE(*it) == Py_TYPE(o)) return;
      if (at == subclasses.end() && PyType_IsSubtype(Py_TYPE(o), Py_TYPE(*it))) at = it;
    }
    subclasses.insert(at, o);
  }
};

// One answer; empty for NotImplemented.
Ref AskOne(PyObject* o, const Call& call, PyObject* types) {
  const Ref method = MethodOf(o, Protocol::kDispatch);
  MICA_CHECK_TYPE(method, "A dispatch mode lacks the method __mica_dispatch__; it is of type (", TypeName(o),
                  ").");
  Ref result(CheckCall(PyObject_CallFunctionObjArgs(method.get(), call.shown.function.get(), types,
                                                    call.args.get(), call.kwargs.get(), nullptr)));
  return result.get() == Py_NotImplemented ? Ref() : result;
}

Ref AskSubclasses(const Operator& op, const Call& call, PyObject* types) {
  for (PyObject* o : call.subclasses)
    if (Ref result = AskOne(o, call, types)) return result;
  const Ref text(CheckCall(PyObject_Repr(types)));
  MICA_THROW(kType, "Nobody implements ", std::string(op.name()),
             " for these arguments: __mica_dispatch__ of all of the types ", std::string(StrView(text.get())),
             ", and of a mode if one is active, returned NotImplemented.");
}

// A Python exception on its way through the core's C++.
template <typename F>
void Carrying(F&& f) {
  try {
    f();
  } catch (const PythonErrorIsSet&) {
    throw PythonException::Take();
  }
}

void RunMode(const BoxedKernel&, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
             MicaValue* results) {
  const GilAcquire gil;
  if (Modes().empty()) return op.RedispatchBoxed(keys & KeySet::Below(keys::kDispatchMode), args, n, results);
  Carrying([&] {
    const ExcludeGuard passed(kPassed);
    const WithoutInnermost without;
    const Call call(op, args, n);
    const Ref types = call.Types();
    Ref result = AskOne(without.mode(), call, types.get());
    if (!result) result = AskSubclasses(op, call, types.get());
    GiveResults(op.schema(), result.get(), results);
  });
}

void RunSubclass(const BoxedKernel&, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                 MicaValue* results) {
  const GilAcquire gil;
  Carrying([&] {
    const Call call(op, args, n);
    if (call.subclasses.empty())  // an alias that C++ made
      return op.RedispatchBoxed(keys & KeySet::Below(keys::kPythonSubclass), args, n, results);
    const ExcludeGuard passed(kPassed);
    const Ref result = AskSubclasses(op, call, call.Types().get());
    GiveResults(op.schema(), result.get(), results);
  });
}

// Views need no memory, and inherit the key; everything else would read from NULL.
void RunWithoutData(const BoxedKernel&, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                    MicaValue* results) {
  MICA_CHECK(
      op.schema().is_view(), "The operator ", std::string(op.name()),
      " came to a tensor of a wrapper subclass, which has no memory of its own. Give it the tensor that "
      "is wrapped, in __mica_dispatch__, and do not switch the subclass's dispatch off around it.");
  op.RedispatchBoxed(keys & KeySet::Below(keys::kNoData), args, n, results);
}

bool IsShownWhole(const Operator& op) {
  for (const SlotExplanation& s : ExplainCall(op, KeySet::Of(keys::kAutograd)))
    if (s.reason == SlotReason::kComposite) return false;
  return true;
}

}  // namespace

WithoutModes::WithoutModes() : modes_(std::exchange(Modes(), {})) { IncludeModes(false); }
WithoutModes::~WithoutModes() {
  Modes() = std::move(modes_);
  IncludeModes(!Modes().empty());
}

void StartDispatchLayers() {
  static bool started = false;
  if (started) return;
  EnsureProvider("layer:Autograd");  // lets the interpreter's lock go meanwhile
  if (std::exchange(started, true)) return;
  static const std::shared_ptr<Scope> scope = Scope::Create("python modes", "");
  const SourceLocation here = {__FILE__, __LINE__};
  for (const Operator* op : AllOperators()) {
    if (!op->spec().composite || !IsShownWhole(*op)) continue;
    scope->AddBoxedKernel(op->name(), "DispatchMode", {RunMode, nullptr, nullptr}, here);
    scope->AddBoxedKernel(op->name(), "PythonSubclass", {RunSubclass, nullptr, nullptr}, here);
  }
  scope->DecomposeAt("DispatchMode");
  scope->DecomposeAt("PythonSubclass");
  scope->AddBoxedFallback("DispatchMode", {RunMode, nullptr, nullptr}, here);
  scope->AddBoxedFallback("PythonSubclass", {RunSubclass, nullptr, nullptr}, here);
  scope->AddBoxedFallback("NoData", {RunWithoutData, nullptr, nullptr}, here);
  const absl::Status status = scope->Commit();
  MICA_INTERNAL(status.ok(), std::string(status.message()));
}

namespace {

PyObject* Push(PyObject*, PyObject* mode) {
  return Guarded([&] {
    StartDispatchLayers();
    Modes().push_back(Ref::Borrow(mode));
    IncludeModes(true);
    return NewNone();
  });
}
PyObject* Pop(PyObject*, PyObject*) {
  return Guarded([&] {
    if (Modes().empty()) Raise(PyExc_RuntimeError, "No dispatch mode is active on this thread.");
    Ref mode = Modes().back();
    Modes().pop_back();
    IncludeModes(!Modes().empty());
    return mode.release();
  });
}
PyObject* List(PyObject*, PyObject*) {
  return Guarded([&] {
    Ref list = Own(PyList_New(0));
    for (const Ref& mode : Modes()) Check(PyList_Append(list.get(), mode.get()));
    return list.release();
  });
}
// _call_without_dispatch(function, args, kwargs): neither modes nor subclasses see it.
PyObject* WithoutDispatch(PyObject*, PyObject* all) {
  return Guarded([&] {
    PyObject *function, *args, *kwargs;
    if (!PyArg_ParseTuple(all, "OO!O!", &function, &PyTuple_Type, &args, &PyDict_Type, &kwargs))
      throw PythonErrorIsSet();
    const ExcludeGuard guard(KeySet::Of(keys::kDispatchMode) | KeySet::Of(keys::kPythonSubclass));
    return Check(PyObject_Call(function, args, kwargs));
  });
}

PyMethodDef kFunctions[] = {{"_push_dispatch_mode", Push, METH_O, nullptr},
                            {"_pop_dispatch_mode", Pop, METH_NOARGS, nullptr},
                            {"_dispatch_modes", List, METH_NOARGS, nullptr},
                            {"_call_without_dispatch", WithoutDispatch, METH_VARARGS, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InitDispatchModes(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
