// Linear algebra that repeats a step as often as the data or the shapes say:
// reflectors, scaling and squaring, the order of products; and LAPACK's word on a batch.
#include <cmath>
#include <vector>

#include "dispatcher/frames/frames.h"
#include "mica/kernels/composite_declarations.h"
#include "mica/ops/abs.h"
#include "mica/ops/add.h"
#include "mica/ops/adjoint.h"
#include "mica/ops/amax.h"
#include "mica/ops/any.h"
#include "mica/ops/cat.h"
#include "mica/ops/ceil.h"
#include "mica/ops/clamp_min.h"
#include "mica/ops/clone.h"
#include "mica/ops/conj.h"
#include "mica/ops/conj_physical.h"
#include "mica/ops/contiguous.h"
#include "mica/ops/empty_like.h"
#include "mica/ops/exp2.h"
#include "mica/ops/expand.h"
#include "mica/ops/eye.h"
#include "mica/ops/gt.h"
#include "mica/ops/item.h"
#include "mica/ops/log2.h"
#include "mica/ops/masked_fill.h"
#include "mica/ops/matmul.h"
#include "mica/ops/max.h"
#include "mica/ops/mul.h"
#include "mica/ops/narrow.h"
#include "mica/ops/neg.h"
#include "mica/ops/squeeze.h"
#include "mica/ops/sub.h"
#include "mica/ops/sum.h"
#include "mica/ops/to.h"
#include "mica/ops/transpose.h"
#include "mica/ops/tril.h"
#include "mica/ops/unsqueeze.h"
#include "mica/ops/where.h"
#include "tensor/shape.h"

namespace mica::composite {
namespace {

// LAPACK's words on a batch, on the CPU, contiguous; undefined on the meta device.
Tensor InfoOnHost(const Tensor& info) {
  MICA_CHECK(info.dtype() == DType::kI32, "Dtype (", Name(info.dtype()), ") of `info` is not int32.");
  if (info.device().is_meta()) return Tensor();
  frames::CheckReadable(info, "LAPACK's word on each matrix");
  return ops::contiguous(info.device().is_cpu() ? info : ops::to(info, Device{}, DType::kI32));
}

int64_t FirstFailure(const Tensor& host) {
  if (!host.defined()) return -1;
  const int32_t* values = host.data_as<int32_t>();
  for (int64_t i = 0; i < host.numel(); ++i)
    if (values[i] != 0) return i;
  return -1;
}

Tensor Identity(const Tensor& like, int64_t rows, int64_t columns) {
  return ops::eye(rows, columns, like.dtype(), std::nullopt, like.device());
}

// Q x (Q^H x if `adjoint`), where Q is the product of the reflectors I - tau_i v_i v_i^H
// and v_i is column i of `reflectors` with 1 on the diagonal and 0 above.
Tensor Reflect(const Tensor& reflectors, const Tensor& tau, Tensor x, bool adjoint) {
  const int64_t k = tau.size(-1);
  if (k == 0) return ops::clone(x, MemoryFormat::kContiguous);
  const Tensor v = ops::add(ops::tril(ops::narrow(reflectors, -1, 0, k), -1),
                            Identity(reflectors, reflectors.size(-2), k));
  const Tensor factors = ops::unsqueeze(adjoint ? ops::conj(tau) : tau, -2);
  for (int64_t i = 0; i < k; ++i) {
    const int64_t column = adjoint ? i : k - 1 - i;
    const Tensor one = ops::narrow(v, -1, column, 1);
    const Tensor scaled = ops::mul(one, ops::narrow(factors, -1, column, 1));
    x = ops::sub(x, ops::matmul(scaled, ops::matmul(ops::adjoint(one), x)));
  }
  return x;
}

// Taylor's polynomial of degree 20 of the exponential, by Paterson and Stockmeyer's scheme:
// seven products and no system to solve, so that errors stay those of the terms. The
// remainder is below the dtype's spacing up to this norm.
double TaylorNorm(DType dtype) { return dtype == DType::kF32 || dtype == DType::kC64 ? 3.0 : 1.44; }

Tensor Taylor(const Tensor& a) {
  constexpr int64_t kBlock = 5, kDegree = 20;
  std::vector<Tensor> powers = {Identity(a, a.size(-1), a.size(-1)), a};
  for (int64_t k = 2; k <= kBlock; ++k) powers.push_back(ops::matmul(powers[k / 2], powers[k - k / 2]));
  const auto inverse_factorial = [](int64_t k) {
    return Scalar(1 / std::tgamma(static_cast<double>(k + 1)));
  };
  Tensor sum = ops::mul(powers[kBlock], inverse_factorial(kDegree));
  for (int64_t first = kDegree - kBlock; first >= 0; first -= kBlock) {
    for (int64_t k = kBlock - 1; k >= 0; --k) sum = ops::add(sum, powers[k], inverse_factorial(first + k));
    if (first > 0) sum = ops::matmul(powers[kBlock], sum);
  }
  return sum;
}

}  // namespace

bool _any_true(const Tensor& mask) {
  return frames::IsReadable(mask) && ops::item(ops::any(mask, std::nullopt)).ToBool();
}

int64_t _linalg_failure(const Tensor& info) { return FirstFailure(InfoOnHost(info)); }

int64_t _linalg_failure_code(const Tensor& info) {
  const Tensor host = InfoOnHost(info);
  const int64_t at = FirstFailure(host);
  return at < 0 ? 0 : host.data_as<int32_t>()[at];
}

Tensor _householder_product(const Tensor& input, const Tensor& tau) {
  MICA_CHECK(input.ndim() >= 2 && tau.ndim() >= 1 && tau.size(-1) <= input.size(-1), "Shape ",
             ShapeText(tau.sizes()), " of `tau` does not fit `input` with shape ", ShapeText(input.sizes()),
             ".");
  return Reflect(input, tau, ops::expand(Identity(input, input.size(-2), input.size(-1)), input.sizes()),
                 false);
}

Tensor _ormqr(const Tensor& self, const Tensor& tau, const Tensor& other, bool left, bool transpose) {
  MICA_CHECK(self.ndim() >= 2 && tau.ndim() >= 1 && tau.size(-1) <= self.size(-1), "Shape ",
             ShapeText(tau.sizes()), " of `tau` does not fit `self` with shape ", ShapeText(self.sizes()),
             ".");
  if (left) return Reflect(self, tau, other, transpose);
  return ops::conj_physical(ops::transpose(Reflect(self, tau, ops::adjoint(other), !transpose), -2, -1));
}

Tensor linalg_matrix_exp(const Tensor& self) {
  MICA_CHECK(self.ndim() >= 2 && self.size(-1) == self.size(-2),
             "`self` must be batches of square matrices, but its shape is ", ShapeText(self.sizes()),
             "; it must have at least 2 dimensions, the last two of one size.");
  MICA_CHECK(IsDifferentiable(self.dtype()), "Expected a floating point or complex tensor as input; dtype (",
             Name(self.dtype()), ") of `self` has no exponential of matrices.");
  if (self.device().is_meta() || self.numel() == 0) return ops::empty_like(self);
  if (ItemSize(self.dtype()) < 4) return ops::to(linalg_matrix_exp(ops::to(self, DType::kF32)), self.dtype());
  const int64_t last[] = {-1}, second[] = {-2};
  const Tensor norm = ops::amax(ops::sum(ops::abs(self), IntSpan(second, 1), true), IntSpan(last, 1), true);
  // Each matrix is halved as often as brings it into the polynomial's reach.
  Tensor halvings =
      ops::clamp_min(ops::ceil(ops::log2(ops::mul(norm, Scalar(1 / TaylorNorm(self.dtype()))))), Scalar(0));
  halvings = ops::masked_fill(halvings, ops::gt(halvings, Scalar(1100)), Scalar(0));  // infinite norms
  const double most = ops::item(ops::max(halvings)).ToDouble();
  Tensor x = Taylor(ops::mul(self, ops::to(ops::exp2(ops::neg(halvings)), self.dtype())));
  for (int64_t k = 0; static_cast<double>(k) < most; ++k)
    x = ops::where(ops::gt(halvings, Scalar(k)), ops::matmul(x, x), x);
  return x;
}

Tensor linalg_multi_dot(TensorSpan tensors) {
  const int64_t n = tensors.size();
  MICA_CHECK(n >= 2, "multi_dot(): expected at least 2 tensors but got (", n, ").");
  std::vector<Tensor> factors;
  for (int64_t i = 0; i < n; ++i) {
    const Tensor& t = tensors[i];
    const bool end = i == 0 || i == n - 1;
    MICA_CHECK(t.ndim() == 2 || (end && t.ndim() == 1), "Tensor dimension is ", t.ndim(),
               ", expected 2 instead, for tensor (", i, ")", end ? ", or 1." : ".");
    factors.push_back(t.ndim() == 2 ? t : ops::unsqueeze(t, i == 0 ? 0 : -1));
    MICA_CHECK(i == 0 || factors[static_cast<size_t>(i) - 1].size(1) == factors.back().size(0), "Shapes ",
               ShapeText(tensors[i == 0 ? 0 : i - 1].sizes()), " and ", ShapeText(t.sizes()),
               " of neighbours have no product.");
  }
  // Least cost of the products i .. j, and where they are best divided.
  const auto count = static_cast<size_t>(n);
  std::vector<std::vector<double>> cost(count, std::vector<double>(count, 0));
  std::vector<std::vector<size_t>> cut(count, std::vector<size_t>(count, 0));
  for (size_t length = 1; length < count; ++length)
    for (size_t i = 0; i + length < count; ++i) {
      const size_t j = i + length;
      cost[i][j] = INFINITY;
      for (size_t k = i; k < j; ++k) {
        const double c = cost[i][k] + cost[k + 1][j] +
                         static_cast<double>(factors[i].size(0)) * static_cast<double>(factors[k].size(1)) *
                             static_cast<double>(factors[j].size(1));
        const bool from_left = count == 3 && c == cost[i][j];  // torch takes equal orders so
        if (c < cost[i][j] || from_left) {
          cost[i][j] = c;
          cut[i][j] = k;
        }
      }
    }
  const auto product = [&](const auto& self, size_t i, size_t j) -> Tensor {
    if (i == j) return factors[i];
    return ops::matmul(self(self, i, cut[i][j]), self(self, cut[i][j] + 1, j));
  };
  Tensor result = product(product, 0, count - 1);
  if (tensors[n - 1].ndim() == 1) result = ops::squeeze(result, -1);
  if (tensors[0].ndim() == 1) result = ops::squeeze(result, 0);
  return result;
}

}  // namespace mica::composite
