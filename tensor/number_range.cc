#include "tensor/number_range.h"

#include <cmath>
#include <complex>
#include <limits>

namespace mica {

double LargestNumber(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.FEp127;
    case DType::kF8E4M3FN:
      return 448;
    case DType::kF8E5M2:
      return 57344;
    case DType::kF32:
    case DType::kC64:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
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
