// Advanced indexing: bool and integer indices become int64 indices.
#include "mica/kernels/composite_declarations.h"
#include "mica/ops/_index.h"
#include "mica/ops/_index_put.h"
#include "mica/ops/masked_fill.h"
#include "mica/ops/nonzero.h"
#include "mica/ops/select.h"
#include "mica/ops/to.h"
#include "mica/tensor/shape.h"

namespace mica::composite {
namespace {

// int64, int32, ... index tensors as int64; bool and uint8 masks as the indices
// of their true elements; undefined ones stay.
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
      expanded.push_back(index.dtype() == DType::kI64 ? index : ops::to(index, DType::kI64));
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

}  // namespace

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

}  // namespace mica::composite
