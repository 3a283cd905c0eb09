// What code that mica-gen --emit=plugin writes leans on: values of the formula
// language, and calls of operators through the host.
//
// Used by generated shape functions, decompositions and gradients of a plugin's
// operators; hand-written kernels have <mica/plugin.h>. Cost: a call boxes its
// arguments on the stack and looks its operator up once in the process.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <mica/few.h>
#include <mica/maths/complex_power.h>
#include <mica/operators.h>
#include <mica/plugin.h>

// As the host's: checks of generated bodies.
#define MICA_FORMULA_CHECK_(code, condition, ...)                \
  do {                                                           \
    if (!(condition)) ::mica::formula::Throw(code, __VA_ARGS__); \
  } while (0)
#define MICA_CHECK(c, ...) MICA_FORMULA_CHECK_(MICA_ERROR_RUNTIME, c, __VA_ARGS__)
#define MICA_CHECK_VALUE(c, ...) MICA_FORMULA_CHECK_(MICA_ERROR_VALUE, c, __VA_ARGS__)
#define MICA_CHECK_TYPE(c, ...) MICA_FORMULA_CHECK_(MICA_ERROR_TYPE, c, __VA_ARGS__)
#define MICA_CHECK_INDEX(c, ...) MICA_FORMULA_CHECK_(MICA_ERROR_INDEX, c, __VA_ARGS__)
#define MICA_CHECK_IMPLEMENTED(c, ...) MICA_FORMULA_CHECK_(MICA_ERROR_NOT_IMPLEMENTED, c, __VA_ARGS__)
#define MICA_CHECK_MEMORY(c, ...) MICA_FORMULA_CHECK_(MICA_ERROR_OUT_OF_MEMORY, c, __VA_ARGS__)
#define MICA_CHECK_DIVISOR(c, ...) MICA_FORMULA_CHECK_(MICA_ERROR_ZERO_DIVISION, c, __VA_ARGS__)

namespace mica {
namespace formula {

template <typename... A>
[[noreturn]] void Throw(int64_t code, const A&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  throw plugin::Error(code, out.str());
}

using Dims = plugin::Few<int64_t, 6>;
using Generator = MicaGenerator;

enum class DType : int32_t {
  kBool,
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kU64,
  kI64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kF8E4M3FN,
  kF8E5M2
};
enum class MemoryFormat : int32_t { kContiguous, kPreserve, kChannelsLast, kChannelsLast3d };
enum class Layout : int32_t { kStrided };
struct Device : MicaDevice {
  friend bool operator==(Device a, Device b) { return a.backend == b.backend && a.index == b.index; }
};
inline bool IsComplex(DType d) { return d == DType::kC64 || d == DType::kC128; }
inline bool IsFloating(DType d) {
  return (d >= DType::kF16 && d <= DType::kF64) || d == DType::kF8E4M3FN || d == DType::kF8E5M2;
}

// Borrowed lists; one made from a braced list lives to the end of the expression.
template <typename T>
class Span {
 public:
  Span() = default;
  Span(const T* data, int64_t size) : data_(data), size_(size) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // for the expression alone, as said above
#endif
  Span(std::initializer_list<T> list) : data_(list.begin()), size_(static_cast<int64_t>(list.size())) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  Span(const std::vector<T>& v) : data_(v.data()), size_(static_cast<int64_t>(v.size())) {}
  template <size_t N>
  Span(const plugin::Few<T, N>& v) : data_(v.data()), size_(static_cast<int64_t>(v.size())) {}
  const T* data() const { return data_; }
  int64_t size() const { return size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T& operator[](int64_t i) const { return data_[i]; }
  friend bool operator==(Span a, Span b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }
  friend bool operator!=(Span a, Span b) { return !(a == b); }

 private:
  const T* data_ = nullptr;
  int64_t size_ = 0;
};
using IntSpan = Span<int64_t>;
using FloatSpan = Span<double>;
using BoolSpan = Span<uint8_t>;

// A counted reference to a tensor of the host.
class Tensor {
 public:
  Tensor() = default;
  static Tensor Steal(MicaTensor* t) {
    Tensor r;
    r.t_ = t;
    return r;
  }
  static Tensor Borrow(MicaTensor* t) {
    if (t) plugin::Host()->tensor_retain(t);
    return Steal(t);
  }
  Tensor(const Tensor& o) : t_(o.t_) {
    if (t_) plugin::Host()->tensor_retain(t_);
  }
  Tensor(Tensor&& o) noexcept : t_(o.t_) { o.t_ = nullptr; }
  Tensor& operator=(Tensor o) noexcept {
    std::swap(t_, o.t_);
    return *this;
  }
  ~Tensor() {
    if (t_) plugin::Host()->tensor_release(t_);
  }
  MicaTensor* get() const { return t_; }
  MicaTensor* release() {
    MicaTensor* t = t_;
    t_ = nullptr;
    return t;
  }
  bool defined() const { return t_ != nullptr; }
  IntSpan sizes() const { return {t_->dl.shape, t_->dl.ndim}; }
  IntSpan strides() const { return {t_->dl.strides, t_->dl.ndim}; }
  int64_t ndim() const { return t_->dl.ndim; }
  int64_t numel() const {
    int64_t n = 1;
    for (const int64_t s : sizes()) n *= s;
    return n;
  }
  int64_t size(int64_t d) const {
    MICA_PLUGIN_CHECK(d >= -ndim() && d < ndim(), MICA_ERROR_INDEX,
                      "Dimension (" + std::to_string(d) + ") is out of range for a tensor of (" +
                          std::to_string(ndim()) + ") dimensions.");
    return sizes()[d < 0 ? d + ndim() : d];
  }
  DType dtype() const { return static_cast<DType>(plugin::TensorRef(t_).dtype()); }
  Device device() const { return Device{{plugin::TensorRef(t_).backend(), t_->dl.device.device_id}}; }

 private:
  MicaTensor* t_ = nullptr;
};
using TensorSpan = Span<Tensor>;

// A number of one of four kinds.
class Scalar {
 public:
  Scalar() = default;
  Scalar(bool b) : tag_(MICA_SCALAR_BOOL), i_(b) {}
  Scalar(int i) : Scalar(static_cast<int64_t>(i)) {}
  Scalar(int64_t i) : tag_(MICA_SCALAR_INT), i_(i) {}
  Scalar(double f) : tag_(MICA_SCALAR_FLOAT), parts_{f, 0} {}
  Scalar(std::complex<double> c) : tag_(MICA_SCALAR_COMPLEX), parts_{c.real(), c.imag()} {}
  explicit Scalar(MicaScalar s) : tag_(s.tag) {
    if (tag_ == MICA_SCALAR_COMPLEX) {
      parts_[0] = s.u.c[0];
      parts_[1] = s.u.c[1];
    } else if (tag_ == MICA_SCALAR_FLOAT) {
      parts_[0] = s.u.f;
    } else {
      i_ = s.u.i;
      large_ = tag_ == MICA_SCALAR_INT && s.reserved == 1;
    }
  }
  bool is_complex() const { return tag_ == MICA_SCALAR_COMPLEX; }
  bool is_float() const { return tag_ == MICA_SCALAR_FLOAT; }
  // As the host's: these raise for what has no value of the kind.
  int64_t ToInt() const {
    MICA_FORMULA_CHECK_(MICA_ERROR_OVERFLOW, !large_, "The number (", static_cast<uint64_t>(i_),
                        ") does not fit a signed 64-bit integer.");
    if (!is_float() && !is_complex()) return i_;
    const double value = ToDouble();
    MICA_FORMULA_CHECK_(MICA_ERROR_OVERFLOW, value >= -9223372036854775808.0 && value < 9223372036854775808.0,
                        "The number (", value, ") does not fit a 64-bit integer.");
    return static_cast<int64_t>(value);
  }
  double ToDouble() const {
    MICA_CHECK_TYPE(!is_complex() || parts_[1] == 0, "The complex number has an imaginary part (", parts_[1],
                    ") and no value as a real number.");
    if (is_float() || is_complex()) return parts_[0];
    return large_ ? static_cast<double>(static_cast<uint64_t>(i_)) : static_cast<double>(i_);
  }
  std::complex<double> ToComplex() const {
    return is_complex() ? std::complex<double>(parts_[0], parts_[1]) : std::complex<double>(ToDouble());
  }
  bool Equals(const Scalar& o) const { return ToComplex() == o.ToComplex(); }
  // Borrows: a complex number is read through this Scalar.
  MicaScalar ToAbi() const {
    MicaScalar s{tag_, large_, {}};
    if (tag_ == MICA_SCALAR_COMPLEX)
      s.u.c = parts_;
    else if (tag_ == MICA_SCALAR_FLOAT)
      s.u.f = parts_[0];
    else
      s.u.i = i_;
    return s;
  }

 private:
  int32_t tag_ = MICA_SCALAR_INT;
  bool large_ = false;  // an int whose bits are an unsigned number from 2^63 on
  int64_t i_ = 0;
  double parts_[2] = {0, 0};
};

// Arithmetic on Scalars and numbers.
namespace scalar_math {
#include <mica/formula_numbers.inc>
}  // namespace scalar_math

// --- borrowed arguments to values, and back
inline MicaValue Box(std::nullopt_t) { return MicaValue{}; }
inline MicaValue Box(std::nullptr_t) { return MicaValue{}; }
inline MicaValue Tagged(int32_t tag) {
  MicaValue v{};
  v.tag = tag;
  return v;
}
inline MicaValue Box(MicaObject* o) {
  MicaValue v = Tagged(o ? MICA_VALUE_OBJECT : MICA_VALUE_NONE);
  v.u.object = o;
  return v;
}
inline MicaValue Box(const Tensor& t) {
  MicaValue v = Tagged(t.defined() ? MICA_VALUE_TENSOR : MICA_VALUE_NONE);
  v.u.tensor = t.get();
  return v;
}
inline MicaValue BoxInt(int32_t tag, int64_t i) {
  MicaValue v = Tagged(tag);
  v.u.i = i;
  return v;
}
inline MicaValue Box(int64_t i) { return BoxInt(MICA_VALUE_INT, i); }
inline MicaValue Box(int i) { return BoxInt(MICA_VALUE_INT, i); }
inline MicaValue Box(bool b) { return BoxInt(MICA_VALUE_BOOL, b); }
inline MicaValue Box(DType d) { return BoxInt(MICA_VALUE_DTYPE, static_cast<int64_t>(d)); }
inline MicaValue Box(MemoryFormat f) { return BoxInt(MICA_VALUE_MEMORY_FORMAT, static_cast<int64_t>(f)); }
inline MicaValue Box(Layout l) { return BoxInt(MICA_VALUE_LAYOUT, static_cast<int64_t>(l)); }
inline MicaValue Box(double f) {
  MicaValue v = Tagged(MICA_VALUE_FLOAT);
  v.u.f = f;
  return v;
}
inline MicaValue Box(const Scalar& s) {
  MicaValue v = Tagged(MICA_VALUE_SCALAR);
  v.u.scalar = s.ToAbi();
  return v;
}
inline MicaValue Box(Device d) {
  MicaValue v = Tagged(MICA_VALUE_DEVICE);
  v.u.device = d;
  return v;
}
inline MicaValue Box(std::string_view s) {
  MicaValue v = Tagged(MICA_VALUE_STR);
  v.u.str = {s.data(), static_cast<int64_t>(s.size())};
  return v;
}
inline MicaValue Box(const char* s) { return Box(std::string_view(s)); }
inline MicaValue Box(IntSpan s) {
  MicaValue v = Tagged(MICA_VALUE_INTS);
  v.u.ints = {s.data(), s.size()};
  return v;
}
inline MicaValue Box(const Dims& s) { return Box(IntSpan(s)); }
inline MicaValue Box(FloatSpan s) {
  MicaValue v = Tagged(MICA_VALUE_FLOATS);
  v.u.floats = {s.data(), s.size()};
  return v;
}
inline MicaValue Box(const std::vector<double>& s) { return Box(FloatSpan(s)); }
inline MicaValue Box(BoolSpan s) {
  MicaValue v = Tagged(MICA_VALUE_BOOLS);
  v.u.bools = {s.data(), s.size()};
  return v;
}
inline MicaValue Box(const std::vector<uint8_t>& s) { return Box(BoolSpan(s)); }
inline MicaValue Box(Generator* g) {
  MicaValue v = Tagged(g ? MICA_VALUE_GENERATOR : MICA_VALUE_NONE);
  v.u.generator = g;
  return v;
}
inline MicaValue Box(TensorSpan s) {
  static_assert(sizeof(Tensor) == sizeof(MicaTensor*), "a Tensor is one pointer");
  MicaValue v = Tagged(MICA_VALUE_TENSORS);
  v.u.tensors = {reinterpret_cast<MicaTensor* const*>(s.data()), s.size()};
  return v;
}
inline MicaValue Box(const std::vector<Tensor>& s) { return Box(TensorSpan(s)); }
template <typename T>
MicaValue Box(const std::optional<T>& o) {
  return o ? Box(*o) : MicaValue{};
}

// A complex result holds its parts itself.
inline Scalar ScalarOf(const MicaValue& v) {
  if (v.tag != MICA_VALUE_COMPLEX) return Scalar(v.u.scalar);
  return Scalar(std::complex<double>(v.u.complex_parts[0], v.u.complex_parts[1]));
}

template <typename T>
struct Unboxed;
template <>
struct Unboxed<Tensor> {
  static Tensor From(const MicaValue& v) {
    return Tensor::Borrow(v.tag == MICA_VALUE_TENSOR ? v.u.tensor : nullptr);
  }
  static Tensor Take(MicaValue& v) {
    return Tensor::Steal(v.tag == MICA_VALUE_TENSOR ? v.u.tensor : nullptr);
  }
};
#define MICA_UNBOXED_(type, expression)                         \
  template <>                                                   \
  struct Unboxed<type> {                                        \
    static type From(const MicaValue& v) { return expression; } \
    static type Take(const MicaValue& v) { return expression; } \
  };
MICA_UNBOXED_(int64_t, v.u.i)
MICA_UNBOXED_(bool, v.u.i != 0)
MICA_UNBOXED_(double, v.u.f)
MICA_UNBOXED_(DType, static_cast<DType>(v.u.i))
MICA_UNBOXED_(MemoryFormat, static_cast<MemoryFormat>(v.u.i))
MICA_UNBOXED_(Device, (Device{v.u.device}))
MICA_UNBOXED_(Scalar, ScalarOf(v))
MICA_UNBOXED_(Generator*, v.tag == MICA_VALUE_NONE ? nullptr : v.u.generator)
MICA_UNBOXED_(std::vector<double>, std::vector<double>(v.u.floats.data, v.u.floats.data + v.u.floats.size))
MICA_UNBOXED_(std::vector<uint8_t>, std::vector<uint8_t>(v.u.bools.data, v.u.bools.data + v.u.bools.size))
MICA_UNBOXED_(MicaObject*, v.tag == MICA_VALUE_NONE ? nullptr : v.u.object)
MICA_UNBOXED_(std::string, std::string(v.u.str.data, static_cast<size_t>(v.u.str.size)))
MICA_UNBOXED_(Dims, Dims(v.u.ints.data, v.u.ints.data + v.u.ints.size))
#undef MICA_UNBOXED_
template <>
struct Unboxed<std::vector<Tensor>> {
  static std::vector<Tensor> From(const MicaValue& v) {
    std::vector<Tensor> list;
    for (int64_t i = 0; i < v.u.tensors.size; ++i) list.push_back(Tensor::Borrow(v.u.tensors.data[i]));
    return list;
  }
  static std::vector<Tensor> Take(MicaValue& v) {
    std::vector<Tensor> list;
    for (int64_t i = 0; i < v.u.tensors.size; ++i) list.push_back(Tensor::Steal(v.u.tensors.data[i]));
    plugin::Host()->tensor_list_free(
        v.u.tensors.data);  // there since mica.operators 1.1, which callers ask for
    return list;
  }
};
template <>
struct Unboxed<std::vector<Scalar>> {
  static std::vector<Scalar> From(const MicaValue& v) {
    return std::vector<Scalar>(v.u.scalars.data, v.u.scalars.data + v.u.scalars.size);
  }
};
template <typename T>
struct Unboxed<std::optional<T>> {
  static std::optional<T> From(const MicaValue& v) {
    return v.tag == MICA_VALUE_NONE ? std::nullopt : std::optional<T>(Unboxed<T>::From(v));
  }
};
// An argument of a boxed function.
template <typename T>
T Argument(const MicaValue& v) {
  return Unboxed<T>::From(v);
}

// An operator of the host, looked up once.
class Operator {
 public:
  explicit Operator(const char* name) { plugin::Check(plugin::Host()->op_find(plugin::Str(name), &handle_)); }
  void* handle() const { return handle_; }
  template <typename R, typename... A>
  R Call(const A&... arguments) const {
    const MicaValue args[] = {Box(arguments)..., MicaValue{}};
    if constexpr (std::is_void_v<R>) {
      MicaValue results[1] = {};
      Run(args, sizeof...(A), results, 1);
    } else {
      return Results<R>::Call(*this, args, sizeof...(A));
    }
  }

 private:
  template <typename R>
  struct Results {
    static R Call(const Operator& op, const MicaValue* args, int64_t n) {
      MicaValue result{};
      op.Run(args, n, &result, 1);
      return Unboxed<R>::Take(result);
    }
  };
  template <typename... T>
  struct Results<std::tuple<T...>> {
    static std::tuple<T...> Call(const Operator& op, const MicaValue* args, int64_t n) {
      MicaValue results[sizeof...(T)] = {};
      op.Run(args, n, results, sizeof...(T));
      MicaValue* next = results;
      return std::tuple<T...>{Unboxed<T>::Take(*next++)...};
    }
  };
  void Run(const MicaValue* args, int64_t n, MicaValue* results, int64_t count) const {
    plugin::Check(plugin::Host()->op_call_boxed(handle_, args, n, results, count));
  }
  void* handle_ = nullptr;
};

// --- what a gradient gives back: see MicaBackwardFunction
inline bool AnyOf(const uint8_t* wanted, size_t count) {
  return std::any_of(wanted, wanted + count, [](uint8_t w) { return w != 0; });
}
inline void GiveGradient(Tensor value, const uint8_t* wanted, MicaTensor** gradient) {
  if (*wanted) *gradient = value.release();
}
// Of a list of `count` tensors.
inline void GiveGradient(std::vector<Tensor> values, size_t count, const uint8_t* wanted,
                         MicaTensor** gradients) {
  MICA_PLUGIN_CHECK(values.size() == count, MICA_ERROR_VALUE,
                    "A gradient formula gives (" + std::to_string(values.size()) +
                        ") gradients for a list of (" + std::to_string(count) + ") tensors.");
  for (size_t i = 0; i < values.size(); ++i) GiveGradient(std::move(values[i]), wanted + i, gradients + i);
}

// A number where a Tensor is wanted.
inline Tensor WrappedNumber(const Scalar& s) {
  static const Operator make("mica::scalar_tensor");
  return make.Call<Tensor>(s, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
}

// --- functions of the language
inline Dims Own(IntSpan s) { return Dims(s.begin(), s.end()); }
template <typename T>
std::vector<T> Own(Span<T> s) {
  return std::vector<T>(s.begin(), s.end());
}
template <typename T>
std::vector<T> Own(std::vector<T> s) {
  return s;
}
template <typename T>
std::string Show(const T& value) {
  std::ostringstream out;
  if constexpr (std::is_enum_v<T>)
    out << "dtype number " << static_cast<int>(value);
  else
    out << value;
  return out.str();
}
inline std::string Show(IntSpan shape) {
  std::string out = "[";
  for (int64_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}
inline std::string Show(const Dims& shape) { return Show(IntSpan(shape)); }
#include <mica/formula_lists.inc>
template <typename T>
T At(const std::vector<T>& list, int64_t i) {
  return At(Span<T>(list), i);
}

inline bool IsDifferentiable(DType d) { return IsFloating(d) || IsComplex(d); }

}  // namespace formula
}  // namespace mica
