// Arithmetic on Scalars as Python does it: bool counts as int, an int with a
// float gives a float, and `/` always gives a float. Generated formulas
// (codegen/formula) call it; kernels have no use for it.
#pragma once

#include <cmath>

#include <mica/maths/complex_power.h>
#include "tensor/error.h"
#include "tensor/scalar.h"

namespace mica::scalar_math {

namespace internal {
template <typename IntOp, typename FloatOp, typename ComplexOp>
Scalar Apply(const Scalar& a, const Scalar& b, IntOp on_ints, FloatOp on_floats, ComplexOp on_complex) {
  if (a.is_complex() || b.is_complex()) return Scalar(on_complex(a.ToComplex(), b.ToComplex()));
  if (a.is_float() || b.is_float()) return Scalar(on_floats(a.ToDouble(), b.ToDouble()));
  return Scalar(on_ints(a.ToInt(), b.ToInt()));
}
inline int64_t FloorDivInt(int64_t a, int64_t b) {
  MICA_CHECK_KIND(kZeroDivision, b != 0,
                  "Divisor is zero (0) in an integer division; expected another number.");
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  const int64_t quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
inline double RemainderFloat(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
}  // namespace internal

inline Scalar Neg(const Scalar& a) {
  if (a.is_complex()) return Scalar(-a.ToComplex());
  if (a.is_float()) return Scalar(-a.ToDouble());
  return Scalar(static_cast<int64_t>(-static_cast<uint64_t>(a.ToInt())));
}
inline Scalar Add(const Scalar& a, const Scalar& b) {
  const auto wrap = [](int64_t x, int64_t y) {
    return static_cast<int64_t>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
  };
  return internal::Apply(
      a, b, wrap, [](auto x, auto y) { return x + y; }, [](auto x, auto y) { return x + y; });
}
inline Scalar Sub(const Scalar& a, const Scalar& b) { return Add(a, Neg(b)); }
inline Scalar Mul(const Scalar& a, const Scalar& b) {
  const auto wrap = [](int64_t x, int64_t y) {
    return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  };
  return internal::Apply(
      a, b, wrap, [](auto x, auto y) { return x * y; }, [](auto x, auto y) { return x * y; });
}
inline Scalar Div(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return Scalar(a.ToComplex() / b.ToComplex());
  return Scalar(a.ToDouble() / b.ToDouble());
}
inline Scalar FloorDiv(const Scalar& a, const Scalar& b) {
  return a.is_float() || b.is_float() ? Scalar(std::floor(a.ToDouble() / b.ToDouble()))
                                      : Scalar(internal::FloorDivInt(a.ToInt(), b.ToInt()));
}
inline Scalar Remainder(const Scalar& a, const Scalar& b) {
  if (a.is_float() || b.is_float()) return Scalar(internal::RemainderFloat(a.ToDouble(), b.ToDouble()));
  return Sub(a, Mul(FloorDiv(a, b), b));
}
inline Scalar Pow(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return Scalar(maths::ComplexPower(a.ToComplex(), b.ToComplex()));
  return Scalar(std::pow(a.ToDouble(), b.ToDouble()));
}
inline bool Equal(const Scalar& a, const Scalar& b) { return a.Equals(b); }
// Below 0, 0 or above 0; NaN counts as above everything.
inline int Compare(const Scalar& a, const Scalar& b) {
  const double x = a.ToDouble(), y = b.ToDouble();
  return x < y ? -1 : x == y ? 0 : 1;
}

// The same on plain numbers, where C++'s operators mean something else. Ints are sizes,
// counts and places: one beyond int64 raises.
inline int64_t Add(int64_t a, int64_t b) {
  int64_t sum;
  MICA_CHECK(!__builtin_add_overflow(a, b, &sum), "The sum of (", a, ") and (", b,
             ") is beyond the range of int64.");
  return sum;
}
inline int64_t Sub(int64_t a, int64_t b) {
  int64_t difference;
  MICA_CHECK(!__builtin_sub_overflow(a, b, &difference), "The difference of (", a, ") and (", b,
             ") is beyond the range of int64.");
  return difference;
}
inline int64_t Mul(int64_t a, int64_t b) {
  int64_t product;
  MICA_CHECK(!__builtin_mul_overflow(a, b, &product), "The product of (", a, ") and (", b,
             ") is beyond the range of int64.");
  return product;
}
inline int64_t Neg(int64_t a) { return Sub(int64_t{0}, a); }
inline int64_t FloorDiv(int64_t a, int64_t b) { return internal::FloorDivInt(a, b); }
inline double FloorDiv(double a, double b) { return std::floor(a / b); }
inline int64_t Remainder(int64_t a, int64_t b) {
  MICA_CHECK_KIND(kZeroDivision, b != 0,
                  "Divisor is zero (0) in an integer remainder; expected another number.");
  const int64_t rest = b == -1 ? 0 : a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
inline double Remainder(double a, double b) { return internal::RemainderFloat(a, b); }
inline double Pow(double a, double b) { return std::pow(a, b); }

}  // namespace mica::scalar_math
