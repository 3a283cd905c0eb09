// What the generated binding functions are made of: tables of signatures, the
// binding of a call's arguments to one of them, and typed access.
//
// A generated function first tries its most frequent call (all-positional
// tensors) with plain type tests; then Bind walks the signatures' tables, in
// torch's order, first strictly, then with numbers allowed as tensors. Only the
// error path formats text. Tables are static; a parameter's name is interned on
// the first call with keywords.
#pragma once

#include "bindings/python/src/creation/convert.h"
#include "bindings/python/src/interception/override.h"
#include "bindings/python/src/module/errors.h"
#include "bindings/python/src/module/interrupt.h"
#include "tensor/generator.h"

namespace mica::python {

enum class Kind : uint8_t {
  kTensor,
  kTensors,
  kOptionalTensors,
  kInt,
  kInts,
  kFloat,
  kFloats,
  kBool,
  kBools,
  kScalar,
  kScalars,
  kStr,
  kDType,
  kLayout,
  kMemoryFormat,
  kDevice,
  kGenerator,
  kOut,
  kOuts,
};

inline constexpr uint8_t kOptional = 1;       // None is accepted
inline constexpr uint8_t kDefault = 2;        // may be left out
inline constexpr uint8_t kNumberOk = 4;       // a tensor for which a number may stand
inline constexpr uint8_t kNoneIsDefault = 8;  // None stands for the empty list that is the default

struct Param {
  const char* name;
  Kind kind;
  uint8_t flags = 0;
  uint8_t size = 0;  // of lists: one number may stand for `size`; of kOuts: the count
  PyObject* interned = nullptr;
};

struct Signature {
  const char* text;
  Param* params;
  int8_t count;
  int8_t positional;
  bool as_function;
  bool as_method;
  int8_t varargs = -1;  // parameter that may take the remaining positional integers
};

struct Overloads {
  const char* name;
  const Signature* signatures;
  int count;
  const char* module;  // where the function is found: "" for mica, "nn.functional", ...
};

// Arguments of one call, bound to a signature's parameters; NULL: not given.
class BoundArguments {
 public:
  bool Given(int i) const { return values_[i] != nullptr; }
  PyObject* object(int i) const { return values_[i]; }
  PyObject* NewReference(int i) const {
    Py_INCREF(values_[i]);
    return values_[i];
  }

  // NULL and None give an undefined tensor; a number a wrapped one.
  const Tensor& GetTensor(int i) {
    PyObject* o = values_[i];
    if (o && __builtin_expect(IsTensor(o), 1)) return Unwrap(o);
    return TensorSlow(i);
  }
  std::vector<Tensor> Tensors(int i) const {
    return values_[i] ? ToTensorList(values_[i]) : std::vector<Tensor>();
  }
  const Tensor& Out(int i, int n) const {
    return Unwrap(PyTuple_Check(values_[i]) ? PyTuple_GET_ITEM(values_[i], n)
                                            : PyList_GET_ITEM(values_[i], n));
  }
  int64_t Int(int i) const { return ToInt(values_[i]); }
  std::optional<int64_t> OptInt(int i) const {
    return None(i) ? std::nullopt : std::optional<int64_t>(ToInt(values_[i]));
  }
  double Float(int i) const { return ToDouble(values_[i]); }
  std::optional<double> OptFloat(int i) const {
    return None(i) ? std::nullopt : std::optional<double>(ToDouble(values_[i]));
  }
  bool Bool(int i) const { return ToBool(values_[i]); }
  std::optional<bool> OptBool(int i) const {
    return None(i) ? std::nullopt : std::optional<bool>(ToBool(values_[i]));
  }
  Scalar GetScalar(int i) const { return ToScalar(values_[i]); }
  std::optional<Scalar> OptScalar(int i) const {
    return None(i) ? std::nullopt : std::optional<Scalar>(ToScalar(values_[i]));
  }
  std::string_view Str(int i) const { return StrView(values_[i]); }
  std::optional<std::string_view> OptStr(int i) const {
    return None(i) ? std::nullopt : std::optional<std::string_view>(StrView(values_[i]));
  }
  DType GetDType(int i) const { return ToDType(values_[i]); }
  std::optional<DType> OptDType(int i) const {
    return None(i) ? std::nullopt : std::optional<DType>(ToDType(values_[i]));
  }
  Layout GetLayout(int) const { return Layout::kStrided; }
  std::optional<Layout> OptLayout(int i) const {
    return None(i) ? std::nullopt : std::optional<Layout>(Layout::kStrided);
  }
  MemoryFormat GetMemoryFormat(int i) const { return AsMemoryFormat(values_[i]); }
  std::optional<MemoryFormat> OptMemoryFormat(int i) const {
    return None(i) ? std::nullopt : std::optional<MemoryFormat>(AsMemoryFormat(values_[i]));
  }
  Device GetDevice(int i) const { return ToDevice(values_[i]); }
  std::optional<Device> OptDevice(int i) const {
    return None(i) ? std::nullopt : std::optional<Device>(ToDevice(values_[i]));
  }
  Generator* GetGenerator(int i) const { return None(i) ? nullptr : AsGenerator(values_[i]); }

  // Lists; the caller keeps what they own in a variable.
  Dims Ints(int i, int size) const;
  std::vector<double> Floats(int i) const {
    return None(i) ? std::vector<double>() : ToFloatList(values_[i]);
  }
  std::vector<uint8_t> Bools(int i) const {
    return None(i) ? std::vector<uint8_t>() : ToBoolList(values_[i]);
  }
  // Passes the list on, None as nullopt.
  template <typename Owned>
  auto OptSpan(int i, const Owned& owned) const {
    using S = Span<typename Owned::value_type>;
    return None(i) ? std::nullopt : std::optional<S>(S(owned));
  }
  bool None(int i) const { return !values_[i] || values_[i] == Py_None; }

  static constexpr int kOverridden = -1;
  PyObject* TakeResult() { return result_.release(); }

 protected:
  BoundArguments(PyObject** values, int capacity) : values_(values), capacity_(capacity) {}
  // The number of the signature that fits; throws a TypeError if none does. kOverridden
  // where a mode or a subclass took the call (override.h): its result is taken then.
  // `self` is NULL for a module's function.
  int BindTo(const Overloads& overloads, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
             PyObject* kwnames);

 private:
  const Tensor& TensorSlow(int i);
  bool Try(const Signature& s, PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
           bool strict);
  bool BindKeywords(const Signature& s, PyObject* const* values, PyObject* kwnames);

  PyObject** values_;
  int capacity_;
  PyObject* const* varargs_ = nullptr;  // where a list is given as single integers
  Py_ssize_t varargs_count_ = 0;
  int varargs_param_ = -1;
  Ref result_;         // of whoever took the call
  Tensor numbers_[3];  // wrapped numbers
  int numbers_count_ = 0;
};

template <int kCapacity>
class Bound : public BoundArguments {
 public:
  Bound() : BoundArguments(storage_, kCapacity) {}
  int Bind(const Overloads& overloads, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
           PyObject* kwnames) {
    return BindTo(overloads, self, args, nargs, kwnames);
  }

 private:
  PyObject* storage_[kCapacity];
};

// If all arguments, `self` first, are one to three tensors that nobody wants to
// intercept: their number, and they in `t`; else -1.
inline int FastTensors(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject** t) {
  int n = 0;
  if (__builtin_expect(g_function_modes != 0, 0)) return -1;
  if (self) {
    if (!IsPlainTensor(self)) return -1;
    t[n++] = self;
  }
  if (nargs + n > 3) return -1;
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    if (!IsPlainTensor(args[i])) return -1;
    t[n++] = args[i];
  }
  return n;
}

// What a default's span points at, owned.
template <typename List, typename S>
List Owned(S span) {
  return List(span.begin(), span.end());
}

// Whether a call is big enough to give the GIL up: 32768 elements in all its
// tensors, or any device but the CPU.
inline constexpr int64_t kLargeCall = 32768;
class Work {
 public:
  Work& Add(const Tensor& t) {
    if (!t.defined()) return *this;
    elements_ += std::min(t.numel(), kLargeCall);
    if (t.device().backend > 1) elements_ += kLargeCall;
    return *this;
  }
  Work& Add(const std::vector<Tensor>& tensors) {
    for (const Tensor& t : tensors) Add(t);
    return *this;
  }
  Work& Add(const Dims& sizes) {
    int64_t n = 1;
    for (int64_t s : sizes)
      if (__builtin_mul_overflow(n, s, &n)) n = kLargeCall;
    elements_ += std::min(n, kLargeCall);
    return *this;
  }
  bool large() const { return elements_ >= kLargeCall; }

 private:
  int64_t elements_ = 0;
};
// A call without the GIL, if it is large: from here to the end of the block. A signal's handler that raises
// meanwhile ends it with an Error even if the kernel did not stop.
class Unlocked {
 public:
  explicit Unlocked(bool large) : large_(large) {
    if (__builtin_expect(large_, 0)) Leave();
  }
  ~Unlocked() noexcept(false) {
    if (__builtin_expect(large_, 0)) Return();
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  struct Left {
    CallerModes modes;
    GilRelease nogil;
  };
  void Leave();
  void Return() noexcept(false);

  const bool large_;
  union {
    Left left_;  // lives where the call is large
  };
};
// Calls f without the GIL.
template <typename F>
auto RunLarge(F&& f) {
  const Unlocked unlocked(true);
  return f();
}
// Calls f, without the GIL if the work is large.
template <typename F>
auto Run(const Work& work, F&& f) {
  const Unlocked unlocked(work.large());
  return f();
}

// Results.
inline PyObject* ToPython(Tensor t) { return Wrap(std::move(t)); }
inline PyObject* ToPython(std::vector<Tensor> list) { return FromTensorList(std::move(list)); }
inline PyObject* ToPython(int64_t i) { return PyLong_FromLongLong(i); }
inline PyObject* ToPython(double d) { return PyFloat_FromDouble(d); }
inline PyObject* ToPython(bool b) { return NewBool(b); }
inline PyObject* ToPython(DType d) { return FromDType(d); }
inline PyObject* ToPython(const Scalar& s) { return FromScalar(s); }
// Several results: a named tuple of a type made once per operator.
struct ResultNames {
  const char* type_name;      // "max": the type is mica.return_types.max
  const char* const* fields;  // NULL-terminated; NULL itself: a plain tuple
  PyTypeObject* type = nullptr;
};
PyObject* ToPythonTuple(ResultNames& names, Tensor* tensors, int count);
template <typename... T>
PyObject* ToPython(ResultNames& names, std::tuple<T...> results) {
  return std::apply(
      [&](auto&... t) {
        Tensor list[] = {std::move(t)...};
        return ToPythonTuple(names, list, sizeof...(T));
      },
      results);
}
// Raises where argument `out` is of another dtype or device than the arguments of these numbers say; -1:
// there is none.
void CheckOut(BoundArguments& b, int out, int dtype, int device);
// The tensors of the tuple that argument `i`, an `out`, is.
PyObject* FromOuts(ResultNames& names, const BoundArguments& b, int i, int count);
// What a factory made, with its arguments `pin_memory` and `requires_grad`, by number, done.
PyObject* FromFactory(const BoundArguments& b, int pin_memory, int requires_grad, Tensor result);

// A generated function and where it is found from Python.
struct PythonFunction {
  const char* module;  // "" for mica, "nn.functional", ...; NULL for a method of Tensor
  PyMethodDef def;
};
struct PythonFunctionShard {
  PythonFunction* functions;
  int count;
};
// Adds the functions to their modules and the methods to Tensor.
void AddFunctions(PyObject* module, const PythonFunctionShard& shard);

}  // namespace mica::python
