// Decides whether a mode or a subclass overrides a call, and calls the one that does; see override.h.
#include "bindings/python/src/interception/override.h"

#include <array>
#include <string_view>
#include <vector>

#include "bindings/python/src/creation/convert.h"
#include "dispatcher/calls/thread_state.h"

namespace mica::python {

TypeTraits g_traits[kTraitsTable];
int g_function_modes = 0;

namespace {

constexpr int kModesToo = 2;
constexpr int kSubclasses = 1;

// What one thread carries: its modes, innermost last, and what is switched off. A thread that
// ends within a mode has no interpreter to give it back to, and leaves it.
struct ThreadOverrides {
  std::vector<Ref> modes;
  int disabled = 0;
  ~ThreadOverrides() {
    for (Ref& mode : modes) static_cast<void>(mode.release());
  }
};
ThreadOverrides& Here() {
  static thread_local ThreadOverrides state;
  return state;
}

PyObject* Interned(const char* text) { return Check(PyUnicode_InternFromString(text)); }
std::array<PyObject*, 2> NamesOf(Protocol protocol) {
  static const std::array<PyObject*, 2> function = {Interned("__mica_function__"),
                                                    Interned("__torch_function__")};
  static const std::array<PyObject*, 2> dispatch = {Interned("__mica_dispatch__"),
                                                    Interned("__torch_dispatch__")};
  return protocol == Protocol::kFunction ? function : dispatch;
}

// What a type's nearest class says of a protocol, and under which name; borrowed.
struct Declared {
  PyObject* value = nullptr;
  PyObject* name = nullptr;
};
Declared Look(PyTypeObject* type, Protocol protocol) {
  PyObject* const mro = type->tp_mro;
  for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); ++i) {
    PyObject* const dict = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i))->tp_dict;
    for (PyObject* name : NamesOf(protocol))
      if (PyObject* value = dict ? PyDict_GetItemWithError(dict, name) : nullptr) return {value, name};
  }
  return {};
}

// Whether a type is PyTorch's own tensor or derives from it: its __torch_function__ speaks of
// PyTorch's functions, and would hand Mica's back for ever.
bool IsTorchs(PyTypeObject* type) {
  PyObject* const mro = type->tp_mro;
  for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    PyObject* module = base->tp_dict ? PyDict_GetItemString(base->tp_dict, "__module__") : nullptr;
    if (std::string_view(base->tp_name) == "Tensor" && module && PyUnicode_Check(module) &&
        PyUnicode_CompareWithASCIIString(module, "torch") == 0)
      return true;
  }
  return false;
}

PyObject* g_disabled_function = nullptr;  // _C._disabled_torch_function_impl
PyObject* g_disabled_dispatch = nullptr;  // _C._disabled_torch_dispatch_impl, Tensor's own
PyObject* g_not_converted = nullptr;      // a set: functions whose results stay plain tensors

}  // namespace

uint8_t TraitsSlow(PyTypeObject* type) {
  uint8_t flags = 0;
  const bool tensor = PyType_IsSubtype(type, &TensorType) != 0;
  if (tensor) flags |= traits::kTensor;
  if (type != &TensorType) {
    const Declared function = Look(type, Protocol::kFunction);
    if (function.value && function.value != g_disabled_function && (tensor || !IsTorchs(type)))
      flags |= traits::kFunction;
    const Declared dispatch = tensor ? Look(type, Protocol::kDispatch) : Declared();
    if (dispatch.value && dispatch.value != g_disabled_dispatch) flags |= traits::kDispatch;
  }
  static_cast<void>(_PyType_Lookup(type, NamesOf(Protocol::kFunction)[0]));  // gives the type a version
  if (type->tp_version_tag != 0)
    g_traits[(reinterpret_cast<uintptr_t>(type) >> 4) % kTraitsTable] = {type, type->tp_version_tag, flags};
  return flags;
}

bool AnyWantsFunctions(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (self && WantsFunctions(self)) return true;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (WantsFunctions(args[i])) return true;
    const Items items = ItemsOf(args[i]);
    for (Py_ssize_t j = 0; j < items.size; ++j)
      if (WantsFunctions(items.data[j])) return true;
  }
  return false;
}

Ref MethodOf(PyObject* o, Protocol protocol) {
  const Declared found = Look(Py_TYPE(o), protocol);
  return found.name ? Own(PyObject_GetAttr(o, found.name)) : Ref();
}

DisableSubclasses::DisableSubclasses(bool modes_too) : saved_(Here().disabled) {
  Here().disabled |= modes_too ? kSubclasses | kModesToo : kSubclasses;
}
DisableSubclasses::~DisableSubclasses() { Here().disabled = saved_; }

namespace {

// The arguments that want a call, one of each type, in the order in which they are asked.
class Overloaded {
 public:
  void Add(PyObject* o) {
    if (!WantsFunctions(o)) return;
    auto at = list_.end();
    for (auto it = list_.begin(); it != list_.end(); ++it) {
      if (Py_TYPE(*it) == Py_TYPE(o)) return;
      if (at == list_.end() && PyType_IsSubtype(Py_TYPE(o), Py_TYPE(*it))) at = it;
    }
    list_.insert(at, o);
  }
  void AddAll(PyObject* o) {
    Add(o);
    const Items items = ItemsOf(o);
    for (Py_ssize_t i = 0; i < items.size; ++i) Add(items.data[i]);
  }
  const std::vector<PyObject*>& list() const { return list_; }

 private:
  std::vector<PyObject*> list_;
};

// The types of the objects, and Tensor behind them where `plain` says so.
Ref TypesOf(const std::vector<PyObject*>& objects, bool plain) {
  const auto count = static_cast<Py_ssize_t>(objects.size());
  Ref types = Own(PyTuple_New(count + (plain ? 1 : 0)));
  for (Py_ssize_t i = 0; i < count; ++i)
    PyTuple_SET_ITEM(types.get(), i, Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(objects[i]))));
  if (plain) PyTuple_SET_ITEM(types.get(), count, Py_NewRef(reinterpret_cast<PyObject*>(&TensorType)));
  return types;
}

bool AnyPlain(PyObject* args, PyObject* kwargs) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    if (Py_TYPE(PyTuple_GET_ITEM(args, i)) == &TensorType) return true;
  PyObject* value;
  for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, nullptr, &value);)
    if (Py_TYPE(value) == &TensorType) return true;
  return false;
}

// The innermost mode, away from the stack while it lives.
class WithoutInnermost {
 public:
  WithoutInnermost() : mode_(Here().modes.back()) {
    Here().modes.pop_back();
    --g_function_modes;
  }
  ~WithoutInnermost() {
    Here().modes.push_back(mode_);
    ++g_function_modes;
  }
  WithoutInnermost(const WithoutInnermost&) = delete;
  WithoutInnermost& operator=(const WithoutInnermost&) = delete;
  PyObject* mode() const { return mode_.get(); }

 private:
  Ref mode_;
};

// One answer; empty for NotImplemented.
Ref AskOne(PyObject* method, PyObject* function, PyObject* types, PyObject* args, PyObject* kwargs) {
  Ref result = Own(PyObject_CallFunctionObjArgs(method, function, types, args, kwargs, nullptr));
  return result.get() == Py_NotImplemented ? Ref() : result;
}

[[noreturn]] void RaiseNobody(PyObject* function, PyObject* types) {
  const Ref name(PyObject_GetAttrString(function, "__qualname__"));
  if (!name) PyErr_Clear();
  const Ref text = Own(PyObject_Repr(types)), of = Own(PyObject_Repr(function));
  Raise(PyExc_TypeError,
        "Nobody implements '" +
            std::string(StrView(name && PyUnicode_Check(name.get()) ? name.get() : of.get())) +
            "' for these arguments: __mica_function__ of all of the types " +
            std::string(StrView(text.get())) + ", and of a mode if one is active, returned NotImplemented.");
}

bool MayAskModes() { return !Here().modes.empty() && !(Here().disabled & kModesToo); }
bool MayAskSubclasses() { return Here().disabled == 0; }

PyObject* g_spellers = nullptr;  // a dictionary of functions
// (args, kwargs) as mica/_interception/argument_normalisation.py spells a call of a function that torch has
// in Python, of which torch names plain tensors among the types too; empty for other functions.
Ref Spelled(PyObject* function, PyObject* args, PyObject* kwargs) {
  if (!g_spellers) {
    const DisableSubclasses off(true);  // what is imported now is not the program's
    g_spellers = Check(PyDict_New());
    const Ref module = Own(PyImport_ImportModule("mica._interception.argument_normalisation"));
    Own(PyObject_CallMethod(module.get(), "fill", "O", g_spellers));
  }
  PyObject* const speller = PyDict_GetItemWithError(g_spellers, function);
  if (!speller) PyErr_Clear();  // a function without a hash
  return speller ? Own(PyObject_CallFunctionObjArgs(speller, args, kwargs, nullptr)) : Ref();
}

PyObject* AskAll(PyObject* function, const std::vector<PyObject*>& overloaded, PyObject* args,
                 PyObject* kwargs, bool slot = false) {
  const Ref spelled = Spelled(function, args, kwargs);
  if (spelled) {
    args = PyTuple_GET_ITEM(spelled.get(), 0);
    kwargs = PyTuple_GET_ITEM(spelled.get(), 1);
  }
  const Ref types = TypesOf(overloaded, spelled && AnyPlain(args, kwargs));
  if (MayAskModes()) {
    const WithoutInnermost without;
    const Ref method = MethodOf(without.mode(), Protocol::kFunction);
    if (!method) Raise(PyExc_TypeError, "A function mode lacks the method __mica_function__.");
    if (Ref result = AskOne(method.get(), function, types.get(), args, kwargs)) return result.release();
  }
  for (PyObject* o : overloaded) {
    const Ref method = MethodOf(o, Protocol::kFunction);
    if (Ref result = AskOne(method.get(), function, types.get(), args, kwargs)) return result.release();
  }
  if (slot) Py_RETURN_NOTIMPLEMENTED;
  RaiseNobody(function, types.get());
}

Ref FunctionOf(const Callee& callee) {
  if (!callee.module) {
    auto* const type = reinterpret_cast<PyObject*>(&TensorType);
    if (!callee.side) return Own(PyObject_GetAttrString(type, callee.name));
    const Ref property = Own(PyObject_GetAttrString(type, callee.name));
    return Own(PyObject_GetAttrString(property.get(), callee.side));
  }
  const Ref core = Own(PyImport_ImportModule("mica._C"));
  const Ref all = Own(PyObject_GetAttrString(core.get(), "_functions"));
  PyObject* const space = PyDict_GetItemString(all.get(), callee.module);
  if (PyObject* f = space ? PyDict_GetItemString(space, callee.name) : nullptr) return Ref::Borrow(f);
  return Own(PyObject_GetAttrString(core.get(), callee.name));
}

// The call's arguments as a tuple and a dictionary.
struct Packed {
  Ref args, kwargs;
  Packed(PyObject* self, PyObject* const* items, Py_ssize_t nargs, PyObject* kwnames) {
    const Py_ssize_t first = self ? 1 : 0;
    args = Own(PyTuple_New(first + nargs));
    if (self) PyTuple_SET_ITEM(args.get(), 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(args.get(), first + i, Py_NewRef(items[i]));
    kwargs = Own(PyDict_New());
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i)
      Check(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, i), items[nargs + i]));
  }
};

template <typename Function>
PyObject* Ask(Function&& function, PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
              bool slot) {
  Overloaded overloaded;
  if (MayAskSubclasses()) {
    if (self) overloaded.Add(self);
    const Py_ssize_t all = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    for (Py_ssize_t i = 0; i < all; ++i) overloaded.AddAll(args[i]);
  }
  if (overloaded.list().empty() && !MayAskModes()) return nullptr;
  const Packed packed(self, args, nargs, kwnames);
  return AskAll(function().get(), overloaded.list(), packed.args.get(), packed.kwargs.get(), slot);
}

}  // namespace

PyObject* Override(const Callee& callee, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                   PyObject* kwnames) {
  return Ask([&] { return FunctionOf(callee); }, self, args, nargs, kwnames, callee.slot);
}
PyObject* OverrideObject(PyObject* function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return Ask([&] { return Ref::Borrow(function); }, nullptr, args, nargs, kwnames, false);
}
PyObject* OverrideTuple(const Callee& callee, PyObject* args, PyObject* kwargs) {
  Overloaded overloaded;
  for (Py_ssize_t i = 0; MayAskSubclasses() && i < PyTuple_GET_SIZE(args); ++i)
    overloaded.AddAll(PyTuple_GET_ITEM(args, i));
  if (overloaded.list().empty() && !MayAskModes()) return nullptr;
  const Ref options = kwargs ? Ref::Borrow(kwargs) : Own(PyDict_New());
  return AskAll(FunctionOf(callee).get(), overloaded.list(), args, options.get());
}

namespace {

// A result of the subclass `cls`: tensors in it become objects of that class.
Ref Converted(PyObject* result, PyTypeObject* cls) {
  if (IsTensor(result)) {
    if (PyType_IsSubtype(Py_TYPE(result), cls)) return Ref::Borrow(result);
    return Own(PyObject_CallMethod(result, "as_subclass", "O", cls));
  }
  if (!PyTuple_Check(result) && !PyList_Check(result)) return Ref::Borrow(result);
  const Items items = ItemsOf(result);
  Ref list = Own(PyList_New(items.size));
  for (Py_ssize_t i = 0; i < items.size; ++i)
    PyList_SET_ITEM(list.get(), i, Converted(items.data[i], cls).release());
  if (PyList_CheckExact(result)) return list;
  auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(result));
  if (PyTuple_Check(result) && PyObject_HasAttrString(type, "_fields")) {  // a named tuple takes its fields
    const Ref fields = Own(PyList_AsTuple(list.get()));
    return Own(PyObject_CallObject(type, fields.get()));
  }
  return Own(PyObject_CallOneArg(type, list.get()));
}

struct Call {
  PyObject* function = nullptr;
  PyObject* types = nullptr;
  PyObject* args = nullptr;
  PyObject* kwargs = nullptr;
  Ref no_args;
  // (function, types, args=(), kwargs=None) from `first` on
  Call(PyObject* tuple, PyObject* keywords) {
    static const char* names[] = {"func", "types", "args", "kwargs", nullptr};
    if (!PyArg_ParseTupleAndKeywords(tuple, keywords, "OO|OO", const_cast<char**>(names), &function, &types,
                                     &args, &kwargs))
      throw PythonErrorIsSet();
    if (!args || !PyTuple_Check(args)) {
      no_args = args ? Own(PySequence_Tuple(args)) : Own(PyTuple_New(0));
      args = no_args.get();
    }
    if (kwargs == Py_None) kwargs = nullptr;
  }
  Ref Run() const { return Own(PyObject_Call(function, args, kwargs)); }
};

// Tensor.__mica_function__(func, types, args=(), kwargs=None), a class method: calls the
// function and gives its tensors the class.
PyObject* DefaultFunction(PyObject* cls, PyObject* args, PyObject* kwargs) {
  return Guarded([&]() -> PyObject* {
    const Call call(args, kwargs);
    auto* const type = reinterpret_cast<PyTypeObject*>(cls);
    const Ref types = Own(PySequence_Tuple(call.types));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types.get()); ++i) {
      PyObject* const other = PyTuple_GET_ITEM(types.get(), i);
      const int fits = PyObject_IsSubclass(cls, other);
      Check(fits);
      if (!fits) Py_RETURN_NOTIMPLEMENTED;
    }
    const DisableSubclasses guard;
    Ref result = call.Run();
    if (type == &TensorType) return result.release();
    const int stays = PySet_Contains(g_not_converted, call.function);
    if (stays < 0) PyErr_Clear();  // not hashable: not one of ours
    return stays > 0 ? result.release() : Converted(result.get(), type).release();
  });
}
PyObject* DisabledFunction(PyObject*, PyObject* args, PyObject* kwargs) {
  return Guarded([&] {
    const Call call(args, kwargs);
    const DisableSubclasses guard;
    return call.Run().release();
  });
}

// Tensor.__mica_dispatch__: the operator below the subclasses, for those over data of their own.
PyObject* DisabledDispatch(PyObject*, PyObject* args, PyObject* kwargs) {
  return Guarded([&] {
    const Call call(args, kwargs);
    const ExcludeGuard guard(KeySet::Of(keys::kPythonSubclass));
    return call.Run().release();
  });
}

// ---- for mica.overrides

PyObject* PushMode(PyObject*, PyObject* mode) {
  return Guarded([&] {
    Here().modes.push_back(Ref::Borrow(mode));
    ++g_function_modes;
    return NewNone();
  });
}
PyObject* PopMode(PyObject*, PyObject*) {
  return Guarded([&] {
    if (Here().modes.empty()) Raise(PyExc_RuntimeError, "No function mode is active on this thread.");
    Ref mode = Here().modes.back();
    Here().modes.pop_back();
    --g_function_modes;
    return mode.release();
  });
}
PyObject* Modes(PyObject*, PyObject*) {
  return Guarded([&] {
    Ref list = Own(PyList_New(0));
    for (const Ref& mode : Here().modes) Check(PyList_Append(list.get(), mode.get()));
    return list.release();
  });
}
// _disable_functions(1: subclasses, 3: modes too) -> what was; _restore_functions(that)
PyObject* Disable(PyObject*, PyObject* what) {
  const int was = Here().disabled;
  Here().disabled |= static_cast<int>(PyLong_AsLong(what));
  return PyLong_FromLong(was);
}
PyObject* Restore(PyObject*, PyObject* what) {
  Here().disabled = static_cast<int>(PyLong_AsLong(what));
  return NewNone();
}
// _has_function(iterable): whether a call with these arguments would be intercepted.
PyObject* HasFunction(PyObject*, PyObject* arguments) {
  return Guarded([&] {
    if (MayAskModes()) return NewBool(true);
    if (!MayAskSubclasses()) return NewBool(false);
    const Ref items = Own(PySequence_Tuple(arguments));
    bool any = false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
      any |= WantsFunctions(PyTuple_GET_ITEM(items.get(), i));
    return NewBool(any);
  });
}
PyObject* HasFunctionVariadic(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  bool any = MayAskModes();
  for (Py_ssize_t i = 0; !any && MayAskSubclasses() && i < nargs; ++i) any = WantsFunctions(args[i]);
  return NewBool(any);
}
// _handle_function(function, relevant arguments, args, kwargs)
PyObject* Handle(PyObject*, PyObject* all) {
  return Guarded([&] {
    PyObject *function, *relevant, *args, *kwargs;
    if (!PyArg_ParseTuple(all, "OOO!O!:_handle_function", &function, &relevant, &PyTuple_Type, &args,
                          &PyDict_Type, &kwargs))
      throw PythonErrorIsSet();
    Overloaded overloaded;
    const Ref items = Own(PySequence_Tuple(relevant));
    if (MayAskSubclasses())
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
        overloaded.Add(PyTuple_GET_ITEM(items.get(), i));
    if (overloaded.list().empty() && !MayAskModes()) return Check(PyObject_Call(function, args, kwargs));
    return AskAll(function, overloaded.list(), args, kwargs);
  });
}
// _overloaded(relevant arguments): those that want calls, in the order in which they are asked
PyObject* OverloadedList(PyObject*, PyObject* relevant) {
  return Guarded([&] {
    Overloaded overloaded;
    const Ref items = Own(PySequence_Tuple(relevant));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
      overloaded.Add(PyTuple_GET_ITEM(items.get(), i));
    Ref list = Own(PyList_New(0));
    for (PyObject* o : overloaded.list()) Check(PyList_Append(list.get(), o));
    return list.release();
  });
}

PyMethodDef kDefault = {
    "__mica_function__", Keywords(DefaultFunction), METH_VARARGS | METH_KEYWORDS,
    "__mica_function__(func, types, args=(), kwargs=None)\n\nWhat runs for a call with an "
    "object of this class among its arguments."};
PyMethodDef kFunctions[] = {
    {"_disabled_torch_function_impl", Keywords(DisabledFunction), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_disabled_torch_dispatch_impl", Keywords(DisabledDispatch), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_push_function_mode", PushMode, METH_O, nullptr},
    {"_pop_function_mode", PopMode, METH_NOARGS, nullptr},
    {"_function_modes", Modes, METH_NOARGS, nullptr},
    {"_disable_functions", Disable, METH_O, nullptr},
    {"_restore_functions", Restore, METH_O, nullptr},
    {"_has_function", HasFunction, METH_O, nullptr},
    {"_has_function_variadic",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(HasFunctionVariadic)), METH_FASTCALL,
     nullptr},
    {"_handle_function", Handle, METH_VARARGS, nullptr},
    {"_overloaded", OverloadedList, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InitOverride(PyObject* module) {
  Check(PyModule_AddFunctions(module, kFunctions));
  g_disabled_function = Check(PyObject_GetAttrString(module, "_disabled_torch_function_impl"));
  g_disabled_dispatch = Check(PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl"));
  for (PyObject* name : NamesOf(Protocol::kDispatch))
    Check(PyDict_SetItem(TensorType.tp_dict, name, g_disabled_dispatch));
  const Ref method = Own(PyDescr_NewClassMethod(&TensorType, &kDefault));
  for (PyObject* name : NamesOf(Protocol::kFunction))
    Check(PyDict_SetItem(TensorType.tp_dict, name, method.get()));
  g_not_converted = Check(PySet_New(nullptr));
  for (const char* name : {"grad", "_base"}) {
    const Ref property = Own(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&TensorType), name));
    const Ref get = Own(PyObject_GetAttrString(property.get(), "__get__"));
    Check(PySet_Add(g_not_converted, get.get()));
  }
  Check(PyModule_AddObjectRef(module, "_not_converted", g_not_converted));
  PyType_Modified(&TensorType);
}

}  // namespace mica::python
