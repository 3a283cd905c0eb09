// Meta functions of operators that select elements and say where they were:
// extrema along a dimension, running extrema, sort, topk, searchsorted.
#include "kernels/meta/meta_helpers.h"
#include "mica/kernels/meta_declarations.h"

namespace mica::meta {
namespace {

void Extremum(MetaResult& result, const Tensor& self, int64_t dim, bool keepdim) {
  dim = WrapDim(dim, self.ndim());
  MICA_CHECK_INDEX(self.ndim() == 0 || self.sizes()[dim] > 0, "Expected reduction dim ", dim,
                   " to have non-zero size; the shape of `self` is ", ShapeText(self.sizes()), ".");
  const Dims sizes = self.ndim() == 0 ? Dims{} : ReducedSizes(self.sizes(), {dim}, keepdim);
  AddOutput(result, sizes, self.dtype(), self.device());
  AddOutput(result, sizes, DType::kI64, self.device());
  ComputeIn(result, self.dtype());
}

void RunningExtremum(MetaResult& result, const Tensor& self, int64_t dim) {
  WrapDim(dim, self.ndim());
  AddOutput(result, self.sizes(), self.dtype(), self.device());
  AddOutput(result, self.sizes(), DType::kI64, self.device());
  ComputeIn(result, self.dtype());
}

void CheckOrdered(const Tensor& self, const char* what) {
  MICA_CHECK(!IsComplex(self.dtype()), "Dtype (", Name(self.dtype()), ") has no order, which ", what,
             " needs; expected a real dtype.");
}

}  // namespace

void max_dim(MetaResult& result, const Tensor& self, int64_t dim, bool keepdim) {
  Extremum(result, self, dim, keepdim);
}
void min_dim(MetaResult& result, const Tensor& self, int64_t dim, bool keepdim) {
  Extremum(result, self, dim, keepdim);
}
void cummax(MetaResult& result, const Tensor& self, int64_t dim) { RunningExtremum(result, self, dim); }
void cummin(MetaResult& result, const Tensor& self, int64_t dim) { RunningExtremum(result, self, dim); }

void sort_stable(MetaResult& result, const Tensor& self, std::optional<bool>, int64_t dim, bool) {
  WrapDim(dim, self.ndim());
  CheckOrdered(self, "sort");
  AddLike(result, self);
  AddLike(result, self, DType::kI64);
}

void topk(MetaResult& result, const Tensor& self, int64_t k, int64_t dim, bool, bool) {
  dim = WrapDim(dim, self.ndim());
  CheckOrdered(self, "topk");
  const int64_t size = self.ndim() == 0 ? 1 : self.sizes()[dim];
  MICA_CHECK(k >= 0 && k <= size, "The selected index k out of range: `k` (", k, ") for the size (", size,
             ") of dimension (", dim, ").");
  Dims sizes = ToDims(self.sizes());
  if (!sizes.empty()) sizes[static_cast<size_t>(dim)] = k;
  AddOutput(result, sizes, self.dtype(), self.device());
  AddOutput(result, sizes, DType::kI64, self.device());
}

void searchsorted(MetaResult& result, const Tensor& sorted_sequence, const Tensor& self, bool out_int32,
                  bool right, std::optional<std::string_view> side, const Tensor& sorter) {
  MICA_CHECK(!side || *side == "left" || *side == "right", "side can only be 'left' or 'right' but got ",
             side ? std::string(*side) : "", ".");
  MICA_CHECK(!(side && *side == "left" && right),
             "side and right can't be set to opposites, got side of left while right was True.");
  MICA_CHECK(sorted_sequence.ndim() >= 1,
             "boundaries tensor should have positive dimension; `sorted_sequence` is 0-d.");
  CheckSameDType(sorted_sequence, self, "sorted_sequence", "self");
  CheckSameDevice(sorted_sequence, self, "sorted_sequence", "self");
  if (sorted_sequence.ndim() > 1) {
    const bool fits =
        sorted_sequence.ndim() == self.ndim() &&
        sorted_sequence.sizes().subspan(0, self.ndim() - 1) == self.sizes().subspan(0, self.ndim() - 1);
    MICA_CHECK(fits,
               "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and "
               "input value tensor must match, but `sorted_sequence` has the shape ",
               ShapeText(sorted_sequence.sizes()), " and `self` ", ShapeText(self.sizes()), ".");
  }
  MICA_CHECK(
      !sorter.defined() || (sorter.sizes() == sorted_sequence.sizes() && sorter.dtype() == DType::kI64),
      "boundary and sorter must have the same size, and sorter must be a tensor of long dtype; "
      "`sorted_sequence` has the shape ",
      ShapeText(sorted_sequence.sizes()), ".");
  AddOutput(result, self.sizes(), out_int32 ? DType::kI32 : DType::kI64, self.device());
}

}  // namespace mica::meta
