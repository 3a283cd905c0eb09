// The arithmetic of reductions over memory, for engines of <mica/collectives.h> that reduce on the CPU, in
// C++17.
//
//   ReduceInto(into, from, count, MICA_F32, MICA_REDUCE_SUM);  // into[i] += from[i]
//
// Half types are computed in float32 and rounded after each step. Throws NOT_IMPLEMENTED for reductions that
// the dtype does not have (a minimum of complex numbers, an average of integers).
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include <mica/collectives.h>
#include <mica/half.h>
#include <mica/plugin.h>

namespace mica {
namespace plugin {

inline const char* ReductionName(int32_t reduction) {
  static const char* const names[] = {"sum", "product", "min", "max", "band", "bor", "bxor", "avg"};
  return reduction >= 0 && reduction <= MICA_REDUCE_AVG ? names[reduction] : "unknown";
}

namespace reductions {

template <class T>
T Smaller(T a, T b) {
  return a < b || a != a ? a : b;  // a NaN wins
}
template <class T>
T Larger(T a, T b) {
  return a > b || a != a ? a : b;
}

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<std::complex<T>> : std::true_type {};

[[noreturn]] inline void Refuse(int32_t reduction, const char* dtype) {
  throw Error(MICA_ERROR_NOT_IMPLEMENTED, std::string("Reduction (") + ReductionName(reduction) +
                                              ") is not there for tensors of the kind (" + dtype +
                                              "); convert them to a dtype that has it.");
}

// f(a, b) for the reduction, on values of the type T.
template <class T, class Use>
void Choose(int32_t reduction, Use use) {
  switch (reduction) {
    case MICA_REDUCE_SUM:
      return use([](T a, T b) { return static_cast<T>(a + b); });
    case MICA_REDUCE_PRODUCT:
      if constexpr (std::is_integral_v<T>) return use([](T a, T b) { return static_cast<T>(1u * a * b); });
      if constexpr (!std::is_integral_v<T>) return use([](T a, T b) { return a * b; });
      break;
    case MICA_REDUCE_AVG:
      if constexpr (!std::is_integral_v<T>) return use([](T a, T b) { return a + b; });
      break;
    case MICA_REDUCE_MIN:
      if constexpr (!IsComplex<T>::value) return use([](T a, T b) { return Smaller(a, b); });
      break;
    case MICA_REDUCE_MAX:
      if constexpr (!IsComplex<T>::value) return use([](T a, T b) { return Larger(a, b); });
      break;
    case MICA_REDUCE_BAND:
      if constexpr (std::is_integral_v<T>) return use([](T a, T b) { return static_cast<T>(a & b); });
      break;
    case MICA_REDUCE_BOR:
      if constexpr (std::is_integral_v<T>) return use([](T a, T b) { return static_cast<T>(a | b); });
      break;
    case MICA_REDUCE_BXOR:
      if constexpr (std::is_integral_v<T>) return use([](T a, T b) { return static_cast<T>(a ^ b); });
      break;
  }
  Refuse(reduction, IsComplex<T>::value     ? "complex numbers"
                    : std::is_integral_v<T> ? "integers"
                                            : "floating numbers");
}

// Signed sums wrap: they are those of the unsigned type.
template <class T>
void Numbers(void* into, const void* from, int64_t n, int32_t reduction) {
  T* const a = static_cast<T*>(into);
  const T* const b = static_cast<const T*>(from);
  Choose<T>(reduction, [=](auto f) {
    for (int64_t i = 0; i < n; ++i) a[i] = f(a[i], b[i]);
  });
}
template <class H>
void Halves(void* into, const void* from, int64_t n, int32_t reduction) {
  H* const a = static_cast<H*>(into);
  const H* const b = static_cast<const H*>(from);
  Choose<float>(reduction, [=](auto f) {
    for (int64_t i = 0; i < n; ++i) a[i] = H::Of(f(a[i].get(), b[i].get()));
  });
}
// Of signed integers; the order alone depends on the sign.
template <class Signed>
void Integers(void* into, const void* from, int64_t n, int32_t reduction) {
  if (reduction == MICA_REDUCE_MIN || reduction == MICA_REDUCE_MAX)
    return Numbers<Signed>(into, from, n, reduction);
  Numbers<std::make_unsigned_t<Signed>>(into, from, n, reduction);
}
// Of bool a sum is "or" and a product "and".
inline void Bools(void* into, const void* from, int64_t n, int32_t reduction) {
  const bool either = reduction == MICA_REDUCE_SUM || reduction == MICA_REDUCE_MAX;
  const bool both = reduction == MICA_REDUCE_PRODUCT || reduction == MICA_REDUCE_MIN;
  Numbers<uint8_t>(into, from, n, either ? MICA_REDUCE_BOR : both ? MICA_REDUCE_BAND : reduction);
}

template <class T>
void Divide(void* data, int64_t n, double by) {
  T* const a = static_cast<T*>(data);
  for (int64_t i = 0; i < n; ++i) a[i] /= static_cast<T>(by);
}
template <class H>
void DivideHalves(void* data, int64_t n, double by) {
  H* const a = static_cast<H*>(data);
  for (int64_t i = 0; i < n; ++i) a[i] = H::Of(a[i].get() / static_cast<float>(by));
}

}  // namespace reductions

inline void ReduceInto(void* into, const void* from, int64_t n, int32_t dtype, int32_t reduction) {
  using namespace reductions;
  switch (dtype) {
    case MICA_BOOL:
      return Bools(into, from, n, reduction);
    case MICA_U8:
      return Numbers<uint8_t>(into, from, n, reduction);
    case MICA_I8:
      return Integers<int8_t>(into, from, n, reduction);
    case MICA_U16:
      return Numbers<uint16_t>(into, from, n, reduction);
    case MICA_I16:
      return Integers<int16_t>(into, from, n, reduction);
    case MICA_U32:
      return Numbers<uint32_t>(into, from, n, reduction);
    case MICA_I32:
      return Integers<int32_t>(into, from, n, reduction);
    case MICA_U64:
      return Numbers<uint64_t>(into, from, n, reduction);
    case MICA_I64:
      return Integers<int64_t>(into, from, n, reduction);
    case MICA_F16:
      return Halves<HalfBits>(into, from, n, reduction);
    case MICA_BF16:
      return Halves<BrainBits>(into, from, n, reduction);
    case MICA_F32:
      return Numbers<float>(into, from, n, reduction);
    case MICA_F64:
      return Numbers<double>(into, from, n, reduction);
    case MICA_C64:
      return Numbers<std::complex<float>>(into, from, n, reduction);
    case MICA_C128:
      return Numbers<std::complex<double>>(into, from, n, reduction);
    default:
      Refuse(reduction, "8-bit floating numbers");
  }
}

// The end of an average: the sum divided by the number of ranks.
inline void DivideBy(void* data, int64_t n, int32_t dtype, double by) {
  using namespace reductions;
  switch (dtype) {
    case MICA_F16:
      return DivideHalves<HalfBits>(data, n, by);
    case MICA_BF16:
      return DivideHalves<BrainBits>(data, n, by);
    case MICA_F32:
      return Divide<float>(data, n, by);
    case MICA_F64:
      return Divide<double>(data, n, by);
    case MICA_C64:
      return Divide<std::complex<float>>(data, n, by);
    case MICA_C128:
      return Divide<std::complex<double>>(data, n, by);
    default:
      Refuse(MICA_REDUCE_AVG, "integers");
  }
}

}  // namespace plugin
}  // namespace mica
