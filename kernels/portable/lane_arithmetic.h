// Arithmetic of one lane that machine.cc and machine_real.cc share: division with
// torch's signs and errors, integer powers, the kinds of lanes.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include <mica/program.h>
#include "kernels/portable/lanes.h"

namespace mica::portable {

template <typename T>
constexpr bool kFloat = std::is_same_v<T, double>;
template <typename T>
constexpr bool kComplexLane = std::is_same_v<T, Complex>;
template <typename T>
constexpr bool kInteger = std::is_integral_v<T>;

[[noreturn]] inline void ThrowUndefined(int opcode) {
  static constexpr const char* kNames[] = {
#define X(name, ...) #name,
      MICA_FORALL_OPCODES(X)
#undef X
  };
  MICA_THROW(kNotImplemented, "The portable interpreter has no meaning for the instruction (", kNames[opcode],
             ") on the dtype of this call.");
}

template <typename T>
T CheckedDivisor(T b) {
  MICA_CHECK_KIND(kRuntime, b != 0, "ZeroDivisionError: an integer is divided by zero.");
  return b;
}
// INT64_MIN / -1 wraps.
template <typename T>
T TruncDivInteger(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (CheckedDivisor(b) == -1) return static_cast<T>(-static_cast<uint64_t>(a));
  }
  return a / CheckedDivisor(b);
}
template <typename T>
T FmodInteger(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (CheckedDivisor(b) == -1) return 0;
  }
  return a % CheckedDivisor(b);
}
template <typename T>
T Remainder(T a, T b) {
  if constexpr (kFloat<T>) {
    const double m = std::fmod(a, b);
    if (m == 0) return std::copysign(0.0, b);
    return (b < 0) != (m < 0) ? m + b : m;
  } else {
    const T m = FmodInteger(a, b);
    return m != 0 && ((m < 0) != (b < 0)) ? m + b : m;
  }
}
template <typename T>
T FloorDiv(T a, T b) {
  if constexpr (kFloat<T>) {
    if (b == 0) return a / b;
    const double m = std::fmod(a, b);
    double q = (a - m) / b;
    if (m != 0 && (b < 0) != (m < 0)) q -= 1;
    if (q == 0) return std::copysign(0.0, a / b);
    const double f = std::floor(q);
    return q - f > 0.5 ? f + 1 : f;
  } else {
    const T q = TruncDivInteger(a, b);
    const T m = FmodInteger(a, b);
    return m != 0 && ((m < 0) != (b < 0)) ? q - 1 : q;
  }
}
template <typename T>
T PowInteger(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  }
  uint64_t result = 1, b = static_cast<uint64_t>(base);
  for (auto e = static_cast<uint64_t>(exponent); e; e >>= 1, b *= b)
    if (e & 1) result *= b;
  return static_cast<T>(result);
}
inline double LogAddExp(double a, double b) {
  if (std::isinf(a) && a == b) return a;
  const double m = std::fmax(a, b);
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN()
                                        : m + std::log1p(std::exp(-std::fabs(a - b)));
}
inline double Sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
inline Complex Sigmoid(Complex x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace mica::portable
