#include "tensor/number_range.h"

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

namespace mica {

namespace {

// The largest finite number of a narrow float, whose bits are just below those of infinity and NaN.
template <typename T>
constexpr double LargestNarrow() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  int bits = (1 << (8 * sizeof(T) - 1)) - 1;
  while (!(T::FromBits(static_cast<decltype(T::bits)>(bits)) < kInfinity)) --bits;
  return T::FromBits(static_cast<decltype(T::bits)>(bits));
}

}  // namespace

double LargestNumber(DType dtype) {
  return VisitDType(RealOf(dtype), []<typename T>() -> double {
    if constexpr (std::is_same_v<T, float>) {
      return std::numeric_limits<float>::max();
    } else if constexpr (!std::is_arithmetic_v<T> && std::is_convertible_v<T, float>) {
      constexpr double kLargest = LargestNarrow<T>();
      return kLargest;
    } else {
      return std::numeric_limits<double>::max();
    }
  });
}

namespace {

bool FloatHolds(DType dtype, double x) { return !std::isfinite(x) || std::fabs(x) <= LargestNumber(dtype); }

bool IntegerHolds(DType dtype, const Scalar& number) {
  const bool is_signed = Kind(dtype) == DTypeKind::kSigned;
  const int64_t bits = ItemSize(dtype) * 8;
  if (number.is_large_unsigned()) return dtype == DType::kU64;
  if (number.is_float() || number.is_complex()) {
    const double x = number.ToDouble(), end = std::ldexp(1.0, static_cast<int>(bits - is_signed));
    return x >= (is_signed ? -end : 0) && (bits == 64 ? x < end : x <= end - 1);
  }
  if (bits == 64) return true;
  const int64_t end = int64_t{1} << (bits - is_signed), i = number.ToInt();
  return i < end && i >= (is_signed ? -end : 1 - end);
}

}  // namespace

bool HoldsNumber(DType dtype, const Scalar& number) {
  if (dtype == DType::kBool) return true;
  if (IsComplex(dtype)) {
    const std::complex<double> c = number.ToComplex();
    return FloatHolds(dtype, c.real()) && FloatHolds(dtype, c.imag());
  }
  if (number.is_complex() && number.ToComplex().imag() != 0) return false;
  return IsInteger(dtype) ? IntegerHolds(dtype, number) : FloatHolds(dtype, number.ToDouble());
}

}  // namespace mica
