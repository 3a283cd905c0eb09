// Meta functions of gathering and scattering.
#include <algorithm>
#include <vector>

#include "kernels/meta/meta_helpers.h"
#include "mica/kernels/meta_declarations.h"
#include "tensor/dtype.h"

namespace mica::meta {
namespace {

// index and self (or src) must have as many dimensions, a 0-d tensor counting as
// one; sizes of index may not exceed those of `other` except along `except`.
void CheckIndexShape(const Tensor& index, const Tensor& other, int64_t except, const char* other_name) {
  const auto ndim = [](const Tensor& t) { return t.ndim() == 0 ? int64_t{1} : t.ndim(); };
  if (index.numel() == 0) return;
  MICA_CHECK(ndim(index) == ndim(other), "Index tensor must have the same number of dimensions as ",
             std::string_view(other_name) == "self" ? "input" : other_name, " tensor: `index` has ",
             index.ndim(), " and `", other_name, "` ", other.ndim(), ".");
  if (index.ndim() == 0 || other.ndim() == 0) return;
  for (int64_t d = 0; d < index.ndim(); ++d) {
    if (d == except) continue;
    MICA_CHECK(index.sizes()[d] <= other.sizes()[d], "Size does not match at dimension ", d,
               ": expected `index` ", ShapeText(index.sizes()), " to be no larger than `", other_name, "` ",
               ShapeText(other.sizes()), " apart from the indexed dimension; sizes (", index.sizes()[d],
               ") and (", other.sizes()[d], ").");
  }
}

void CheckScatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor* src) {
  dim = WrapDim(dim, self.ndim());
  if (index.numel() > 0) CheckIndexDType(index, "index");
  CheckSameDevice(self, index, "self", "index");
  CheckIndexShape(index, self, dim, "self");
  MICA_CHECK(index.numel() == 0 || self.ndim() == 0 || self.sizes()[dim] > 0, "Dimension (", dim,
             ") of `self` with shape ", ShapeText(self.sizes()), " has no elements to index.");
  if (!src) return;
  CheckSameDType(self, *src, "self", "src");
  CheckSameDevice(self, *src, "self", "src");
  CheckIndexShape(index, *src, -1, "src");
}

void CheckSliceIndex(const Tensor& self, int64_t& dim, const Tensor& index) {
  dim = WrapDim(dim, self.ndim());
  CheckIndexDType(index, "index");
  CheckSameDevice(self, index, "self", "index");
  MICA_CHECK_INDEX(index.ndim() <= 1, "Index is supposed to be a vector, but it has ", index.ndim(),
                   " dimensions.");
}

void CheckSlices(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  CheckSliceIndex(self, dim, index);
  CheckSameDType(self, source, "self", "source");
  CheckSameDevice(self, source, "self", "source");
  const int64_t count = index.numel();
  if (source.ndim() == 0 || self.ndim() == 0) {
    MICA_CHECK_INDEX(count == source.numel(), "Number of indices (", count,
                     ") should be equal to number of elements in source: (", source.numel(), ").");
    MICA_CHECK(source.ndim() <= 1, "Number of dimensions (", source.ndim(), ") of `source` is above that (",
               self.ndim(), ") of `self`.");
    MICA_CHECK(self.ndim() <= 1, "The source is 0-d and `self` has (", self.ndim(),
               ") dimensions; expected a slice for each index.");
    return;
  }
  MICA_CHECK(source.ndim() == self.ndim(), "Number of dimensions (", source.ndim(),
             ") of `source` differs from that (", self.ndim(), ") of `self`.");
  for (int64_t d = 0; d < self.ndim(); ++d) {
    const int64_t expected = d == dim ? count : self.sizes()[d];
    MICA_CHECK(source.sizes()[d] == expected, "Number of indices (", count,
               ") should be equal to source.size(dim): (", source.sizes()[dim], "), for dim: ", dim,
               ", and other sizes to be those of `self`: size (", source.sizes()[d], ") of dimension (", d,
               ") of `source` is not (", expected, ").");
  }
}

// The shape of self[indices] with int64 indices (undefined: the whole dimension).
Dims IndexedSizes(const Tensor& self, TensorSpan indices) {
  MICA_CHECK_INDEX(indices.size() <= self.ndim(), "Number of indices (", indices.size(),
                   ") exceeds the number of dimensions (", self.ndim(), ") of `self`.");
  Dims shape;
  bool any = false, adjacent = true;
  int64_t first = -1, last = -1;
  for (int64_t d = 0; d < indices.size(); ++d) {
    const Tensor& index = indices[d];
    if (!index.defined()) continue;
    MICA_CHECK_INDEX(index.dtype() == DType::kI64, "Dtype (", Name(index.dtype()), ") of index (", d,
                     ") is not int64.");
    CheckSameDevice(self, index, "self", "an index");
    for (int64_t i = 1; i <= std::min<int64_t>(IntSpan(shape).size(), index.ndim()); ++i) {
      const int64_t own = shape[shape.size() - static_cast<size_t>(i)], other = index.size(-i);
      MICA_CHECK_INDEX(!any || own == other || own == 1 || other == 1,
                       "shape mismatch: indexing tensors could not be broadcast together with shapes ",
                       ShapeText(shape), " and ", ShapeText(index.sizes()), "; the latter is index (", d,
                       ").");
    }
    shape = any ? BroadcastShapes(shape, index.sizes(), "an index", "another index") : ToDims(index.sizes());
    if (!any)
      first = d;
    else
      adjacent = adjacent && d == last + 1;
    last = d;
    any = true;
  }
  Dims sizes;
  if (!any) return ToDims(self.sizes());
  if (!adjacent) sizes = shape;
  for (int64_t d = 0; d < self.ndim(); ++d) {
    const bool indexed = d < indices.size() && indices[d].defined();
    if (adjacent && d == first) sizes.insert(sizes.end(), shape.begin(), shape.end());
    if (!indexed)
      sizes.push_back(self.sizes()[d]);
    else
      MICA_CHECK_INDEX(self.sizes()[d] > 0 || CheckedNumel(shape) == 0,
                       "index is out of bounds for dimension with size 0: dimension (", d,
                       ") of `self` with shape ", ShapeText(self.sizes()), " has no elements to index.");
  }
  return sizes;
}

// The order of an elementwise result of what is indexed, which does not move along the result's
// indexed dimensions, and of the indices, which do not move along the others.
Dims IndexedStrides(const Tensor& self, TensorSpan indices, const Dims& sizes) {
  const auto contiguous = [](const Tensor& t) { return !t.defined() || t.is_contiguous(); };
  if (self.is_contiguous() && std::all_of(indices.begin(), indices.end(), contiguous)) return {};
  int64_t first = -1, last = -1, defined = 0, ndim = 0;
  for (int64_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) continue;
    if (first < 0) first = d;
    last = d;
    ++defined;
    ndim = std::max(ndim, indices[d].ndim());
  }
  const int64_t begin = defined == last - first + 1 ? std::max<int64_t>(first, 0) : 0;
  std::vector<Dims> strides(1);
  for (int64_t d = 0; d < self.ndim(); ++d)
    if (d >= indices.size() || !indices[d].defined()) strides[0].push_back(self.strides()[d]);
  strides[0].insert(strides[0].begin() + begin, static_cast<size_t>(ndim), 0);
  for (const Tensor& index : indices) {
    if (!index.defined()) continue;
    Dims& own = strides.emplace_back(sizes.size(), 0);
    for (int64_t d = 0; d < index.ndim(); ++d)
      if (index.sizes()[d] > 1)
        own[static_cast<size_t>(begin + ndim - index.ndim() + d)] = index.strides()[d] * index.itemsize();
  }
  std::vector<Layouted> operands;
  for (const Dims& s : strides) operands.push_back({sizes, s});
  const Dims order = ElementwiseStrides(sizes, Span<Layouted>(operands.data(), std::ssize(operands)));
  return IsContiguous(sizes, order) ? Dims() : order;
}

}  // namespace

void gather(MetaResult& result, const Tensor& self, int64_t dim, const Tensor& index, bool) {
  dim = WrapDim(dim, self.ndim());
  if (index.numel() > 0) CheckIndexDType(index, "index");
  CheckSameDevice(self, index, "self", "index");
  CheckIndexShape(index, self, dim, "self");
  AddOutput(result, index.sizes(), self.dtype(), self.device());
}

void index_select(MetaResult& result, const Tensor& self, int64_t dim, const Tensor& index) {
  CheckSliceIndex(self, dim, index);
  Dims sizes = ToDims(self.sizes());
  if (!sizes.empty())
    sizes[static_cast<size_t>(dim)] = index.numel();
  else
    MICA_CHECK(index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ",
               index.numel(), " value(s).");
  MICA_CHECK(index.numel() == 0 || self.ndim() <= 1 || self.sizes()[dim] > 0 || self.device().is_meta(),
             "index_select(): self indexing axis dim should be positive: size (0) of dimension (", dim,
             ") has no element for (", index.numel(), ") indices.");
  AddOutput(result, sizes, self.dtype(), self.device());
}

void _index(MetaResult& result, const Tensor& self, TensorSpan indices) {
  const Dims sizes = IndexedSizes(self, indices);
  AddOutput(result, sizes, self.dtype(), self.device()).strides = IndexedStrides(self, indices, sizes);
}

void _index_put(MetaResult& result, const Tensor& self, TensorSpan indices, const Tensor& values, bool) {
  const Dims sizes = IndexedSizes(self, indices);
  MICA_CHECK(CanExpandTo(values.sizes(), sizes), "shape mismatch: value tensor of shape ",
             ShapeText(values.sizes()), " cannot be broadcast to indexing result of shape ", ShapeText(sizes),
             ".");
  MICA_CHECK(self.dtype() == values.dtype(),
             "Index put requires the source and destination dtypes match, got ", ScalarTypeName(self.dtype()),
             " for the destination and ", ScalarTypeName(values.dtype()),
             " for the source; `self` has the dtype (", Name(self.dtype()), ") and `values` the dtype (",
             Name(values.dtype()), ").");
  CheckSameDevice(self, values, "self", "values");
  AddLike(result, self);
}

void scatter_src(MetaResult& result, const Tensor& self, int64_t dim, const Tensor& index,
                 const Tensor& src) {
  CheckScatter(self, dim, index, &src);
  AddOutput(result, self.sizes(), self.dtype(), self.device());
}
void scatter_value(MetaResult& result, const Tensor& self, int64_t dim, const Tensor& index,
                   const Scalar& value) {
  CheckScatter(self, dim, index, nullptr);
  CheckInRange(value, self.dtype(), "value");
  AddOutput(result, self.sizes(), self.dtype(), self.device());
}
void scatter_add(MetaResult& result, const Tensor& self, int64_t dim, const Tensor& index,
                 const Tensor& src) {
  CheckScatter(self, dim, index, &src);
  AddOutput(result, self.sizes(), self.dtype(), self.device());
}
void scatter_reduce(MetaResult& result, const Tensor& self, int64_t dim, const Tensor& index,
                    const Tensor& src, std::string_view reduce, bool) {
  CheckScatter(self, dim, index, &src);
  MICA_CHECK(reduce == "sum" || reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
             "Reduction (", std::string(reduce), ") is unknown; expected sum, prod, mean, amax or amin.");
  MICA_CHECK_IMPLEMENTED(!(IsComplex(self.dtype()) && (reduce == "amax" || reduce == "amin")),
                         "Operator mica::scatter_reduce does not support the dtype (", Name(self.dtype()),
                         ") with the reduction (", std::string(reduce), "); complex numbers have no order.");
  AddOutput(result, self.sizes(), self.dtype(), self.device());
}
void index_add(MetaResult& result, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
               const Scalar&) {
  CheckSlices(self, dim, index, source);
  AddOutput(result, self.sizes(), self.dtype(), self.device());
}
void index_copy(MetaResult& result, const Tensor& self, int64_t dim, const Tensor& index,
                const Tensor& source) {
  CheckSlices(self, dim, index, source);
  AddOutput(result, self.sizes(), self.dtype(), self.device());
}

void masked_scatter(MetaResult& result, const Tensor& self, const Tensor& mask, const Tensor& source) {
  MICA_CHECK(mask.dtype() == DType::kBool, "Dtype (", Name(mask.dtype()), ") of `mask` is not bool.");
  CheckSameDType(self, source, "self", "source");
  CheckSameDevice(self, mask, "self", "mask");
  AddOutput(result, BroadcastShapes(self.sizes(), mask.sizes(), "self", "mask"), self.dtype(), self.device());
}

void embedding(MetaResult& result, const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  CheckDims(weight, 2, "weight");
  CheckIndexDType(indices, "indices");
  CheckSameDevice(weight, indices, "weight", "indices");
  Dims sizes = ToDims(indices.sizes());
  sizes.push_back(weight.sizes()[1]);
  AddOutput(result, sizes, weight.dtype(), weight.device());
}
void embedding_dense_backward(MetaResult& result, const Tensor& grad_output, const Tensor& indices,
                              int64_t num_weights, int64_t, bool) {
  CheckIndexDType(indices, "indices");
  MICA_CHECK(grad_output.ndim() == indices.ndim() + 1, "Number of dimensions (", grad_output.ndim(),
             ") of `grad_output` is not one more than that (", indices.ndim(), ") of `indices`.");
  for (int d = 0; d < indices.ndim(); ++d)
    MICA_CHECK(grad_output.sizes()[d] == indices.sizes()[d], "Shape ", ShapeText(grad_output.sizes()),
               " of `grad_output` is not shape ", ShapeText(indices.sizes()),
               " of `indices` and a row for each of them.");
  CheckSameDevice(grad_output, indices, "grad_output", "indices");
  AddOutput(result, {num_weights, grad_output.sizes()[grad_output.ndim() - 1]}, grad_output.dtype(),
            grad_output.device());
}

namespace {
// What the loss and its gradient expect of their arguments.
void CheckNll(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction) {
  MICA_CHECK(self.ndim() == 1 || self.ndim() == 2, "Number of dimensions (", self.ndim(),
             ") of `self` is not 1 or 2; expected (batch,) classes.");
  MICA_CHECK_IMPLEMENTED(IsFloating(self.dtype()), "Operator nll_loss does not support the dtype (",
                         Name(self.dtype()), ") of `self`.");
  MICA_CHECK(
      target.dtype() == DType::kI64 || target.dtype() == DType::kU8,
      "expected target dtype to be Long or Byte (int64 or uint8 classes), but the dtype of `target` is (",
      Name(target.dtype()), ").");
  MICA_CHECK(target.ndim() == self.ndim() - 1 && (self.ndim() == 1 || target.sizes()[0] == self.sizes()[0]),
             "Shape ", ShapeText(target.sizes()), " of `target` does not fit shape ", ShapeText(self.sizes()),
             " of `self`; expected one class for each row.");
  MICA_CHECK(!weight.defined() || (weight.ndim() == 1 && weight.sizes()[0] == self.sizes()[self.ndim() - 1]),
             "Shape ", weight.defined() ? ShapeText(weight.sizes()) : "",
             " of `weight` is not one number for each of the (", self.sizes()[self.ndim() - 1], ") classes.");
  CheckSameDevice(self, target, "self", "target");
  MICA_CHECK_VALUE(reduction >= 0 && reduction <= 2, "Reduction (", reduction,
                   ") is unknown; expected 0 (none), 1 (mean) or 2 (sum).");
}
}  // namespace

void nll_loss_forward(MetaResult& result, const Tensor& self, const Tensor& target, const Tensor& weight,
                      int64_t reduction, int64_t) {
  CheckNll(self, target, weight, reduction);
  const bool each = reduction == 0 && self.ndim() == 2;
  AddOutput(result, each ? self.sizes().subspan(0, 1) : IntSpan(), self.dtype(), self.device());
  AddOutput(result, {}, self.dtype(), self.device());
}
void _multilabel_margin(MetaResult& result, const Tensor& self, const Tensor& target) {
  const int64_t classes = self.ndim() - 1;
  MICA_CHECK(self.ndim() > 0 && self.sizes() == target.sizes(), "Shapes ", ShapeText(self.sizes()),
             " of `self` and ", ShapeText(target.sizes()), " of `target` are not the same rows of classes.");
  MICA_CHECK_IMPLEMENTED(IsFloating(self.dtype()), "multilabel_margin_loss does not support the dtype (",
                         Name(self.dtype()), ") of `self`; expected a real floating one.");
  MICA_CHECK(IsInteger(target.dtype()),
             "multilabel_margin_loss expects classes of an integer dtype, but `target` has dtype (",
             Name(target.dtype()), ").");
  CheckSameDevice(self, target, "self", "target");
  AddOutput(result, self.sizes().subspan(0, classes), self.dtype(), self.device());
  for (int i = 0; i < 2; ++i) AddOutput(result, self.sizes(), self.dtype(), self.device());
}
void nll_loss_backward(MetaResult& result, const Tensor& grad_output, const Tensor& self,
                       const Tensor& target, const Tensor& weight, int64_t reduction, int64_t,
                       const Tensor& total_weight) {
  CheckNll(self, target, weight, reduction);
  const bool each = reduction == 0 && self.ndim() == 2;
  MICA_CHECK(each ? grad_output.sizes() == self.sizes().subspan(0, 1) : grad_output.numel() == 1, "Shape ",
             ShapeText(grad_output.sizes()),
             " of `grad_output` is not that of the loss of `self` with shape ", ShapeText(self.sizes()), ".");
  MICA_CHECK(total_weight.numel() == 1, "Number of elements (", total_weight.numel(),
             ") of `total_weight` is not 1.");
  CheckSameDevice(grad_output, self, "grad_output", "self");
  AddOutput(result, self.sizes(), self.dtype(), self.device());
}

}  // namespace mica::meta
