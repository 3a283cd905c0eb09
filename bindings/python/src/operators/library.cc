// _C._Operator (one overload of an operator, callable through its schema) and
// _C._Scope (registrations of mica.library, taken back as a whole).
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/python/src/devices/python_device.h"
#include "bindings/python/src/module/init.h"
#include "bindings/python/src/module/kept_text.h"
#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/operators/boxing.h"
#include "bindings/python/src/operators/operator_entry.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/calls/write_check.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/plugins/plugins.h"
#include "dispatcher/registration/registration.h"
#include "dispatcher/tables/keys.h"
#include "schema/default.h"

namespace mica::python {
namespace {

struct OperatorObject {
  PyObject_HEAD Operator* op;
};
// A kernel's function, until its scope goes. The cell stays for good, as slots and calls on their way may
// point at it, and is taken again by the next kernel of the same operator at the same key. All under the GIL.
struct PythonKernel {
  PyObject* function = nullptr;
};

struct ScopeObject {
  PyObject_HEAD std::shared_ptr<Scope> scope;
  std::vector<std::pair<std::string, PythonKernel*>> kernels;  // and the places they are for
};
PyTypeObject OperatorType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject ScopeType = {PyVarObject_HEAD_INIT(nullptr, 0)};

void ThrowIfBad(const absl::Status& s) {
  if (!s.ok()) MICA_THROW(kRuntime, s.message());
}

Operator& OpOf(PyObject* o) { return *reinterpret_cast<OperatorObject*>(o)->op; }
Scope& ScopeOf(PyObject* o) { return *reinterpret_cast<ScopeObject*>(o)->scope; }

PyObject* OperatorCall(PyObject* self, PyObject* args, PyObject* kwargs) {
  return Guarded([&] { return CallBoxed(OpOf(self), BindToSchema(OpOf(self).schema(), args, kwargs)); });
}
PyObject* OperatorRepr(PyObject* self) {
  return PyUnicode_FromFormat("<operator %s>", std::string(OpOf(self).name()).c_str());
}

PyObject* OperatorCompare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return NewBool((&OpOf(a) == &OpOf(b)) == (op == Py_EQ));
}

PyObject* NameOrNone(const char* name) { return name ? NewStr(name) : NewNone(); }

PyObject* EarlierSchemas(PyObject* self, void*) {
  return Guarded([&] {
    const OperatorSpec& spec = OpOf(self).spec();
    const Ref list = Own(PyList_New(0));
    for (int i = 0; i < spec.num_generations; ++i) {
      absl::StatusOr<schema::FunctionSchema> earlier = schema::Parse(spec.generations[i].schema);
      MICA_CHECK(earlier.ok(), std::string(earlier.status().message()));
      earlier->ns = OpOf(self).schema().ns;
      Check(PyList_Append(list.get(), Own(NewStr(schema::ToString(*earlier))).get()));
    }
    return Py_NewRef(list.get());
  });
}

PyGetSetDef kOperatorAttributes[] = {
    {"name", [](PyObject* o, void*) { return NewStr(OpOf(o).name()); }, nullptr, "The full name.", nullptr},
    {"schema",
     [](PyObject* o, void*) { return Guarded([&] { return NewStr(schema::ToString(OpOf(o).schema())); }); },
     nullptr, "The schema's text.", nullptr},
    {"earlier_schemas", EarlierSchemas, nullptr, "What the schema was before, whose kernels still serve it.",
     nullptr},
    {"__doc__", [](PyObject* o, void*) { return NewStr(OpOf(o).spec().doc ? OpOf(o).spec().doc : ""); },
     nullptr, nullptr, nullptr},
    {"op_class", [](PyObject* o, void*) { return NewStr(Name(OpOf(o).spec().op_class)); }, nullptr,
     "The class of its entry: \"pointwise\", \"view\", ...", nullptr},
    {"functional", [](PyObject* o, void*) { return NameOrNone(OpOf(o).spec().functional_name); }, nullptr,
     "The full name of the functional form of its entry; None where there is none.", nullptr},
    {"out", [](PyObject* o, void*) { return NameOrNone(OpOf(o).spec().out_name); }, nullptr,
     "The full name of the out form of its entry; None where there is none.", nullptr},
    {"equation", [](PyObject* o, void*) { return Guarded([&] { return EquationOf(OpOf(o)); }); }, nullptr,
     "What a contraction multiplies and sums: \"ij,jk->ik\"; \"\" for others.", nullptr},
    {"program", [](PyObject* o, void*) { return Guarded([&] { return ProgramOf(OpOf(o)); }); }, nullptr,
     "The program of its entry for floating dtypes, or None.", nullptr},
    {"differentiable",
     [](PyObject* o, void*) { return PyBool_FromLong((OpOf(o).spec().flags & kNotDifferentiable) == 0); },
     nullptr, "False where its entry says that it has no gradient.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// The types of a schema's arguments and results as text, for mica.library.
PyObject* SchemaInfo(PyObject* self, PyObject*) {
  return Guarded([&] {
    const schema::FunctionSchema& s = OpOf(self).schema();
    Ref arguments = Own(PyList_New(0));
    for (const schema::Argument& a : s.arguments) {
      const Ref item =
          Own(Py_BuildValue("(ssOO)", a.name.c_str(), a.type.ToString(false).c_str(),
                            a.kwarg_only ? Py_True : Py_False, a.is_mutable() ? Py_True : Py_False));
      Check(PyList_Append(arguments.get(), item.get()));
    }
    return Py_BuildValue("(NnO)", arguments.release(), static_cast<Py_ssize_t>(s.returns.size()),
                         s.is_mutable() ? Py_True : Py_False);
  });
}
// For each result None, or the number of the argument that it is or shares memory with, and
// whether that one is written.
PyObject* ReturnAliases(PyObject* self, PyObject*) {
  return Guarded([&] {
    const schema::FunctionSchema& s = OpOf(self).schema();
    Ref list = Own(PyList_New(0));
    for (size_t i = 0; i < s.returns.size(); ++i) {
      const int argument = s.ReturnsAliasOfArgument(static_cast<int>(i));
      const Ref item =
          argument < 0
              ? Ref(NewNone())
              : Own(Py_BuildValue("(iO)", argument, s.arguments[argument].is_mutable() ? Py_True : Py_False));
      Check(PyList_Append(list.get(), item.get()));
    }
    return list.release();
  });
}
// The defaults of the arguments that have one, by name.
PyObject* Defaults(PyObject* self, PyObject*) {
  return Guarded([&] {
    const Ref defaults = Own(PyDict_New());
    for (const schema::Argument& a : OpOf(self).schema().arguments) {
      if (!a.default_value) continue;
      const Value value = schema::Default(a);
      Check(
          PyDict_SetItemString(defaults.get(), a.name.c_str(), Own(FromValue(value.Borrow(), a.type)).get()));
    }
    return Py_NewRef(defaults.get());
  });
}
// _decompose(args, kwargs): NotImplemented where the operator has no decomposition.
PyObject* Decompose(PyObject* self, PyObject* all) {
  return Guarded([&]() -> PyObject* {
    PyObject *args, *kwargs;
    if (!PyArg_ParseTuple(all, "O!O!", &PyTuple_Type, &args, &PyDict_Type, &kwargs)) throw PythonErrorIsSet();
    if (!OpOf(self).spec().composite) Py_RETURN_NOTIMPLEMENTED;
    return CallDecomposition(OpOf(self), BindToSchema(OpOf(self).schema(), args, kwargs));
  });
}
// _bind(args, kwargs) -> (list, dict): what the schema takes by place, and by name alone; all of
// it, defaults filled in.
PyObject* Bind(PyObject* self, PyObject* all) {
  return Guarded([&] {
    PyObject *args, *kwargs;
    if (!PyArg_ParseTuple(all, "O!O!", &PyTuple_Type, &args, &PyDict_Type, &kwargs)) throw PythonErrorIsSet();
    const schema::FunctionSchema& schema = OpOf(self).schema();
    const std::vector<Value> values = BindToSchema(schema, args, kwargs);
    const Ref list = Own(PyList_New(0)), named = Own(PyDict_New());
    for (size_t i = 0; i < values.size(); ++i) {
      const schema::Argument& a = schema.arguments[i];
      const Ref value = Own(FromValue(values[i].Borrow(), a.type));
      Check(a.kwarg_only ? PyDict_SetItemString(named.get(), a.name.c_str(), value.get())
                         : PyList_Append(list.get(), value.get()));
    }
    return Py_BuildValue("(OO)", list.get(), named.get());
  });
}
// _policy(name): what the entry says to a layer, or None.
PyObject* Policy(PyObject* self, PyObject* name) {
  return Guarded([&] {
    const char* const text = PyUnicode_AsUTF8(name);
    if (!text) throw PythonErrorIsSet();
    return NameOrNone(PolicyOf(OpOf(self).spec(), text));
  });
}
template <bool kAsk>
PyObject* Rows(PyObject* self, PyObject* args, PyObject* kwargs) {
  return Guarded([&] { return CallRows(OpOf(self), args, kwargs, kAsk); });
}
PyMethodDef kOperatorMethods[] = {
    {"_schema_info", SchemaInfo, METH_NOARGS, nullptr},
    {"_defaults", Defaults, METH_NOARGS, nullptr},
    {"_return_aliases", ReturnAliases, METH_NOARGS, nullptr},
    {"_decompose", Decompose, METH_VARARGS, nullptr},
    {"_bind", Bind, METH_VARARGS, nullptr},
    {"_policy", Policy, METH_O, nullptr},
    {"_rows", Keywords(Rows<true>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_rows_unasked", Keywords(Rows<false>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// ---- kernels written in Python

// The cells that no scope has, by operator and key.
class PythonKernels {
 public:
  static PythonKernel* Take(const std::string& place, PyObject* function) {
    std::vector<PythonKernel*>& free = Free()[place];
    if (free.empty()) free.push_back(new PythonKernel());
    PythonKernel* const kernel = free.back();
    free.pop_back();
    kernel->function = Py_NewRef(function);
    return kernel;
  }
  static void Return(const std::string& place, PythonKernel* kernel) {
    Free()[place].push_back(kernel);
    Py_CLEAR(kernel->function);  // last: it may run code
  }

 private:
  static std::unordered_map<std::string, std::vector<PythonKernel*>>& Free() {
    static auto* const free = new std::unordered_map<std::string, std::vector<PythonKernel*>>();
    return *free;
  }
};

void RunPythonKernel(const BoxedKernel& kernel, const Operator& op, KeySet, const MicaValue* args, int64_t n,
                     MicaValue* results) {
  GilAcquire gil;
  PyObject* const found = static_cast<PythonKernel*>(kernel.context)->function;
  MICA_CHECK(found, "The kernel of the operator ", op.spec().name,
             " went while the call was on its way: its library was destroyed.");
  const Ref function(Py_NewRef(found));
  const schema::FunctionSchema& schema = op.schema();
  const int positional = schema.NumPositional();
  Ref tuple(CheckCall(PyTuple_New(positional)));
  Ref kwargs(CheckCall(PyDict_New()));
  for (int64_t i = 0; i < n; ++i) {
    const schema::Argument& a = schema.arguments[i];
    Ref value(CheckCall(FromValue(args[i], a.type)));
    if (i < positional) {
      PyTuple_SET_ITEM(tuple.get(), i, value.release());
    } else {
      Check(PyDict_SetItemString(kwargs.get(), a.name.c_str(), value.get()));
    }
  }
  const WriteCheck check(args, n, op.spec().written_args);
  try {
    const Ref result(CheckCall(PyObject_Call(function.get(), tuple.get(), kwargs.get())));
    GiveResults(schema, result.get(), results);
    check.Verify(op, results, op.spec().num_outputs);
  } catch (const PythonErrorIsSet&) {
    throw PythonException::Take();
  }
}

// _set_check_writes(on) -> what it was
PyObject* SetCheckWritesTo(PyObject*, PyObject* on) {
  return Guarded([&] { return NewBool(SetCheckWrites(PyObject_IsTrue(on) > 0)); });
}

PyObject* ScopeNew(PyTypeObject* type, PyObject* args, PyObject*) {
  return Guarded([&] {
    const char* name;
    if (!PyArg_ParseTuple(args, "s", &name)) throw PythonErrorIsSet();
    PyObject* o = Check(type->tp_alloc(type, 0));
    auto* const self = reinterpret_cast<ScopeObject*>(o);
    new (&self->scope) std::shared_ptr<Scope>(Scope::Create(name, ""));
    new (&self->kernels) std::vector<std::pair<std::string, PythonKernel*>>();
    return o;
  });
}
void ScopeDealloc(PyObject* o) {
  auto* const self = reinterpret_cast<ScopeObject*>(o);
  std::destroy_at(&self->scope);
  for (const auto& [place, kernel] : self->kernels) PythonKernels::Return(place, kernel);
  std::destroy_at(&self->kernels);
  Py_TYPE(o)->tp_free(o);
}
PyObject* ScopeDefine(PyObject* self, PyObject* args) {
  return Guarded([&] {
    const char *schema, *file;
    int line;
    if (!PyArg_ParseTuple(args, "ssi", &schema, &file, &line)) throw PythonErrorIsSet();
    ThrowIfBad(ScopeOf(self).Define(schema, {Kept(file), line}));
    return NewNone();
  });
}
BoxedKernel PythonKernelOf(PyObject* self, const char* op, const char* key, PyObject* function) {
  const std::string place = std::string(op) + " " + key;
  PythonKernel* const kernel = PythonKernels::Take(place, function);
  reinterpret_cast<ScopeObject*>(self)->kernels.emplace_back(place, kernel);
  return {RunPythonKernel, kernel, nullptr};
}
// add_kernel(operator, key, function, file, line)
PyObject* ScopeAddKernel(PyObject* self, PyObject* args) {
  return Guarded([&] {
    const char *op, *key, *file;
    PyObject* function;
    int line;
    if (!PyArg_ParseTuple(args, "ssOsi", &op, &key, &function, &file, &line)) throw PythonErrorIsSet();
    ScopeOf(self).AddBoxedKernel(op, key, PythonKernelOf(self, op, key, function), {Kept(file), line});
    return NewNone();
  });
}
PyObject* ScopeAddFallback(PyObject* self, PyObject* args) {
  return Guarded([&] {
    const char *key, *file;
    PyObject* function;
    int line;
    if (!PyArg_ParseTuple(args, "sOsi", &key, &function, &file, &line)) throw PythonErrorIsSet();
    ScopeOf(self).AddBoxedFallback(key, PythonKernelOf(self, "", key, function), {Kept(file), line});
    return NewNone();
  });
}
PyObject* ScopeAddFallthrough(PyObject* self, PyObject* args) {
  return Guarded([&] {
    const char *op, *key;
    if (!PyArg_ParseTuple(args, "ss", &op, &key)) throw PythonErrorIsSet();
    ScopeOf(self).AddFallthrough(op, key);
    return NewNone();
  });
}
// add_backend(name): this scope provides the device of that name, kernels or not.
PyObject* ScopeAddBackend(PyObject* self, PyObject* name) {
  return Guarded([&] {
    ScopeOf(self).AddBackend(StrView(name));
    return NewNone();
  });
}
// add_device(name, count)
PyObject* ScopeAddDevice(PyObject* self, PyObject* args) {
  return Guarded([&] {
    const char* name;
    int count;
    if (!PyArg_ParseTuple(args, "si", &name, &count)) throw PythonErrorIsSet();
    AddHostDevice(ScopeOf(self), name, count);
    return NewNone();
  });
}
// add_leaf(operator, backend, function, file, line)
PyObject* ScopeAddLeaf(PyObject* self, PyObject* args) {
  return Guarded([&] {
    const char *op, *backend, *file;
    PyObject* function;
    int line;
    if (!PyArg_ParseTuple(args, "ssOsi", &op, &backend, &function, &file, &line)) throw PythonErrorIsSet();
    AddPythonLeaf(ScopeOf(self), op, backend, function, file, line);
    return NewNone();
  });
}
PyObject* ScopeCommit(PyObject* self, PyObject*) {
  return Guarded([&] {
    ThrowIfBad(ScopeOf(self).Commit());
    return NewNone();
  });
}
PyObject* ScopeDisable(PyObject* self, PyObject*) {
  return Guarded([&] {
    ScopeOf(self).Disable();
    return NewNone();
  });
}
PyMethodDef kScopeMethods[] = {{"define", ScopeDefine, METH_VARARGS, nullptr},
                               {"add_kernel", ScopeAddKernel, METH_VARARGS, nullptr},
                               {"add_fallback", ScopeAddFallback, METH_VARARGS, nullptr},
                               {"add_fallthrough", ScopeAddFallthrough, METH_VARARGS, nullptr},
                               {"add_backend", ScopeAddBackend, METH_O, nullptr},
                               {"add_device", ScopeAddDevice, METH_VARARGS, nullptr},
                               {"add_leaf", ScopeAddLeaf, METH_VARARGS, nullptr},
                               {"commit", ScopeCommit, METH_NOARGS, nullptr},
                               {"disable", ScopeDisable, METH_NOARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};

PyObject* WrapOperator(Operator* op) {
  auto* o = PyObject_New(OperatorObject, &OperatorType);
  if (!o) throw PythonErrorIsSet();
  o->op = op;
  return reinterpret_cast<PyObject*>(o);
}
PyObject* FindOperatorFunction(PyObject*, PyObject* name) {
  return Guarded([&]() -> PyObject* {
    Operator* op = FindOperator(StrView(name));
    return op ? WrapOperator(op) : NewNone();
  });
}
// The names of the operators of which `wanted(name)`, as they were defined.
template <typename F>
PyObject* NamesOf(F&& wanted) {
  Ref list = Own(PyList_New(0));
  for (Operator* op : AllOperators()) {
    if (!wanted(op->name())) continue;
    const Ref name = Own(NewStr(op->name()));
    Check(PyList_Append(list.get(), name.get()));
  }
  return list.release();
}
PyObject* OperatorNames(PyObject*, PyObject*) {
  return Guarded([] { return NamesOf([](std::string_view) { return true; }); });
}
// _overload_names(name) -> the full names of an operator's overloads
PyObject* OverloadNames(PyObject*, PyObject* qualified) {
  return Guarded([&] {
    const std::string_view base = StrView(qualified);
    return NamesOf([&](std::string_view full) {
      return full.starts_with(base) && (full.size() == base.size() || full[base.size()] == '.');
    });
  });
}
// _exclude(key name) -> the old bits; _exclude_no_more(key name) likewise; _restore_exclude(bits)
template <bool kExclude>
PyObject* Exclude(PyObject*, PyObject* name) {
  return Guarded([&] {
    const int bit = KeyBit(StrView(name));
    MICA_CHECK(bit >= 0, "No layer or backend is named (", std::string(StrView(name)), ").");
    ThreadState& t = CurrentThread();
    const KeySet old = t.exclude;
    t.exclude = kExclude ? old | KeySet::Of(bit) : old - KeySet::Of(bit);
    return PyLong_FromUnsignedLongLong(old.bits());
  });
}
PyObject* RestoreExclude(PyObject*, PyObject* bits) {
  CurrentThread().exclude = KeySet(PyLong_AsUnsignedLongLong(bits));
  return NewNone();
}
// _include(layer's name) -> the old bits; _restore_include(layer's name, bits). Of layers that a plugin
// brings.
PyObject* Include(PyObject*, PyObject* name) {
  return Guarded([&] {
    const std::string layer(StrView(name));
    if (LayerBit(layer) < 0) EnsureProvider(absl::StrCat("layer:", layer));
    const int bit = LayerBit(layer);
    MICA_CHECK(bit >= 0, "No layer is named (", layer, "). ",
               MissingProviderSentence(absl::StrCat("layer:", layer)));
    MICA_CHECK_VALUE(IsThirdPartyLayer(bit), "Layer (", layer,
                     ") is one of Mica's own, which are turned on by functions of their own (mica.autocast, "
                     "mica.enable_grad, ...).");
    ThreadState& t = CurrentThread();
    const KeySet old = t.include;
    t.include = old | KeySet::Of(bit);
    return PyLong_FromUnsignedLongLong(old.bits());
  });
}
PyObject* RestoreInclude(PyObject*, PyObject* args) {
  return Guarded([&] {
    const char* layer;
    unsigned long long bits;
    if (!PyArg_ParseTuple(args, "sK:_restore_include", &layer, &bits)) throw PythonErrorIsSet();
    const int bit = LayerBit(layer);
    MICA_CHECK(bit >= 0, "No layer is named (", layer, ").");
    KeySet& include = CurrentThread().include;
    include = (include - KeySet::Of(bit)) | (KeySet(bits) & KeySet::Of(bit));
    return NewNone();
  });
}

// _layers() -> [(name, bit, what it does)] of the layers that are known now, outermost first;
// _frame_kinds() -> [name].
PyObject* Layers(PyObject*, PyObject*) {
  return Guarded([&] {
    Ref list = Own(PyList_New(0));
    for (const int bit : LayersHighestFirst()) {
      const Ref row = Own(Py_BuildValue("(sis)", KeyName(bit).c_str(), bit, LayerDoes(bit).data()));
      Check(PyList_Append(list.get(), row.get()));
    }
    return list.release();
  });
}
PyObject* FrameKinds(PyObject*, PyObject*) {
  return Guarded([&] {
    Ref list = Own(PyList_New(0));
    for (int kind = 0; kind < frames::NumKinds(); ++kind)
      Check(PyList_Append(list.get(), Own(PyUnicode_FromString(frames::KindOf(kind).name.c_str())).get()));
    return list.release();
  });
}

// _redispatch_below(operator, layer, args, kwargs): from a layer's kernel.
PyObject* RedispatchBelow(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *op, *positional, *kwargs;
    const char* layer;
    if (!PyArg_ParseTuple(args, "O!sO!O!", &OperatorType, &op, &layer, &PyTuple_Type, &positional,
                          &PyDict_Type, &kwargs))
      throw PythonErrorIsSet();
    const int bit = KeyBit(layer);
    MICA_CHECK(bit >= 0, "No layer or backend is named (", layer, ").");
    ExcludeGuard guard(KeySet(~KeySet::Below(bit).bits()));
    // Below a level's own Autograd is the level's parent.
    const bool in_frame = frames::Current() && bit > keys::kFrameBelow && bit < keys::kFrameEscape;
    IncludeGuard below(in_frame ? KeySet::Of(keys::kFrameBelow) : KeySet());
    return CallBoxed(OpOf(op), BindToSchema(OpOf(op).schema(), positional, kwargs));
  });
}

PyMethodDef kFunctions[] = {{"_find_operator", FindOperatorFunction, METH_O, nullptr},
                            {"_with_gradients", WithGradients, METH_O, nullptr},
                            {"_set_check_writes", SetCheckWritesTo, METH_O, nullptr},
                            {"_operator_names", OperatorNames, METH_NOARGS, nullptr},
                            {"_overload_names", OverloadNames, METH_O, nullptr},
                            {"_exclude", Exclude<true>, METH_O, nullptr},
                            {"_exclude_no_more", Exclude<false>, METH_O, nullptr},
                            {"_restore_exclude", RestoreExclude, METH_O, nullptr},
                            {"_include", Include, METH_O, nullptr},
                            {"_restore_include", RestoreInclude, METH_VARARGS, nullptr},
                            {"_layers", Layers, METH_NOARGS, nullptr},
                            {"_frame_kinds", FrameKinds, METH_NOARGS, nullptr},
                            {"_redispatch_below", RedispatchBelow, METH_VARARGS, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InitLibrary(PyObject* module) {
  OperatorType.tp_name = "mica._C._Operator";
  OperatorType.tp_basicsize = sizeof(OperatorObject);
  OperatorType.tp_flags = Py_TPFLAGS_DEFAULT;
  OperatorType.tp_call = OperatorCall;
  OperatorType.tp_repr = OperatorRepr;
  OperatorType.tp_richcompare = OperatorCompare;
  OperatorType.tp_hash = [](PyObject* o) -> Py_hash_t { return _Py_HashPointer(&OpOf(o)); };
  OperatorType.tp_getset = kOperatorAttributes;
  OperatorType.tp_methods = kOperatorMethods;
  Check(PyType_Ready(&OperatorType));
  ScopeType.tp_name = "mica._C._Scope";
  ScopeType.tp_basicsize = sizeof(ScopeObject);
  ScopeType.tp_flags = Py_TPFLAGS_DEFAULT;
  ScopeType.tp_new = ScopeNew;
  ScopeType.tp_dealloc = ScopeDealloc;
  ScopeType.tp_methods = kScopeMethods;
  Check(PyType_Ready(&ScopeType));
  Check(PyModule_AddObjectRef(module, "_Operator", reinterpret_cast<PyObject*>(&OperatorType)));
  Check(PyModule_AddObjectRef(module, "_Scope", reinterpret_cast<PyObject*>(&ScopeType)));
  Check(PyModule_AddFunctions(module, kFunctions));
  InitPythonDevice(module);
}

}  // namespace mica::python
