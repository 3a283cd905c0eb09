// Composites of reductions: variances, norms, counts, medians of one kernel.
#include <cmath>

#include "mica/kernels/composite/composite_helpers.h"
#include "mica/ops/_log_softmax.h"
#include "mica/ops/_logsumexp.h"
#include "mica/ops/_norm2.h"
#include "mica/ops/_softmax.h"
#include "mica/ops/_std.h"
#include "mica/ops/_var.h"
#include "mica/ops/_var_mean.h"
#include "mica/ops/abs.h"
#include "mica/ops/add.h"
#include "mica/ops/amax.h"
#include "mica/ops/amin.h"
#include "mica/ops/cat.h"
#include "mica/ops/count_nonzero.h"
#include "mica/ops/detach.h"
#include "mica/ops/exp.h"
#include "mica/ops/imag.h"
#include "mica/ops/isinf.h"
#include "mica/ops/isnan.h"
#include "mica/ops/log.h"
#include "mica/ops/logical_xor.h"
#include "mica/ops/masked_fill.h"
#include "mica/ops/mean.h"
#include "mica/ops/narrow.h"
#include "mica/ops/ne.h"
#include "mica/ops/neg.h"
#include "mica/ops/pow.h"
#include "mica/ops/real.h"
#include "mica/ops/reshape.h"
#include "mica/ops/sqrt.h"
#include "mica/ops/sub.h"
#include "mica/ops/sum.h"

namespace mica::composite {
namespace {

double Correction(const std::optional<Scalar>& correction) {
  return correction ? correction->ToDouble() : 1.0;
}
double Correction(bool unbiased) { return unbiased ? 1.0 : 0.0; }

Tensor Var(const Tensor& self, std::optional<IntSpan> dim, double correction, bool keepdim) {
  if (!IsComplex(self.dtype())) return ops::_var(self, dim, correction, keepdim);
  return ops::add(ops::_var(ops::real(self), dim, correction, keepdim),
                  ops::_var(ops::imag(self), dim, correction, keepdim));
}
Tensor Std(const Tensor& self, std::optional<IntSpan> dim, double correction, bool keepdim) {
  if (!IsComplex(self.dtype())) return ops::_std(self, dim, correction, keepdim);
  return ops::sqrt(Var(self, dim, correction, keepdim));
}
std::tuple<Tensor, Tensor> VarMean(const Tensor& self, std::optional<IntSpan> dim, double correction,
                                   bool keepdim) {
  if (!IsComplex(self.dtype())) return ops::_var_mean(self, dim, correction, keepdim);
  return {Var(self, dim, correction, keepdim), ops::mean(self, dim, keepdim)};
}
std::tuple<Tensor, Tensor> StdMean(const Tensor& self, std::optional<IntSpan> dim, double correction,
                                   bool keepdim) {
  return {Std(self, dim, correction, keepdim), ops::mean(self, dim, keepdim)};
}

}  // namespace

Tensor var_all(const Tensor& self, bool unbiased) {
  return Var(self, std::nullopt, Correction(unbiased), false);
}
Tensor var_dim(const Tensor& self, std::optional<IntSpan> dim, bool unbiased, bool keepdim) {
  return Var(self, dim, Correction(unbiased), keepdim);
}
Tensor var_correction(const Tensor& self, std::optional<IntSpan> dim, const std::optional<Scalar>& correction,
                      bool keepdim) {
  return Var(self, dim, Correction(correction), keepdim);
}
Tensor std_all(const Tensor& self, bool unbiased) {
  return Std(self, std::nullopt, Correction(unbiased), false);
}
Tensor std_dim(const Tensor& self, std::optional<IntSpan> dim, bool unbiased, bool keepdim) {
  return Std(self, dim, Correction(unbiased), keepdim);
}
Tensor std_correction(const Tensor& self, std::optional<IntSpan> dim, const std::optional<Scalar>& correction,
                      bool keepdim) {
  return Std(self, dim, Correction(correction), keepdim);
}
std::tuple<Tensor, Tensor> var_mean_all(const Tensor& self, bool unbiased) {
  return VarMean(self, std::nullopt, Correction(unbiased), false);
}
std::tuple<Tensor, Tensor> var_mean_dim(const Tensor& self, std::optional<IntSpan> dim, bool unbiased,
                                        bool keepdim) {
  return VarMean(self, dim, Correction(unbiased), keepdim);
}
std::tuple<Tensor, Tensor> var_mean_correction(const Tensor& self, std::optional<IntSpan> dim,
                                               const std::optional<Scalar>& correction, bool keepdim) {
  return VarMean(self, dim, Correction(correction), keepdim);
}
std::tuple<Tensor, Tensor> std_mean_all(const Tensor& self, bool unbiased) {
  return StdMean(self, std::nullopt, Correction(unbiased), false);
}
std::tuple<Tensor, Tensor> std_mean_dim(const Tensor& self, std::optional<IntSpan> dim, bool unbiased,
                                        bool keepdim) {
  return StdMean(self, dim, Correction(unbiased), keepdim);
}
std::tuple<Tensor, Tensor> std_mean_correction(const Tensor& self, std::optional<IntSpan> dim,
                                               const std::optional<Scalar>& correction, bool keepdim) {
  return StdMean(self, dim, Correction(correction), keepdim);
}

std::tuple<Tensor, Tensor> aminmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  if (!dim) return {ops::amin(self, IntSpan(), keepdim), ops::amax(self, IntSpan(), keepdim)};
  const int64_t d = *dim;
  return {ops::amin(self, IntSpan(&d, 1), keepdim), ops::amax(self, IntSpan(&d, 1), keepdim)};
}

Tensor count_nonzero(const Tensor& self, std::optional<int64_t> dim) {
  if (!dim) return ops::op::count_nonzero_dim_IntList::call(self, IntSpan());
  const int64_t d = *dim;
  return ops::op::count_nonzero_dim_IntList::call(self, IntSpan(&d, 1));
}

Tensor linalg_vector_norm(const Tensor& self, const Scalar& ord, std::optional<IntSpan> dim, bool keepdim,
                          std::optional<DType> dtype) {
  const Tensor x = dtype ? Cast(self, *dtype) : self;
  MICA_CHECK(IsDifferentiable(x.dtype()), "Dtype (", Name(x.dtype()),
             ") has no norm; expected a float or complex dtype.");
  const double p = ord.ToDouble();
  const Dims dims = DimsOrAll(dim, x.ndim());
  if (p == 2) return ops::_norm2(x, dims, keepdim);
  const Tensor magnitude = ops::abs(x);
  if (p == 1) return ops::sum(magnitude, dims, keepdim);
  if (p == 0) return Cast(ops::sum(ops::ne(magnitude, Scalar(0.0)), dims, keepdim), magnitude.dtype());
  if (std::isinf(p)) return p > 0 ? ops::amax(magnitude, dims, keepdim) : ops::amin(magnitude, dims, keepdim);
  return ops::pow(ops::sum(ops::pow(magnitude, ord), dims, keepdim), Scalar(1.0 / p));
}

Tensor logsumexp(const Tensor& self, IntSpan dim, bool keepdim) {
  if (!IsComplex(self.dtype())) return ops::_logsumexp(self, dim, keepdim);
  const Tensor largest = ops::amax(ops::detach(ops::real(self)), dim, true);
  const Tensor shift = ops::masked_fill(largest, ops::isinf(largest), Scalar(0.0));
  const Tensor sum = ops::sum(ops::exp(ops::sub(self, shift)), dim, keepdim);
  return ops::add(ops::log(sum), keepdim ? shift : ops::reshape(shift, sum.sizes()));
}

Tensor norm_scalar(const Tensor& self, const Scalar& p) {
  return linalg_vector_norm(self, p, std::nullopt, false, std::nullopt);
}
Tensor norm_dim(const Tensor& self, const std::optional<Scalar>& p, IntSpan dim, bool keepdim) {
  return linalg_vector_norm(self, p.value_or(Scalar(2.0)), dim, keepdim, std::nullopt);
}
Tensor norm_dtype(const Tensor& self, const std::optional<Scalar>& p, DType dtype) {
  return linalg_vector_norm(self, p.value_or(Scalar(2.0)), std::nullopt, false, dtype);
}
Tensor norm_dim_dtype(const Tensor& self, const std::optional<Scalar>& p, IntSpan dim, bool keepdim,
                      DType dtype) {
  return linalg_vector_norm(self, p.value_or(Scalar(2.0)), dim, keepdim, dtype);
}

Tensor nansum(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype) {
  const Tensor x =
      IsDifferentiable(self.dtype()) ? ops::masked_fill(self, ops::isnan(self), Scalar(0.0)) : self;
  return ops::sum(x, dim, keepdim, dtype);
}
Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) {
  return norm_scalar(ops::sub(self, other), p);
}

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  MICA_CHECK(self.ndim() > 0, "A 0-d tensor has no neighbours; expected at least one dimension.");
  MICA_CHECK(n >= 0, "Order `n` (", n, ") is negative; expected 0 or more.");
  dim = WrapDim(dim, self.ndim());
  Tensor x = self;
  if (prepend.defined() || append.defined()) {
    std::vector<Tensor> parts;
    if (prepend.defined()) parts.push_back(prepend);
    parts.push_back(self);
    if (append.defined()) parts.push_back(append);
    x = ops::cat(parts, dim);
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t length = x.size(dim);
    if (length == 0) break;
    const Tensor after = ops::narrow(x, dim, 1, length - 1), before = ops::narrow(x, dim, 0, length - 1);
    x = x.dtype() == DType::kBool ? ops::logical_xor(after, before) : ops::sub(after, before);
  }
  return x;
}

namespace {
Tensor RowInput(const Tensor& self, std::optional<DType> dtype) {
  const DType wanted = dtype.value_or(self.dtype());
  return Cast(self, wanted);
}
}  // namespace

Tensor softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return ops::_softmax(RowInput(self, dtype), dim, false);
}
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return ops::_log_softmax(RowInput(self, dtype), dim, false);
}
Tensor softmin(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return ops::_softmax(ops::neg(RowInput(self, dtype)), dim, false);
}

}  // namespace mica::composite
