// Binding of arguments to signatures; see arguments.h.
#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/autograd/gradients.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "bindings/python/src/operators/result_types.h"
#include "dispatcher/calls/warn_once.h"
#include "dispatcher/devices/pinned_memory.h"
#include "tensor/dtype.h"

namespace mica::python {
namespace {

bool IsOuts(PyObject* o, int count) {
  const Items items = ItemsOf(o);
  if (items.size != count) return false;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!IsTensor(items.data[i])) return false;
  return true;
}

bool Accepts(const Param& p, PyObject* o, bool strict) {
  if (o == Py_None && (p.flags & (kOptional | kNoneIsDefault))) return true;
  switch (p.kind) {
    case Kind::kTensor:
      return IsTensor(o) || (!strict && (p.flags & kNumberOk) && IsPlainNumber(o));
    case Kind::kTensors:
      return IsTensorList(o, false);
    case Kind::kOptionalTensors:
      return IsTensorList(o, true);
    case Kind::kInt:
      return IsInt(o);
    case Kind::kInts:
      return IsIntList(o, p.size);
    case Kind::kFloat:
      return IsNumber(o) && !PyComplex_Check(o);
    case Kind::kFloats:
      return IsFloatList(o);
    case Kind::kBool:
      return PyBool_Check(o) || std::strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10) == 0;
    case Kind::kBools:
      return IsBoolList(o, p.size);
    case Kind::kScalar:
      return IsNumber(o);
    case Kind::kScalars:
      return IsScalarList(o);
    case Kind::kStr:
      return PyUnicode_Check(o);
    case Kind::kDType:
      return IsDTypeLike(o);
    case Kind::kLayout:
      return IsLayout(o);
    case Kind::kMemoryFormat:
      return IsMemoryFormat(o);
    case Kind::kDevice:
      return IsDeviceLike(o);
    case Kind::kGenerator:
      return IsGenerator(o);
    case Kind::kOut:
      return IsTensor(o);
    case Kind::kOuts:
      return IsOuts(o, p.size);
  }
  return false;
}

// NumPy's spellings of parameter names.
struct Synonym {
  const char* given;
  const char* meant;
};
constexpr Synonym kSynonyms[] = {
    {"axis", "dim"}, {"keepdims", "keepdim"}, {"self", "input"}, {"input", "self"}, {"x", "self"},
    {"x", "input"},  {"x2", "other"},         {"a", "input"},    {"a", "self"},     {"x1", "input"},
    {"x1", "self"},  {"axis0", "dim0"},       {"axis1", "dim1"}};

bool IsNamed(const char* name, const char* given) {
  if (std::strcmp(name, given) == 0) return true;
  for (const Synonym& s : kSynonyms)
    if (std::strcmp(s.given, given) == 0 && std::strcmp(s.meant, name) == 0) return true;
  return false;
}

int FindParam(const Signature& s, PyObject* name) {
  for (int i = 0; i < s.count; ++i) {
    if (!s.params[i].interned) s.params[i].interned = Check(PyUnicode_InternFromString(s.params[i].name));
    if (s.params[i].interned == name) return i;
  }
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) throw PythonErrorIsSet();
  for (int i = 0; i < s.count; ++i)
    if (IsNamed(s.params[i].name, text)) return i;
  return -1;
}

// "Tensor", "list of (int, str)", "float".
std::string DescribeArgument(PyObject* o) {
  if (IsTensor(o)) return "Tensor";
  const Items items = ItemsOf(o);
  if (!items) return o == Py_None ? "None" : TypeName(o);
  std::string text = std::string(PyList_Check(o) ? "list" : "tuple") + " of (";
  for (Py_ssize_t i = 0; i < items.size && i < 4; ++i)
    text += std::string(i ? ", " : "") + (items.data[i] == Py_None  ? "None"
                                          : IsTensor(items.data[i]) ? "Tensor"
                                                                    : TypeName(items.data[i]));
  return text + (items.size > 4 ? ", ...)" : ")");
}

// What a parameter takes, by its Kind, in torch's words: programs match "must be int, not str".
constexpr const char* kTakes[] = {"Tensor",
                                  "tuple of Tensors",
                                  "tuple of Tensors and None",
                                  "int",
                                  "tuple of ints",
                                  "float",
                                  "tuple of floats",
                                  "bool",
                                  "tuple of bools",
                                  "Number",
                                  "tuple of Numbers",
                                  "str",
                                  "dtype",
                                  "layout",
                                  "memory_format",
                                  "device",
                                  "Generator",
                                  "Tensor",
                                  "tuple of Tensors"};

// The first reason why a call does not fit a signature, as BoundArguments::Try sees it; `called` is "f()".
std::string Mismatch(const std::string& called, const Signature& s, PyObject* self, PyObject* const* args,
                     Py_ssize_t nargs, PyObject* kwnames) {
  const int first = self ? 1 : 0;
  std::vector<PyObject*> values(static_cast<size_t>(s.count), nullptr);
  if (self) values[0] = self;
  const Py_ssize_t at = s.varargs - first;
  const bool spread = s.varargs >= first && nargs > at && IsInt(args[at]);
  const Py_ssize_t taken = spread ? at + 1 : nargs;
  const auto must_be = [&](int i, PyObject* value) {
    const Param& p = s.params[i];
    std::string text = called + ": argument '" + p.name + "'";
    if (i - first < taken) text += " (position " + std::to_string(i - first + 1) + ")";
    text += std::string(" must be ") + kTakes[static_cast<int>(p.kind)] + ", not " + DescribeArgument(value);
    if (p.kind == Kind::kTensor && IsNumpyArray(value)) text += " (mica.from_numpy makes a Tensor of it)";
    return text;
  };
  for (Py_ssize_t i = at; spread && i < nargs; ++i)
    if (!IsInt(args[i])) return must_be(s.varargs, args[i]);
  if (first + taken > s.positional)
    return called + " takes at most " + std::to_string(s.positional - first) + " positional arguments, and " +
           std::to_string(nargs) + " are given";
  for (Py_ssize_t i = 0; i < taken; ++i) values[static_cast<size_t>(first + i)] = args[i];
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    const int i = FindParam(s, name);
    if (i < 0) return called + " got an unexpected keyword argument '" + std::string(StrView(name)) + "'";
    if (values[static_cast<size_t>(i)])
      return called + " got multiple values for argument '" + s.params[i].name + "'";
    values[static_cast<size_t>(i)] = args[nargs + k];
  }
  for (int i = first; i < s.count; ++i) {
    const Param& p = s.params[i];
    PyObject* value = values[static_cast<size_t>(i)];
    if (!value && !(p.flags & kDefault))
      return called + " missing 1 required positional arguments: \"" + p.name + "\"";
    if (value && !(spread && i == s.varargs) && !Accepts(p, value, false)) return must_be(i, value);
  }
  return "";
}

// A call in the order that torch had before it had keywords, addmm(beta, self, alpha, mat1, mat2) or
// add(self, alpha, other), as one with keywords. Numbers come before the tensor that they scale: `beta`
// the first of a function that has one, `alpha` or `value` the other.
class Reordered {
 public:
  Reordered(const Overloads& overloads, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
            PyObject* kwnames) {
    const Signature& s = overloads.signatures[0];
    std::vector<const char*> scales;
    for (const char* name : {"beta", "alpha", "value"})
      for (int i = s.positional; i < s.count; ++i)
        if (std::strcmp(s.params[i].name, name) == 0) scales.push_back(name);
    std::vector<PyObject*> numbers;
    for (Py_ssize_t i = 0; i < nargs; ++i) {
      if (!IsTensor(args[i]) && !IsNumber(args[i])) return;
      (IsTensor(args[i]) ? values_ : numbers).push_back(args[i]);
    }
    count_ = static_cast<Py_ssize_t>(values_.size());
    const bool last_is_tensor = nargs > 0 && IsTensor(args[nargs - 1]);
    if (numbers.empty() || numbers.size() > scales.size() || !last_is_tensor ||
        count_ + (self ? 1 : 0) != s.positional)
      return;
    const Py_ssize_t given = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    names_ = Own(PyTuple_New(static_cast<Py_ssize_t>(numbers.size()) + given));
    for (size_t k = 0; k < numbers.size(); ++k) {
      values_.push_back(numbers[k]);
      PyTuple_SET_ITEM(names_.get(), static_cast<Py_ssize_t>(k),
                       Check(PyUnicode_InternFromString(scales[k])));
      moved_ += std::string(k ? ", " : "") + scales[k];
    }
    for (Py_ssize_t k = 0; k < given; ++k) {
      values_.push_back(args[nargs + k]);
      PyTuple_SET_ITEM(names_.get(), static_cast<Py_ssize_t>(numbers.size()) + k,
                       Py_NewRef(PyTuple_GET_ITEM(kwnames, k)));
    }
  }
  bool found() const { return static_cast<bool>(names_); }
  PyObject* const* args() const { return values_.data(); }
  Py_ssize_t count() const { return count_; }
  PyObject* names() const { return names_.get(); }
  std::string Warning(const char* name) const {
    return absl::StrCat("This overload of ", name, " is deprecated: give the numbers as keywords (", moved_,
                        ").");
  }

 private:
  static bool IsNumber(PyObject* o) { return PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o); }

  std::vector<PyObject*> values_;
  Py_ssize_t count_ = 0;
  Ref names_;
  std::string moved_;
};

[[noreturn]] void RaiseNoMatch(const Overloads& overloads, PyObject* self, PyObject* const* args,
                               Py_ssize_t nargs, PyObject* kwnames) {
  const std::string called = std::string(overloads.name) + "()";
  std::string text = called + " received an invalid combination of arguments - got (";
  for (Py_ssize_t i = 0; i < nargs; ++i) text += (i ? ", " : "") + DescribeArgument(args[i]);
  const Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < nkw; ++i) {
    text += nargs + i ? ", " : "";
    text += std::string(StrView(PyTuple_GET_ITEM(kwnames, i))) + "=" + DescribeArgument(args[nargs + i]);
  }
  text += "), but expected one of:";
  for (int i = 0; i < overloads.count; ++i) {
    const Signature& s = overloads.signatures[i];
    if (!(self ? s.as_method : s.as_function)) continue;
    text += std::string("\n  ") + s.text;
    if (const std::string why = Mismatch(called, s, self, args, nargs, kwnames); !why.empty())
      text += "\n    " + why;
  }
  Raise(PyExc_TypeError, text);
}

}  // namespace

int BoundArguments::BindTo(const Overloads& overloads, PyObject* self, PyObject* const* args,
                           Py_ssize_t nargs, PyObject* kwnames) {
  if (__builtin_expect(MayOverride(self, args, nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0)), 0)) {
    const Callee callee = {overloads.name, self ? nullptr : overloads.module};
    result_ = Ref(Override(callee, self, args, nargs, kwnames));
    if (result_) return kOverridden;
  }
  for (const bool strict : {true, false}) {
    for (int i = 0; i < overloads.count; ++i) {
      const Signature& s = overloads.signatures[i];
      if ((self ? s.as_method : s.as_function) && Try(s, self, args, nargs, kwnames, strict)) return i;
    }
  }
  if (const Reordered call(overloads, self, args, nargs, kwnames); call.found()) {
    for (int i = 0; i < overloads.count; ++i) {
      const Signature& s = overloads.signatures[i];
      if (!(self ? s.as_method : s.as_function)) continue;
      if (!Try(s, self, call.args(), call.count(), call.names(), false)) continue;
      WarnOnce(absl::StrCat("overload ", overloads.name), call.Warning(overloads.name));
      return i;
    }
  }
  RaiseNoMatch(overloads, self, args, nargs, kwnames);
}

bool BoundArguments::Try(const Signature& s, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                         PyObject* kwnames, bool strict) {
  const int first = self ? 1 : 0;
  if (self) values_[0] = self;
  varargs_param_ = -1;
  Py_ssize_t taken = nargs;
  if (s.varargs >= first && nargs >= s.varargs - first + 1 && IsInt(args[s.varargs - first])) {
    // All from here on are integers of one list.
    varargs_param_ = s.varargs;
    varargs_ = args + (s.varargs - first);
    varargs_count_ = nargs - (s.varargs - first);
    for (Py_ssize_t i = 0; i < varargs_count_; ++i)
      if (!IsInt(varargs_[i])) return false;
    taken = s.varargs - first + 1;
  }
  if (first + taken > s.positional) return false;
  int i = first;
  for (Py_ssize_t a = 0; a < taken; ++a, ++i) values_[i] = args[a];
  for (; i < s.count; ++i) values_[i] = nullptr;
  if (kwnames && !BindKeywords(s, args + nargs, kwnames)) return false;
  for (i = first; i < s.count; ++i) {
    if (!values_[i]) {
      if (!(s.params[i].flags & kDefault)) return false;
    } else if (values_[i] == Py_None && (s.params[i].flags & kNoneIsDefault)) {
      values_[i] = nullptr;
    } else if (i != varargs_param_ && !Accepts(s.params[i], values_[i], strict)) {
      return false;
    }
    if (values_[i] == Py_None && (s.params[i].kind == Kind::kOut || s.params[i].kind == Kind::kOuts))
      values_[i] = nullptr;
  }
  return true;
}

bool BoundArguments::BindKeywords(const Signature& s, PyObject* const* values, PyObject* kwnames) {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); ++k) {
    const int i = FindParam(s, PyTuple_GET_ITEM(kwnames, k));
    if (i < 0 || values_[i]) return false;
    values_[i] = values[k];
  }
  return true;
}

const Tensor& BoundArguments::TensorSlow(int i) {
  static const Tensor undefined;
  if (None(i)) return undefined;
  MICA_INTERNAL(numbers_count_ < 3, "a call has more than three numbers for tensors.");
  Tensor& t = numbers_[numbers_count_++];
  t = WrappedNumber(ToScalar(values_[i]));
  return t;
}

Dims BoundArguments::Ints(int i, int size) const {
  if (i == varargs_param_) {
    Dims dims;
    for (Py_ssize_t k = 0; k < varargs_count_; ++k) dims.push_back(ToInt(varargs_[k]));
    return dims;
  }
  return None(i) ? Dims() : ToIntList(values_[i], size);
}

void Unlocked::Leave() { new (&left_) Left; }
void Unlocked::Return() noexcept(false) {
  left_.~Left();
  if (std::uncaught_exceptions() == 0) ThrowIfInterrupted();
}

PyObject* ToPythonTuple(ResultNames& names, Tensor* tensors, int count) {
  if (!names.fields) {
    Ref tuple = Own(PyTuple_New(count));
    for (int i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.get(), i, Wrap(std::move(tensors[i])));
    return tuple.release();
  }
  if (!names.type) names.type = NamedResultType(names.type_name, names.fields, count);
  Ref result = Own(PyStructSequence_New(names.type));
  for (int i = 0; i < count; ++i) PyStructSequence_SetItem(result.get(), i, Wrap(std::move(tensors[i])));
  return result.release();
}

void CheckOut(BoundArguments& b, int out, int dtype, int device) {
  const Tensor& t = b.GetTensor(out);
  if (const auto wanted = dtype < 0 ? std::nullopt : b.OptDType(dtype))
    MICA_CHECK(t.dtype() == *wanted, "dtype ", ScalarTypeName(*wanted),
               " does not match dtype of out parameter (", ScalarTypeName(t.dtype()),
               "): Expected out tensor to have dtype ", Name(*wanted), ", but got ", Name(t.dtype()),
               " instead; give no `dtype`, or an `out` of it.");
  if (const auto wanted = device < 0 ? std::nullopt : b.OptDevice(device))
    MICA_CHECK(t.device().backend == wanted->backend, "device type ", wanted->ToString(),
               " does not match device type of out parameter (", t.device().ToString(),
               "); give no `device`, or an `out` on it.");
}

PyObject* FromOuts(ResultNames& names, const BoundArguments& b, int i, int count) {
  if (!names.fields) return b.NewReference(i);
  std::vector<Tensor> outs;
  for (int k = 0; k < count; ++k) outs.push_back(b.Out(i, k));
  return ToPythonTuple(names, outs.data(), count);
}

PyObject* FromFactory(const BoundArguments& b, int pin_memory, int requires_grad, Tensor result) {
  if (b.Given(pin_memory) && b.OptBool(pin_memory).value_or(false))
    result = PinMemory(result, PinningBackend());
  if (b.Given(requires_grad) && b.Bool(requires_grad)) {
    MICA_CHECK(IsDifferentiable(result.dtype()),
               "Only Tensors of floating point and complex dtype can require gradients; the dtype is (",
               Name(result.dtype()), ").");
    GetAutograd().SetRequiresGrad(result, true);
  }
  return Wrap(std::move(result));
}

void AddFunctions(PyObject* module, const PythonFunctionShard& shard) {
  for (int i = 0; i < shard.count; ++i) {
    PythonFunction& f = shard.functions[i];
    if (!f.module) {
      if (PyDict_GetItemString(TensorType.tp_dict, f.def.ml_name)) continue;  // written by hand
      const Ref descriptor = Own(PyDescr_NewMethod(&TensorType, &f.def));
      Check(PyDict_SetItemString(TensorType.tp_dict, f.def.ml_name, descriptor.get()));
      continue;
    }
    // Functions lie in one dictionary per module: _C._functions["nn.functional"].
    const Ref all = Own(PyObject_GetAttrString(module, "_functions"));
    PyObject* space = PyDict_GetItemString(all.get(), f.module);
    if (!space) {
      const Ref fresh = Own(PyDict_New());
      Check(PyDict_SetItemString(all.get(), f.module, fresh.get()));
      space = fresh.get();
    }
    const Ref name = Own(NewStr(*f.module ? std::string("mica.") + f.module : std::string("mica")));
    const Ref function = Own(PyCFunction_NewEx(&f.def, nullptr, name.get()));
    Check(PyDict_SetItemString(space, f.def.ml_name, function.get()));
  }
}

}  // namespace mica::python
