// Advanced indexing: bool and integer indices become int64 indices.
#include "dispatcher/plugins/host.h"
#include "mica/kernels/composite_declarations.h"
#include "mica/ops/_index.h"
#include "mica/ops/_index_put.h"
#include "mica/ops/masked_fill.h"
#include "mica/ops/nonzero.h"
#include "mica/ops/select.h"
#include "mica/ops/to.h"
#include "tensor/shape.h"

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
      MICA_CHECK_INDEX(
          IsInteger(index.dtype()),
          "tensors used as indices must be long, int, byte or bool tensors; this one has the dtype (",
          Name(index.dtype()), ").");
      expanded.push_back(index.dtype() == DType::kI64 ? index : ops::to(index, DType::kI64));
      continue;
    }
    if (index.dtype() == DType::kU8)
      HostWarn("indexing with dtype uint8 is now deprecated, please use a dtype bool instead.");
    MICA_CHECK_INDEX(index.ndim() > 0, "A 0-d bool tensor is no index; expected at least one dimension.");
    for (int64_t d = 0; d < index.ndim(); ++d) {
      MICA_CHECK_INDEX(at + d < self.ndim() && index.sizes()[d] == self.sizes()[at + d],
                       "The shape of the mask ", ShapeText(index.sizes()), " at index ", d,
                       " does not match the shape of the indexed tensor ", ShapeText(self.sizes()),
                       " at index ", at + d, ".");
    }
    const Tensor places = ops::nonzero(index);
    for (int64_t d = 0; d < index.ndim(); ++d) expanded.push_back(ops::select(places, 1, d));
  }
  MICA_CHECK_INDEX(static_cast<int64_t>(expanded.size()) <= self.ndim(),
                   "There are too many indices for tensor of dimension ", self.ndim(), " (got ",
                   expanded.size(), ").");
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
