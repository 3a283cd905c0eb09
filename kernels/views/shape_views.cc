// Views that keep every element: other sizes, or dimensions in another order.
#include <algorithm>

#include "kernels/views/view_helpers.h"
#include "mica/kernels/view_declarations.h"

namespace mica::views {

ViewSpec view(const Tensor& self, IntSpan size) {
  ViewSpec spec = First(self);
  Dims sizes = InferSize(size, self.numel());
  std::optional<Dims> strides = ComputeStride(self.sizes(), self.strides(), sizes);
  MICA_CHECK(strides,
             "The view size is not compatible with input tensor's size and stride (at least one dimension "
             "spans across two contiguous subspaces). Use .reshape(...) instead. The shape ",
             ShapeText(sizes), " is no view of a tensor with shape ", ShapeText(self.sizes()),
             " and strides ", ShapeText(self.strides()), ".");
  spec.sizes = std::move(sizes);
  spec.strides = *std::move(strides);
  return spec;
}

ViewSpec _reshape_alias(const Tensor& self, IntSpan size, IntSpan stride) {
  ViewSpec spec = First(self);
  MICA_CHECK(size.size() == stride.size(),
             "There is a mismatch in length of strides and shape: the number of sizes (", size.size(),
             ") differs from the number of strides (", stride.size(), ").");
  spec.sizes = ToDims(size);
  spec.strides = ToDims(stride);
  return spec;
}

ViewSpec alias(const Tensor& self) { return Whole(self); }
ViewSpec detach(const Tensor& self) { return Whole(self); }
ViewSpec _conj(const Tensor& self) {
  MICA_CHECK(IsComplex(self.dtype()), "_conj is a view of complex tensors; the dtype of `self` is (",
             Name(self.dtype()), "). conj() takes all.");
  return Flipped(self, keys::kConjugate);
}
ViewSpec _neg_view(const Tensor& self) {
  MICA_CHECK(self.dtype() != DType::kBool, "_neg_view is not supported on bool tensors; use logical_not().");
  return Flipped(self, keys::kNegative);
}

ViewSpec transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  ViewSpec spec = Whole(self);
  dim0 = WrapDim(dim0, self.ndim());
  dim1 = WrapDim(dim1, self.ndim());
  if (self.ndim() == 0) return spec;
  std::swap(spec.sizes[static_cast<size_t>(dim0)], spec.sizes[static_cast<size_t>(dim1)]);
  std::swap(spec.strides[static_cast<size_t>(dim0)], spec.strides[static_cast<size_t>(dim1)]);
  return spec;
}

ViewSpec t(const Tensor& self) {
  MICA_CHECK(self.ndim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", self.ndim(), "D.");
  return self.ndim() < 2 ? Whole(self) : transpose(self, 0, 1);
}

ViewSpec permute(const Tensor& self, IntSpan dims) {
  MICA_CHECK(dims.size() == self.ndim(),
             "The number of dimensions in the tensor input does not match the length of the desired ordering "
             "of dimensions i.e. input.dim() = ",
             self.ndim(), " is not equal to len(dims) = ", dims.size(), ".");
  const Dims order = WrapDims(dims, self.ndim());
  ViewSpec spec = Whole(self);
  for (size_t i = 0; i < order.size(); ++i) {
    spec.sizes[i] = self.sizes()[order[i]];
    spec.strides[i] = self.strides()[order[i]];
  }
  return spec;
}

ViewSpec expand(const Tensor& self, IntSpan size, bool) {
  ViewSpec spec = First(self);
  spec.strides = ExpandStrides(self.sizes(), self.strides(), size, &spec.sizes);
  return spec;
}

namespace {
ViewSpec SqueezeWhere(const Tensor& self, const Dims& dims) {
  ViewSpec spec = First(self);
  for (int64_t d = 0; d < self.ndim(); ++d) {
    const bool listed = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (listed && self.sizes()[d] == 1) continue;
    spec.sizes.push_back(self.sizes()[d]);
    spec.strides.push_back(self.strides()[d]);
  }
  return spec;
}
}  // namespace

ViewSpec squeeze(const Tensor& self) {
  Dims all;
  for (int64_t d = 0; d < self.ndim(); ++d) all.push_back(d);
  return SqueezeWhere(self, all);
}
ViewSpec squeeze_dim(const Tensor& self, int64_t dim) {
  return SqueezeWhere(self, {WrapDim(dim, self.ndim())});
}
ViewSpec squeeze_dims(const Tensor& self, IntSpan dim) {
  return SqueezeWhere(self, WrapDims(dim, self.ndim()));
}

ViewSpec unsqueeze(const Tensor& self, int64_t dim) {
  const int64_t n = self.ndim();
  dim = WrapDim(dim, n + 1);
  ViewSpec spec = Whole(self);
  const int64_t stride = dim < n ? self.sizes()[dim] * self.strides()[dim] : 1;
  spec.sizes.insert(spec.sizes.begin() + dim, 1);
  spec.strides.insert(spec.strides.begin() + dim, stride);
  return spec;
}

}  // namespace mica::views
