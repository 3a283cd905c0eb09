// Parts of gradient formulas, as operators: reductions, scans and powers. Each is
// composed of differentiable operators, so that it can be differentiated again.
#include <algorithm>
#include <cmath>
#include <limits>

#include "mica/kernels/composite/composite_helpers.h"
#include "mica/ops/abs.h"
#include "mica/ops/add.h"
#include "mica/ops/cat.h"
#include "mica/ops/conj.h"
#include "mica/ops/cumprod.h"
#include "mica/ops/cumsum.h"
#include "mica/ops/div.h"
#include "mica/ops/eq.h"
#include "mica/ops/exp.h"
#include "mica/ops/expand.h"
#include "mica/ops/flip.h"
#include "mica/ops/ge.h"
#include "mica/ops/gt.h"
#include "mica/ops/isinf.h"
#include "mica/ops/isnan.h"
#include "mica/ops/log.h"
#include "mica/ops/logcumsumexp.h"
#include "mica/ops/logical_and.h"
#include "mica/ops/logical_or.h"
#include "mica/ops/lt.h"
#include "mica/ops/masked_fill.h"
#include "mica/ops/mean.h"
#include "mica/ops/mul.h"
#include "mica/ops/narrow.h"
#include "mica/ops/pow.h"
#include "mica/ops/real.h"
#include "mica/ops/reciprocal.h"
#include "mica/ops/reshape.h"
#include "mica/ops/rsub.h"
#include "mica/ops/scatter.h"
#include "mica/ops/scatter_add.h"
#include "mica/ops/sin.h"
#include "mica/ops/square.h"
#include "mica/ops/sub.h"
#include "mica/ops/sum.h"
#include "mica/ops/unsqueeze.h"
#include "mica/ops/where.h"

namespace mica::composite {
namespace {

// A reduced tensor with its dimensions back, of size 1.
Tensor Kept(const Tensor& t, IntSpan sizes, std::optional<IntSpan> dim, bool keepdim) {
  if (keepdim || sizes.empty()) return t;
  return ops::reshape(t, KeptSizes(sizes, DimsOrAll(dim, sizes.size())));
}

Tensor Reversed(const Tensor& t, int64_t dim) { return ops::flip(t, IntSpan(&dim, 1)); }
Tensor ReverseSum(const Tensor& t, int64_t dim) { return Reversed(ops::cumsum(Reversed(t, dim), dim), dim); }

// Products of all elements before each, 1 for the first.
Tensor ProductBefore(const Tensor& t, int64_t dim) {
  const int64_t size = t.size(dim);
  Dims one = ToDims(t.sizes());
  one[static_cast<size_t>(dim)] = 1;
  const Tensor first = FullLike(t, one, Scalar(1));
  if (size == 1) return first;
  const std::vector<Tensor> parts = {first, ops::cumprod(ops::narrow(t, dim, 0, size - 1), dim)};
  return ops::cat(parts, dim);
}

}  // namespace

Tensor _scale(const Tensor& self, const Scalar& alpha) {
  if (alpha.is_complex()) return ops::mul(self, Scalar(std::conj(alpha.ToComplex())));
  return alpha.ToDouble() == 1.0 ? self : ops::mul(self, alpha);
}

Tensor _expand_reduced(const Tensor& grad, IntSpan sizes, std::optional<IntSpan> dim, bool keepdim) {
  return ops::expand(Kept(grad, sizes, dim, keepdim), sizes);
}
Tensor _mean_backward(const Tensor& grad, IntSpan sizes, std::optional<IntSpan> dim, bool keepdim) {
  const auto count = static_cast<double>(CountOver(sizes, DimsOrAll(dim, sizes.size())));
  return ops::expand(Kept(ops::div(grad, Scalar(count)), sizes, dim, keepdim), sizes);
}

Tensor _extremum_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                          std::optional<IntSpan> dim, bool keepdim) {
  const Tensor r = Kept(result, self.sizes(), dim, keepdim), g = Kept(grad, self.sizes(), dim, keepdim);
  const Tensor hit = ops::logical_or(ops::eq(self, r), ops::logical_and(ops::isnan(self), ops::isnan(r)));
  const Tensor count = ops::sum(hit, DimsOrAll(dim, self.ndim()), true);
  return ops::where(hit, ops::div(g, count), Scalar(0));
}

Tensor _prod_backward(const Tensor& grad, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  if (self.ndim() == 0) return grad;
  if (!dim) {
    const Tensor flat = ops::reshape(self, {-1});
    return ops::reshape(_prod_backward(grad, flat, 0, false), self.sizes());
  }
  const int64_t d = WrapDim(*dim, self.ndim());
  if (self.size(d) == 0) return ZerosLike(self, self.sizes());
  const Tensor others = ops::mul(ProductBefore(self, d), Reversed(ProductBefore(Reversed(self, d), d), d));
  return ops::mul(Kept(grad, self.sizes(), IntSpan(&d, 1), keepdim), ops::conj(others));
}

Tensor _var_backward(const Tensor& grad, const Tensor& self, std::optional<IntSpan> dim, double correction,
                     bool keepdim) {
  const Dims dims = DimsOrAll(dim, self.ndim());
  const double divisor = static_cast<double>(CountOver(self.sizes(), dims)) - correction;
  const Tensor centred = ops::sub(self, ops::mean(self, dims, true));
  return ops::mul(ops::mul(Kept(grad, self.sizes(), dim, keepdim), centred), Scalar(2.0 / divisor));
}
Tensor _std_backward(const Tensor& grad, const Tensor& self, const Tensor& result, std::optional<IntSpan> dim,
                     double correction, bool keepdim) {
  const Tensor of_var = ops::masked_fill(ops::div(grad, ops::mul(result, Scalar(2.0))),
                                         ops::eq(result, Scalar(0.0)), Scalar(0.0));
  return _var_backward(of_var, self, dim, correction, keepdim);
}
Tensor _norm2_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                       std::optional<IntSpan> dim, bool keepdim) {
  const Tensor ratio = ops::masked_fill(ops::div(grad, result), ops::eq(result, Scalar(0.0)), Scalar(0.0));
  return ops::mul(self, Kept(ratio, self.sizes(), dim, keepdim));
}
Tensor _logsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result, IntSpan dim,
                           bool keepdim) {
  const Tensor g = Kept(grad, self.sizes(), dim, keepdim), r = Kept(result, self.sizes(), dim, keepdim);
  return ops::mul(g, ops::exp(ops::sub(self, ops::masked_fill(r, ops::isinf(r), Scalar(0.0)))));
}

Tensor _cumsum_backward(const Tensor& grad, int64_t dim) {
  return grad.ndim() == 0 || grad.numel() <= 1 ? grad : ReverseSum(grad, dim);
}

Tensor _cumprod_backward(const Tensor& grad, const Tensor& self, int64_t dim) {
  if (self.ndim() == 0 || self.numel() == 0) return grad;
  dim = WrapDim(dim, self.ndim());
  const int64_t n = self.size(dim);
  // d result[i] / d self[k] = prod of self[j] for j <= i, j != k: exact with zeros.
  std::vector<Tensor> slices;
  const Tensor before = ProductBefore(self, dim);
  for (int64_t k = 0; k < n; ++k) {
    Tensor after = ops::narrow(self, dim, k, n - k);
    after = ProductBefore(
        ops::cat(std::vector<Tensor>{ops::narrow(after, dim, 1, n - k - 1), ops::narrow(after, dim, 0, 1)},
                 dim),
        dim);
    const Tensor sum =
        ops::sum(ops::mul(ops::narrow(grad, dim, k, n - k), ops::conj(after)), IntSpan(&dim, 1), true);
    slices.push_back(ops::mul(sum, ops::conj(ops::narrow(before, dim, k, 1))));
  }
  return ops::cat(slices, dim);
}

Tensor _logcumsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim) {
  if (self.ndim() == 0 || self.numel() == 0) return grad;
  const Scalar least(std::numeric_limits<double>::lowest() / (self.dtype() == DType::kF64 ? 1.0 : 0x1p900));
  const Tensor size = ops::log(ops::abs(grad));
  const auto part = [&](const Tensor& sign) {
    const Tensor logs = ops::sub(ops::where(sign, size, least), result);
    return ops::exp(ops::add(Reversed(ops::logcumsumexp(Reversed(logs, dim), dim), dim), self));
  };
  return ops::sub(part(ops::gt(grad, Scalar(0.0))), part(ops::lt(grad, Scalar(0.0))));
}

Tensor _cumextremum_backward(const Tensor& grad, IntSpan sizes, const Tensor& indices, int64_t dim) {
  if (sizes.empty()) return grad;
  return ops::scatter_add(ZerosLike(grad, sizes), dim, indices, grad);
}

Tensor value_selecting_reduction_backward(const Tensor& grad, int64_t dim, const Tensor& indices,
                                          IntSpan sizes, bool keepdim) {
  if (sizes.empty()) return grad;
  const Tensor g = keepdim ? grad : ops::unsqueeze(grad, dim),
               at = keepdim ? indices : ops::unsqueeze(indices, dim);
  return ops::scatter(ZerosLike(grad, sizes), dim, at, g);
}

Tensor _pow_scalar_backward(const Tensor& grad, const Tensor& self, const Scalar& exponent) {
  if (exponent.Equals(Scalar(0))) return ZerosLike(self, self.sizes());
  const Scalar less = exponent.is_complex() ? Scalar(exponent.ToComplex() - 1.0)
                      : exponent.is_float() ? Scalar(exponent.ToDouble() - 1)
                                            : Scalar(exponent.ToInt() - 1);
  return ops::mul(grad, ops::conj(ops::mul(ops::pow(self, less), exponent)));
}
Tensor _pow_backward_self(const Tensor& grad, const Tensor& self, const Tensor& exponent) {
  const Tensor slope = ops::mul(exponent, ops::pow(self, ops::sub(exponent, Scalar(1))));
  return ops::where(ops::eq(exponent, Scalar(0)), Scalar(0), ops::mul(grad, ops::conj(slope)));
}
Tensor _pow_backward_exponent(const Tensor& grad, const Tensor& self, const Tensor& exponent,
                              const Tensor& result) {
  const bool is_complex = IsComplex(exponent.dtype());
  const Tensor sign = is_complex ? ops::real(exponent) : exponent;
  const Tensor none = ops::logical_and(ops::eq(self, Scalar(0)), ops::ge(sign, Scalar(0)));
  return ops::mul(grad, ops::where(none, Scalar(0), ops::conj(ops::mul(result, ops::log(self)))));
}
Tensor _pow_scalar_backward_exponent(const Tensor& grad, const Scalar& self, const Tensor& exponent,
                                     const Tensor& result) {
  const Scalar log =
      self.is_complex() ? Scalar(std::log(self.ToComplex())) : Scalar(std::log(self.ToDouble()));
  const Tensor slope = ops::mul(grad, ops::conj(ops::mul(result, log)));
  if (!self.Equals(Scalar(0))) return slope;
  return ops::where(ops::ge(IsComplex(exponent.dtype()) ? ops::real(exponent) : exponent, Scalar(0)),
                    Scalar(0), slope);
}

Tensor _sgn_backward(const Tensor& grad, const Tensor& self, const Tensor& sgn) {
  if (!IsComplex(self.dtype())) return ZerosLike(self, self.sizes());
  const Tensor along = ops::mul(sgn, ops::real(ops::mul(ops::conj(sgn), grad)));
  const Tensor length = ops::abs(self);
  return ops::masked_fill(ops::div(ops::sub(grad, along), length), ops::eq(length, Scalar(0.0)), Scalar(0.0));
}
Tensor _angle_backward(const Tensor& grad, const Tensor& self) {
  if (!IsComplex(self.dtype())) return ZerosLike(self, self.sizes());
  const Tensor square = ops::square(ops::abs(self));
  const Tensor turned = ops::mul(self, Scalar(std::complex<double>(0, 1)));
  return ops::masked_fill(ops::mul(turned, ops::div(grad, square)), ops::eq(square, Scalar(0.0)),
                          Scalar(0.0));
}

// psi'(x): for x < 0.5 by reflection, then shifted by 8 into the range of the
// asymptotic series (Abramowitz & Stegun 6.4.12).
Tensor _polygamma1(const Tensor& self) {
  constexpr double kPi = 3.14159265358979323846;
  const Tensor small = ops::lt(self, Scalar(0.5));
  const Tensor x = ops::where(small, ops::rsub(self, Scalar(1.0)), self);
  Tensor sum = ops::reciprocal(ops::square(x));
  for (int k = 1; k < 8; ++k)
    sum = ops::add(sum, ops::reciprocal(ops::square(ops::add(x, Scalar(static_cast<double>(k))))));
  const Tensor inverse = ops::reciprocal(ops::add(x, Scalar(8.0))), square = ops::square(inverse);
  constexpr double kSeries[] = {-691.0 / 2730, 5.0 / 66, -1.0 / 30, 1.0 / 42, -1.0 / 30, 1.0 / 6};
  Tensor series = ops::mul(square, Scalar(7.0 / 6));
  for (const double c : kSeries) series = ops::mul(ops::add(series, Scalar(c)), square);
  sum = ops::add(sum,
                 ops::mul(inverse, ops::add(ops::add(series, ops::mul(inverse, Scalar(0.5))), Scalar(1.0))));
  const Tensor reflected = ops::sub(
      ops::reciprocal(ops::square(ops::div(ops::sin(ops::mul(self, Scalar(kPi))), Scalar(kPi)))), sum);
  return ops::where(small, reflected, sum);
}

}  // namespace mica::composite
