// Distinct slices: rows are sorted by all their elements, the last first, each
// time keeping the order of equals; equal rows are neighbours then.
#include "mica/kernels/composite_declarations.h"
#include "mica/ops/arange.h"
#include "mica/ops/clone.h"
#include "mica/ops/cumsum.h"
#include "mica/ops/empty.h"
#include "mica/ops/index_select.h"
#include "mica/ops/movedim.h"
#include "mica/ops/reshape.h"
#include "mica/ops/scatter.h"
#include "mica/ops/select.h"
#include "mica/ops/sort.h"
#include "mica/ops/unique_consecutive.h"
#include "mica/ops/zeros.h"
#include "tensor/shape.h"

namespace mica::composite {

std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim, bool, bool return_inverse,
                                              bool return_counts) {
  MICA_CHECK_IMPLEMENTED(!self.device().is_meta(),
                         "unique_dim has results whose sizes follow from values, and meta has no values.");
  dim = WrapDim(dim, self.ndim());
  const Tensor nothing = ops::empty({0}, DType::kI64, std::nullopt, self.device());
  if (self.ndim() == 0) return ops::unique_consecutive(self, return_inverse, return_counts);
  const int64_t n = self.size(dim);
  int64_t empty = 0;
  for (const int64_t size : self.sizes()) empty += size == 0;
  MICA_CHECK(
      n == 0 || empty == 0,
      "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied: slices of ",
      ShapeText(self.sizes()), " along dimension (", dim, ") have no elements to tell them apart.");
  MICA_CHECK(
      n > 0 || empty == 1,
      "Number of zero sized dimensions is more than one, so unique cannot be applied along dimension (", dim,
      ") of the shape ", ShapeText(self.sizes()), ".");
  if (n == 0) return {ops::clone(self), nothing, nothing};
  const Tensor rows = ops::reshape(ops::movedim(self, dim, 0), {n, -1});
  Tensor order = ops::arange(n, DType::kI64, std::nullopt, self.device());
  for (int64_t c = rows.size(1) - 1; c >= 0; --c) {
    const Tensor column = ops::index_select(ops::select(rows, 1, c), 0, order);
    order = ops::index_select(order, 0, std::get<1>(ops::sort(column, true, 0, false)));
  }
  auto [values, place, counts] =
      ops::unique_consecutive(ops::index_select(self, dim, order), true, return_counts, dim);
  if (!return_inverse) return {values, nothing, counts};
  return {values, ops::scatter(ops::zeros({n}, DType::kI64, std::nullopt, self.device()), 0, order, place),
          counts};
}

}  // namespace mica::composite
