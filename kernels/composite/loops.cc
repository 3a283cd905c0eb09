// Composites that repeat a step as often as an argument says.
#include "mica/kernels/composite_declarations.h"
#include "mica/ops/add.h"
#include "mica/ops/cat.h"
#include "mica/ops/clone.h"
#include "mica/ops/eye.h"
#include "mica/ops/linalg_inv.h"
#include "mica/ops/logical_xor.h"
#include "mica/ops/matmul.h"
#include "mica/ops/narrow.h"
#include "mica/ops/sub.h"
#include "mica/ops/zero.h"
#include "tensor/shape.h"

namespace mica::composite {
namespace {

// What diff puts before or after its input has the shape of it but along `dim`.
void CheckJoins(const Tensor& self, const Tensor& more, int64_t dim, const char* name) {
  if (!more.defined()) return;
  MICA_CHECK(more.ndim() == self.ndim(),
             "diff expects prepend or append to be the same dimension as input; `", name, "` has (",
             more.ndim(), ") dimensions and `self` (", self.ndim(), ").");
  for (int64_t d = 0; d < self.ndim(); ++d)
    MICA_CHECK(
        d == dim || more.size(d) == self.size(d),
        "diff expects the shape of tensor to prepend or append to match that of input except along the "
        "differencing dimension; size (",
        more.size(d), ") of dimension (", d, ") of `", name, "` differs from (", self.size(d), ").");
}

}  // namespace

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  MICA_CHECK(self.ndim() > 0, "diff expects input to be at least one-dimensional; `self` is 0-d.");
  MICA_CHECK(n >= 0, "order must be non-negative but got ", n, "; `n` is how often diff is taken.");
  dim = WrapDim(dim, self.ndim());
  CheckJoins(self, prepend, dim, "prepend");
  CheckJoins(self, append, dim, "append");
  if (n == 0) return ops::clone(self);
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

Tensor matrix_power(const Tensor& self, int64_t n) {
  MICA_CHECK(self.ndim() >= 2 && self.size(-1) == self.size(-2),
             "`self` must be batches of square matrices, but its shape is ", ShapeText(self.sizes()),
             "; it must have at least 2 dimensions, the last two of one size.");
  if (n == 0)  // depends on `self` with a gradient of zero
    return ops::add(ops::zero(self), ops::eye(self.size(-1), self.dtype(), std::nullopt, self.device()));
  if (n == 1) return ops::clone(self);
  Tensor base = n < 0 ? ops::linalg_inv(self) : self;
  Tensor result;
  const auto power = static_cast<uint64_t>(n);
  for (uint64_t k = n < 0 ? 0 - power : power; k > 0; k >>= 1) {
    if (k & 1) result = result.defined() ? ops::matmul(result, base) : base;
    if (k > 1) base = ops::matmul(base, base);
  }
  return result;
}

}  // namespace mica::composite
