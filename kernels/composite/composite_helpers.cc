// Shapes, fills and conversions that composites share.
#include "mica/kernels/composite/composite_helpers.h"
#include "mica/ops/full.h"
#include "mica/ops/mean.h"
#include "mica/ops/nonzero.h"
#include "mica/ops/select.h"
#include "mica/ops/sum.h"
#include "mica/ops/to.h"
#include "mica/ops/zeros.h"

#include <algorithm>

namespace mica::composite {

Dims DimsOrAll(std::optional<IntSpan> dims, int64_t ndim) {
  if (dims && !dims->empty()) return WrapDims(*dims, ndim);
  Dims all;
  for (int64_t d = 0; d < ndim; ++d) all.push_back(d);
  return all;
}

int64_t CountOver(IntSpan sizes, const Dims& dims) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= sizes.empty() ? 1 : sizes[d];
  return count;
}

Dims KeptSizes(IntSpan sizes, const Dims& dims) {
  Dims kept = ToDims(sizes);
  for (const int64_t d : dims)
    if (!kept.empty()) kept[static_cast<size_t>(d)] = 1;
  return kept;
}

Tensor FullLike(const Tensor& self, IntSpan sizes, const Scalar& value) {
  return ops::full(sizes, value, self.dtype(), std::nullopt, self.device());
}
Tensor ZerosLike(const Tensor& self, IntSpan sizes) {
  return ops::zeros(sizes, self.dtype(), std::nullopt, self.device());
}

std::vector<Tensor> ExpandIndices(const Tensor& self, TensorSpan indices) {
  std::vector<Tensor> expanded;
  for (const Tensor& index : indices) {
    const auto at = static_cast<int64_t>(expanded.size());
    if (!index.defined()) {
      expanded.emplace_back();
      continue;
    }
    if (index.dtype() != DType::kBool && index.dtype() != DType::kU8) {
      MICA_CHECK_INDEX(IsInteger(index.dtype()), "Dtype (", Name(index.dtype()),
                       ") of an index is no integer and no bool.");
      expanded.push_back(Cast(index, DType::kI64));
      continue;
    }
    MICA_CHECK_INDEX(index.ndim() > 0, "A 0-d bool tensor is no index; expected at least one dimension.");
    for (int64_t d = 0; d < index.ndim(); ++d) {
      MICA_CHECK_INDEX(at + d < self.ndim() && index.sizes()[d] == self.sizes()[at + d], "Shape ",
                       ShapeText(index.sizes()), " of a mask at dimension (", at, ") does not fit shape ",
                       ShapeText(self.sizes()), " of the indexed tensor.");
    }
    const Tensor places = ops::nonzero(index);
    for (int64_t d = 0; d < index.ndim(); ++d) expanded.push_back(ops::select(places, 1, d));
  }
  MICA_CHECK_INDEX(static_cast<int64_t>(expanded.size()) <= self.ndim(), "Number of indices (",
                   expanded.size(), ") exceeds the number of dimensions (", self.ndim(),
                   ") of the indexed tensor.");
  return expanded;
}

Tensor ReduceLoss(const Tensor& loss, int64_t reduction) {
  if (reduction == 1) return ops::mean(loss);
  if (reduction == 2) return ops::sum(loss);
  MICA_CHECK_VALUE(reduction == 0, "Reduction (", reduction,
                   ") is unknown; expected 0 (none), 1 (mean) or 2 (sum).");
  return loss;
}

Dims Repeated(IntSpan list, int64_t n, int64_t otherwise) {
  if (list.empty()) return Dims(static_cast<size_t>(n), otherwise);
  if (list.size() == 1) return Dims(static_cast<size_t>(n), list[0]);
  MICA_CHECK(list.size() == n, "Number of values (", list.size(), ") is neither 1 nor (", n, ").");
  return ToDims(list);
}

DType StatisticsDType(DType dtype) { return IsFloating(dtype) && ItemSize(dtype) < 4 ? DType::kF32 : dtype; }
Tensor Cast(const Tensor& self, DType dtype) { return self.dtype() == dtype ? self : ops::to(self, dtype); }

}  // namespace mica::composite
