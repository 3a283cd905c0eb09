// Composites of arithmetic, comparison, maths and choosing.
#include <cmath>
#include <limits>

#include "mica/kernels/composite/composite_helpers.h"
#include "mica/ops/_angle.h"
#include "mica/ops/_angle_real.h"
#include "mica/ops/_clamp.h"
#include "mica/ops/_conj_physical.h"
#include "mica/ops/_trunc_div.h"
#include "mica/ops/abs.h"
#include "mica/ops/add.h"
#include "mica/ops/all.h"
#include "mica/ops/clamp_max.h"
#include "mica/ops/clamp_min.h"
#include "mica/ops/clone.h"
#include "mica/ops/complex.h"
#include "mica/ops/cos.h"
#include "mica/ops/div.h"
#include "mica/ops/eq.h"
#include "mica/ops/floor_divide.h"
#include "mica/ops/imag.h"
#include "mica/ops/isclose.h"
#include "mica/ops/isfinite.h"
#include "mica/ops/isnan.h"
#include "mica/ops/isneginf.h"
#include "mica/ops/isposinf.h"
#include "mica/ops/item.h"
#include "mica/ops/le.h"
#include "mica/ops/log.h"
#include "mica/ops/logical_and.h"
#include "mica/ops/logical_or.h"
#include "mica/ops/masked_fill.h"
#include "mica/ops/maximum.h"
#include "mica/ops/minimum.h"
#include "mica/ops/mul.h"
#include "mica/ops/nonzero_numpy.h"
#include "mica/ops/pow.h"
#include "mica/ops/real.h"
#include "mica/ops/round.h"
#include "mica/ops/rsub.h"
#include "mica/ops/select.h"
#include "mica/ops/sin.h"
#include "mica/ops/sub.h"
#include "mica/ops/view_as_real.h"
#include "mica/ops/where.h"

namespace mica::composite {

Tensor div_mode(const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode) {
  if (!rounding_mode) return ops::div(self, other);
  if (*rounding_mode == "floor") return ops::floor_divide(self, other);
  MICA_CHECK(*rounding_mode == "trunc", "Rounding mode (", std::string(*rounding_mode),
             ") is unknown; expected None, trunc or floor.");
  return ops::_trunc_div(self, other);
}
Tensor div_scalar_mode(const Tensor& self, const Scalar& other,
                       std::optional<std::string_view> rounding_mode) {
  return div_mode(self, WrappedNumber(other), rounding_mode);
}

Tensor positive(const Tensor& self) {
  MICA_CHECK(self.dtype() != DType::kBool, "Operator positive does not support the dtype (bool).");
  return self;
}

Tensor clamp(const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  MICA_CHECK(min || max, "Both `min` and `max` are None; expected at least one of the two.");
  if (min && max) return ops::_clamp(self, *min, *max);
  return min ? ops::clamp_min(self, *min) : ops::clamp_max(self, *max);
}
Tensor clamp_tensor(const Tensor& self, const Tensor& min, const Tensor& max) {
  MICA_CHECK(min.defined() || max.defined(),
             "Both `min` and `max` are None; expected at least one of the two.");
  const Tensor low = min.defined() ? ops::clamp_min(self, min) : self;
  return max.defined() ? ops::clamp_max(low, max) : low;
}

Tensor ldexp(const Tensor& self, const Tensor& other) { return ops::mul(self, ops::pow(Scalar(2.0), other)); }

Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  MICA_CHECK(self.dtype() == other.dtype(), "Dtype (", Name(self.dtype()), ") of `self` differs from dtype (",
             Name(other.dtype()), ") of `other`.");
  MICA_CHECK(rtol >= 0 && atol >= 0, "Tolerance `rtol` (", rtol, ") or `atol` (", atol, ") is negative.");
  Tensor close = ops::eq(self, other);
  if (equal_nan && IsDifferentiable(self.dtype()))
    close = ops::logical_or(close, ops::logical_and(ops::isnan(self), ops::isnan(other)));
  if (rtol == 0 && atol == 0) return close;
  const DType real = IsDifferentiable(self.dtype()) ? self.dtype() : DefaultDType();
  const Tensor a = Cast(self, real), b = Cast(other, real);
  const Tensor allowed = ops::add(ops::mul(ops::abs(b), Scalar(rtol)), Scalar(atol));
  const Tensor actual = ops::abs(ops::sub(a, b));
  return ops::logical_or(close, ops::logical_and(ops::isfinite(actual), ops::le(actual, allowed)));
}
bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return ops::item(ops::op::all::call(ops::isclose(self, other, rtol, atol, equal_nan))).ToBool();
}

Tensor round_decimals(const Tensor& self, int64_t decimals) {
  if (decimals == 0) return ops::round(self);
  MICA_CHECK_IMPLEMENTED(IsFloating(self.dtype()),
                         "Operator round with decimals does not support the dtype (", Name(self.dtype()),
                         ").");
  const double ten = std::pow(10.0, static_cast<double>(decimals < 0 ? -decimals : decimals));
  const Tensor x = Cast(self, StatisticsDType(self.dtype()));
  const Tensor rounded = decimals > 0 ? ops::div(ops::round(ops::mul(x, Scalar(ten))), Scalar(ten))
                                      : ops::mul(ops::round(ops::div(x, Scalar(ten))), Scalar(ten));
  return Cast(rounded, self.dtype());
}

namespace {
double LargestOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kF32:
      return std::numeric_limits<float>::max();
    case DType::kF8E4M3FN:
      return 448;
    case DType::kF8E5M2:
      return 57344;
    default:
      return std::numeric_limits<double>::max();
  }
}
}  // namespace

Tensor nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (!IsDifferentiable(self.dtype())) return ops::clone(self);
  if (IsComplex(self.dtype()))
    return ops::complex(nan_to_num(ops::real(self), nan, posinf, neginf),
                        nan_to_num(ops::imag(self), nan, posinf, neginf));
  const double largest = LargestOf(self.dtype());
  const Tensor no_nan = ops::masked_fill(self, ops::isnan(self), Scalar(nan.value_or(0.0)));
  const Tensor no_inf = ops::masked_fill(no_nan, ops::isposinf(self), Scalar(posinf.value_or(largest)));
  return ops::masked_fill(no_inf, ops::isneginf(self), Scalar(neginf.value_or(-largest)));
}

Tensor logit(const Tensor& self, std::optional<double> eps) {
  const Tensor x = eps && *eps >= 0 ? ops::_clamp(self, Scalar(*eps), Scalar(1 - *eps)) : self;
  return ops::log(ops::div(x, ops::rsub(x, Scalar(1.0))));
}

Tensor conj(const Tensor& self) { return IsComplex(self.dtype()) ? ops::_conj_physical(self) : self; }
Tensor conj_physical(const Tensor& self) { return conj(self); }
Tensor angle(const Tensor& self) {
  return IsComplex(self.dtype()) ? ops::_angle(self) : ops::_angle_real(self);
}
Tensor real(const Tensor& self) {
  return IsComplex(self.dtype()) ? ops::select(ops::view_as_real(self), -1, 0) : self;
}
Tensor imag(const Tensor& self) {
  MICA_CHECK(IsComplex(self.dtype()), "Dtype (", Name(self.dtype()),
             ") has no imaginary part; expected complex64 or complex128.");
  return ops::select(ops::view_as_real(self), -1, 1);
}
Tensor polar(const Tensor& abs, const Tensor& angle) {
  return ops::complex(ops::mul(abs, ops::cos(angle)), ops::mul(abs, ops::sin(angle)));
}

Tensor where_scalar_self(const Tensor& condition, const Scalar& self, const Tensor& other) {
  return ops::where(condition, WrappedNumber(self), other);
}
Tensor where_scalar_other(const Tensor& condition, const Tensor& self, const Scalar& other) {
  return ops::where(condition, self, WrappedNumber(other));
}
Tensor where_scalar(const Tensor& condition, const Scalar& self, const Scalar& other) {
  return ops::where(condition, WrappedNumber(self), WrappedNumber(other));
}
std::vector<Tensor> where_indices(const Tensor& condition) { return ops::nonzero_numpy(condition); }

Tensor max_other(const Tensor& self, const Tensor& other) { return ops::maximum(self, other); }
Tensor min_other(const Tensor& self, const Tensor& other) { return ops::minimum(self, other); }

}  // namespace mica::composite
