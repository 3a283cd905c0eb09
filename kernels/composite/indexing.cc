// Composites of indexing: bool and integer indices become int64 indices, and the
// small operators over gather, scatter and sort.
#include "mica/kernels/composite/composite_helpers.h"
#include "mica/ops/_index.h"
#include "mica/ops/_index_put.h"
#include "mica/ops/add.h"
#include "mica/ops/any.h"
#include "mica/ops/clone.h"
#include "mica/ops/eq.h"
#include "mica/ops/expand.h"
#include "mica/ops/fill.h"
#include "mica/ops/full_like.h"
#include "mica/ops/gather.h"
#include "mica/ops/gt.h"
#include "mica/ops/index_copy.h"
#include "mica/ops/index_select.h"
#include "mica/ops/isnan.h"
#include "mica/ops/item.h"
#include "mica/ops/logical_not.h"
#include "mica/ops/lt.h"
#include "mica/ops/masked_fill.h"
#include "mica/ops/max.h"
#include "mica/ops/min.h"
#include "mica/ops/narrow.h"
#include "mica/ops/nonzero.h"
#include "mica/ops/reshape.h"
#include "mica/ops/rsub.h"
#include "mica/ops/scatter.h"
#include "mica/ops/select.h"
#include "mica/ops/sort.h"
#include "mica/ops/squeeze.h"
#include "mica/ops/sum.h"
#include "mica/ops/unbind.h"
#include "mica/ops/unsqueeze.h"
#include "mica/ops/where.h"
#include "mica/ops/zeros.h"

namespace mica::composite {

Tensor index(const Tensor& self, TensorSpan indices) {
  return ops::_index(self, ExpandIndices(self, indices));
}

Tensor index_put(const Tensor& self, TensorSpan indices, const Tensor& values, bool accumulate) {
  return ops::_index_put(self, ExpandIndices(self, indices), values, accumulate);
}
void index_put_(const Tensor& self, TensorSpan indices, const Tensor& values, bool accumulate) {
  const bool one_mask = indices.size() == 1 && indices[0].defined() && indices[0].dtype() == DType::kBool &&
                        values.ndim() == 0 && !accumulate;
  if (one_mask && indices[0].sizes() == self.sizes()) {
    ops::masked_fill_(self, indices[0], values);
    return;
  }
  ops::_index_put_(self, ExpandIndices(self, indices), values, accumulate);
}

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  if (!dim) return ops::gather(ops::reshape(self, {-1}), 0, ops::reshape(indices, {-1}));
  MICA_CHECK(self.ndim() == indices.ndim(), "Number of dimensions (", indices.ndim(),
             ") of `indices` differs from that (", self.ndim(), ") of `self`.");
  const int64_t d = WrapDim(*dim, self.ndim());
  if (self.ndim() == 0) return ops::gather(self, 0, indices);
  Dims of_self = ToDims(self.sizes()), of_indices = ToDims(indices.sizes());
  of_self[static_cast<size_t>(d)] = of_indices[static_cast<size_t>(d)] = 1;
  Dims shape = BroadcastShapes(of_self, of_indices, "self", "indices");
  Dims self_shape = shape, index_shape = shape;
  self_shape[static_cast<size_t>(d)] = self.sizes()[d];
  index_shape[static_cast<size_t>(d)] = indices.sizes()[d];
  return ops::gather(ops::expand(self, self_shape), d, ops::expand(indices, index_shape));
}
Tensor take(const Tensor& self, const Tensor& index) {
  const Tensor flat = ops::reshape(self, {-1});
  const Tensor i = ops::reshape(index, {-1});
  const Tensor places = ops::where(ops::lt(i, Scalar(0)), ops::add(i, Scalar(flat.numel())), i);
  return ops::reshape(ops::index_select(flat, 0, places), index.sizes());
}

Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  if (self.ndim() == 0) return ops::fill(self, value);
  Dims sizes = ToDims(self.sizes());
  sizes[static_cast<size_t>(WrapDim(dim, self.ndim()))] = index.numel();
  return ops::index_copy(self, dim, index, FullLike(self, sizes, value));
}

std::vector<Tensor> nonzero_numpy(const Tensor& self) {
  const Tensor x = self.ndim() == 0 ? ops::reshape(self, {1}) : self;
  return ops::unbind(ops::nonzero(x), 1);
}
Tensor argwhere(const Tensor& self) { return ops::nonzero(self); }

std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim, bool descending) {
  return ops::op::sort_stable::call(self, false, dim, descending);
}
Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(sort(self, dim, descending));
}
Tensor argsort_stable(const Tensor& self, bool stable, int64_t dim, bool descending) {
  return std::get<1>(ops::op::sort_stable::call(self, stable, dim, descending));
}

std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  const int64_t size = self.ndim() == 0 ? 1 : self.size(dim);
  MICA_CHECK(k >= 1 && k <= size, "Rank `k` (", k, ") is out of range for the size (", size,
             ") of dimension (", dim, ").");
  if (self.ndim() == 0) return {ops::clone(self), ops::zeros({}, DType::kI64, std::nullopt, self.device())};
  const auto [values, indices] = sort(self, dim, false);
  const Tensor value = ops::select(values, dim, k - 1), place = ops::select(indices, dim, k - 1);
  return keepdim ? std::tuple(ops::unsqueeze(value, dim), ops::unsqueeze(place, dim))
                 : std::tuple(ops::clone(value), ops::clone(place));
}

std::tuple<Tensor, Tensor> median_dim(const Tensor& self, int64_t dim, bool keepdim) {
  if (self.ndim() == 0) return kthvalue(self, 1, 0, keepdim);
  const int64_t size = self.size(dim);
  MICA_CHECK_INDEX(size > 0, "Dimension (", dim, ") has no elements, so that there is no median.");
  const auto [values, indices] = sort(self, dim, false);
  // NaN sorts last: where there is one, the last element is the result.
  const Tensor middle = ops::narrow(values, dim, (size - 1) / 2, 1),
               place = ops::narrow(indices, dim, (size - 1) / 2, 1);
  const Tensor count = ops::sum(ops::isnan(values), IntSpan(&dim, 1), true);
  const Tensor has_nan = ops::gt(count, Scalar(0));
  const Tensor at =
      ops::where(has_nan, ops::rsub(count, Scalar(size)), ops::full_like(count, Scalar((size - 1) / 2)));
  Tensor value = ops::gather(values, dim, at), where = ops::gather(indices, dim, at);
  if (!keepdim) {
    value = ops::squeeze(value, dim);
    where = ops::squeeze(where, dim);
  }
  return {value, where};
}
Tensor median(const Tensor& self) {
  MICA_CHECK(self.numel() > 0, "`self` has no elements, so that there is no median.");
  return std::get<0>(median_dim(ops::reshape(self, {-1}), 0, false));
}

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  const Tensor tests = ops::reshape(test_elements, {-1});
  Tensor found = tests.numel() == 0
                     ? ops::zeros(elements.sizes(), DType::kBool, std::nullopt, elements.device())
                     : ops::op::any_dim::call(ops::eq(ops::unsqueeze(elements, -1), tests), -1, false);
  return invert ? ops::logical_not(found) : found;
}

Tensor one_hot(const Tensor& self, int64_t num_classes) {
  MICA_CHECK(self.dtype() == DType::kI64, "Dtype (", Name(self.dtype()),
             ") of one_hot's classes is not int64.");
  MICA_CHECK(self.numel() > 0 || num_classes > 0,
             "Number of classes cannot be read from a tensor without elements; give `num_classes`.");
  if (self.numel() > 0 && !self.device().is_meta()) {
    const int64_t least = ops::item(ops::min(self)).ToInt(), largest = ops::item(ops::max(self)).ToInt();
    MICA_CHECK(least >= 0, "Class (", least, ") is negative; expected 0 or more.");
    if (num_classes == -1) num_classes = largest + 1;
    MICA_CHECK(largest < num_classes, "Class (", largest, ") is not below the number of classes (",
               num_classes, ").");
  }
  MICA_CHECK(num_classes > 0, "Number of classes (", num_classes, ") is not positive.");
  Dims sizes = ToDims(self.sizes());
  sizes.push_back(num_classes);
  return ops::scatter(ops::zeros(sizes, DType::kI64, std::nullopt, self.device()), -1,
                      ops::unsqueeze(self, -1), Scalar(1));
}

}  // namespace mica::composite
