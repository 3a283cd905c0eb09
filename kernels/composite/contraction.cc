// Composites of contraction: matmul and what else becomes mm, bmm, mv or dot.
#include <algorithm>

#include "mica/kernels/composite/composite_helpers.h"
#include "mica/ops/add.h"
#include "mica/ops/addmm.h"
#include "mica/ops/bmm.h"
#include "mica/ops/conj.h"
#include "mica/ops/diagonal.h"
#include "mica/ops/dot.h"
#include "mica/ops/expand.h"
#include "mica/ops/eye.h"
#include "mica/ops/linalg_det.h"
#include "mica/ops/linalg_inv.h"
#include "mica/ops/matmul.h"
#include "mica/ops/mm.h"
#include "mica/ops/mul.h"
#include "mica/ops/mv.h"
#include "mica/ops/outer.h"
#include "mica/ops/permute.h"
#include "mica/ops/reshape.h"
#include "mica/ops/roll.h"
#include "mica/ops/squeeze.h"
#include "mica/ops/sub.h"
#include "mica/ops/sum.h"
#include "mica/ops/t.h"
#include "mica/ops/tensordot.h"
#include "mica/ops/unsqueeze.h"

namespace mica::composite {

Tensor vdot(const Tensor& self, const Tensor& other) { return ops::dot(ops::conj(self), other); }

namespace {
// beta * self + alpha * product; `self` is not read where beta is 0, so that NaN
// in it does not spread.
Tensor Combine(const Tensor& self, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  const Tensor scaled = alpha.Equals(Scalar(1)) ? product : ops::mul(product, alpha);
  if (beta.Equals(Scalar(0))) return scaled;
  const DType dtype = ResultType().Add(self).Add(product).dtype();
  return Cast(ops::add(beta.Equals(Scalar(1)) ? self : ops::mul(self, beta), scaled), dtype);
}
}  // namespace

Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
             const Scalar& alpha) {
  return Combine(self, ops::mv(mat, vec), beta, alpha);
}
Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
              const Scalar& alpha) {
  return Combine(self, ops::sum(ops::bmm(batch1, batch2), IntSpan({0}), false, batch1.dtype()), beta, alpha);
}
Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  return Combine(self, ops::outer(vec1, vec2), beta, alpha);
}
Tensor outer(const Tensor& self, const Tensor& vec2) {
  MICA_CHECK(self.ndim() == 1 && vec2.ndim() == 1, "Shapes ", ShapeText(self.sizes()), " and ",
             ShapeText(vec2.sizes()), " are not those of two vectors.");
  return ops::mul(ops::unsqueeze(self, 1), vec2);
}
Tensor ger(const Tensor& self, const Tensor& vec2) { return outer(self, vec2); }

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.ndim() == 0 || other.ndim() == 0) return ops::mul(self, other);
  const int64_t last_self = -1, last_other = -1;
  return ops::tensordot(self, other, IntSpan(&last_self, 1), IntSpan(&last_other, 1));
}

Tensor matmul(const Tensor& self, const Tensor& other) {
  const int64_t a = self.ndim(), b = other.ndim();
  MICA_CHECK(a > 0 && b > 0, "Shapes ", ShapeText(self.sizes()), " and ", ShapeText(other.sizes()),
             " have no matrix product; expected at least one dimension each.");
  if (a == 1 && b == 1) return ops::dot(self, other);
  if (a == 2 && b == 1) return ops::mv(self, other);
  if (a == 1 && b == 2) return ops::mv(ops::t(other), self);
  if (a == 2 && b == 2) return ops::mm(self, other);
  if (a >= 3 && b <= 2) {  // the batch of `self` becomes rows
    const Tensor rows = ops::reshape(self, {-1, self.sizes()[a - 1]});
    Dims sizes = ToDims(self.sizes().subspan(0, a - 1));
    if (b == 2) sizes.push_back(other.sizes()[1]);
    MICA_CHECK(self.numel() != 0 || self.sizes()[a - 1] != 0,
               "Size (0) of the last dimension of `self` leaves nothing to add up in a batch.");
    return ops::reshape(b == 2 ? ops::mm(rows, other) : ops::mv(rows, other), sizes);
  }
  const Tensor left = a == 1 ? ops::unsqueeze(self, 0) : self;
  const Tensor right = b == 1 ? ops::unsqueeze(other, 1) : other;
  const int64_t m = left.ndim(), n = right.ndim();
  Dims batch =
      BroadcastShapes(left.sizes().subspan(0, m - 2), right.sizes().subspan(0, n - 2), "self", "other");
  const auto flattened = [&batch](const Tensor& t) {
    Dims grown = batch;
    const int64_t rows = t.sizes()[t.ndim() - 2], columns = t.sizes()[t.ndim() - 1];
    grown.push_back(rows);
    grown.push_back(columns);
    return ops::reshape(ops::expand(t, grown), {CheckedNumel(batch), rows, columns});
  };
  Dims sizes = batch;
  if (a > 1) sizes.push_back(left.sizes()[m - 2]);
  if (b > 1) sizes.push_back(right.sizes()[n - 1]);
  return ops::reshape(ops::bmm(flattened(left), flattened(right)), sizes);
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (weight.ndim() == 1) {
    const Tensor product = ops::matmul(input, weight);
    return bias.defined() ? ops::add(product, bias) : product;
  }
  MICA_CHECK(weight.ndim() == 2, "Number of dimensions (", weight.ndim(),
             ") of `weight` is not 2; expected [out_features, in_features].");
  MICA_CHECK(input.ndim() > 0 && input.size(-1) == weight.sizes()[1], "Shape ", ShapeText(input.sizes()),
             " of `input` does not end in (", weight.sizes()[1],
             "), the number of input features of `weight` with shape ", ShapeText(weight.sizes()), ".");
  if (input.ndim() == 2 && bias.defined()) return ops::addmm(bias, input, ops::t(weight));
  const Tensor product = ops::matmul(input, ops::t(weight));
  return bias.defined() ? ops::add(product, bias) : product;
}

Tensor tensordot(const Tensor& self, const Tensor& other, IntSpan dims_self, IntSpan dims_other) {
  MICA_CHECK(dims_self.size() == dims_other.size(), "Number of `dims_self` (", dims_self.size(),
             ") differs from that of `dims_other` (", dims_other.size(), ").");
  const Dims left = WrapDims(dims_self, self.ndim()), right = WrapDims(dims_other, other.ndim());
  int64_t together = 1;
  for (size_t i = 0; i < left.size(); ++i) {
    MICA_CHECK(self.sizes()[left[i]] == other.sizes()[right[i]], "Size (", self.sizes()[left[i]],
               ") of dimension (", left[i], ") of `self` differs from size (", other.sizes()[right[i]],
               ") of dimension (", right[i], ") of `other`.");
    together *= self.sizes()[left[i]];
  }
  Dims order_self, order_other(right), sizes;
  const auto is_in = [](const Dims& dims, int64_t d) {
    return std::find(dims.begin(), dims.end(), d) != dims.end();
  };
  int64_t rows = 1, columns = 1;
  for (int64_t d = 0; d < self.ndim(); ++d) {
    if (is_in(left, d)) continue;
    order_self.push_back(d);
    sizes.push_back(self.sizes()[d]);
    rows *= self.sizes()[d];
  }
  for (int64_t d = 0; d < other.ndim(); ++d) {
    if (is_in(right, d)) continue;
    order_other.push_back(d);
    sizes.push_back(other.sizes()[d]);
    columns *= other.sizes()[d];
  }
  order_self.insert(order_self.end(), left.begin(), left.end());
  const Tensor a = ops::reshape(ops::permute(self, order_self), {rows, together});
  const Tensor b = ops::reshape(ops::permute(other, order_other), {together, columns});
  return ops::reshape(ops::mm(a, b), sizes);
}

Tensor trace(const Tensor& self) {
  MICA_CHECK(self.ndim() == 2, "Number of dimensions (", self.ndim(),
             ") of `self` is not 2; expected a matrix.");
  return ops::sum(ops::diagonal(self));
}

Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  MICA_CHECK(self.ndim() == other.ndim(), "Number of dimensions (", self.ndim(),
             ") of `self` differs from that (", other.ndim(), ") of `other`.");
  MICA_CHECK(self.size(dim) == 3 && other.size(dim) == 3, "Size (", self.size(dim), ") or (", other.size(dim),
             ") of dimension (", dim, ") is not 3; a cross product needs vectors of three elements.");
  const int64_t d = WrapDim(dim, self.ndim());
  const auto turned = [d](const Tensor& t, int64_t by) {
    return ops::roll(t, IntSpan(&by, 1), IntSpan(&d, 1));
  };
  const Dims shape = BroadcastShapes(self.sizes(), other.sizes());
  const Tensor a = ops::expand(self, shape), b = ops::expand(other, shape);
  return ops::sub(ops::mul(turned(a, -1), turned(b, -2)), ops::mul(turned(a, -2), turned(b, -1)));
}
Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  if (dim) return linalg_cross(self, other, *dim);
  for (int64_t d = 0; d < self.ndim(); ++d)
    if (self.sizes()[d] == 3) return linalg_cross(self, other, d);
  MICA_THROW(kRuntime, "Shape ", ShapeText(self.sizes()),
             " has no dimension of size 3, which a cross product needs.");
}

Tensor kron(const Tensor& self, const Tensor& other) {
  const int64_t n = std::max(self.ndim(), other.ndim());
  Dims a, b, sizes;
  for (int64_t d = 0; d < n; ++d) {
    const int64_t x = d < n - self.ndim() ? 1 : self.sizes()[d - (n - self.ndim())];
    const int64_t y = d < n - other.ndim() ? 1 : other.sizes()[d - (n - other.ndim())];
    a.push_back(x);
    a.push_back(1);
    b.push_back(1);
    b.push_back(y);
    sizes.push_back(x * y);
  }
  return ops::reshape(ops::mul(ops::reshape(self, a), ops::reshape(other, b)), sizes);
}

Tensor matrix_power(const Tensor& self, int64_t n) {
  MICA_CHECK(self.ndim() >= 2 && self.size(-1) == self.size(-2), "Matrices with shape ",
             ShapeText(self.sizes()), " are not square.");
  if (n == 0)
    return ops::expand(ops::eye(self.size(-1), self.dtype(), std::nullopt, self.device()), self.sizes());
  Tensor base = n < 0 ? ops::linalg_inv(self) : self;
  Tensor result;
  for (int64_t k = n < 0 ? -n : n; k > 0; k >>= 1) {
    if (k & 1) result = result.defined() ? ops::matmul(result, base) : base;
    if (k > 1) base = ops::matmul(base, base);
  }
  return result;
}

Tensor linalg_solve(const Tensor& A, const Tensor& B, bool left) {
  const bool vector =
      B.ndim() == 1 || (A.ndim() - 1 == B.ndim() && B.sizes() == A.sizes().subspan(0, A.ndim() - 1));
  const Tensor b = vector ? ops::unsqueeze(B, -1) : B;
  const Tensor inverse = ops::linalg_inv(A);
  const Tensor x = left || vector ? ops::matmul(inverse, b) : ops::matmul(b, inverse);
  return vector ? ops::squeeze(x, -1) : x;
}
Tensor inverse(const Tensor& self) { return ops::linalg_inv(self); }
Tensor det(const Tensor& self) { return ops::linalg_det(self); }

}  // namespace mica::composite
