// Views of a part of a tensor: select, slice, unfold, diagonal, as_strided.
#include <algorithm>
#include <limits>

#include "mica/kernels/view_declarations.h"
#include "mica/kernels/views/view_helpers.h"

namespace mica::views {

namespace {
// The stride of every `step`-th element. It wraps where one element is left, which needs none.
int64_t Stepped(int64_t stride, int64_t step) {
  return static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(step));
}
}  // namespace

ViewSpec select(const Tensor& self, int64_t dim, int64_t index) {
  MICA_CHECK_INDEX(self.ndim() > 0,
                   "A 0-d tensor has no dimension to select from; expected at least one dimension.");
  dim = WrapDim(dim, self.ndim());
  const int64_t size = self.sizes()[dim];
  MICA_CHECK_INDEX(index >= -size && index < size, "Index (", index, ") is out of range for dimension (", dim,
                   ") of size (", size, "); expected -", size, " to ", size - 1, ".");
  if (index < 0) index += size;
  ViewSpec spec = Whole(self);
  spec.byte_offset += index * self.strides()[dim] * self.itemsize();
  spec.sizes.erase(spec.sizes.begin() + dim);
  spec.strides.erase(spec.strides.begin() + dim);
  return spec;
}

ViewSpec slice(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
               int64_t step) {
  MICA_CHECK_INDEX(self.ndim() > 0,
                   "A 0-d tensor has no dimension to slice; expected at least one dimension.");
  dim = WrapDim(dim, self.ndim());
  MICA_CHECK(step > 0, "Step (", step,
             ") of a slice is not positive; expected 1 or more (flip reverses a dimension).");
  const int64_t size = self.sizes()[dim];
  const auto clip = [size](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  const int64_t from = clip(start.value_or(0));
  const int64_t to = std::max(from, clip(end.value_or(std::numeric_limits<int64_t>::max())));
  ViewSpec spec = Whole(self);
  spec.byte_offset += from * self.strides()[dim] * self.itemsize();
  spec.sizes[static_cast<size_t>(dim)] = (to - from) / step + ((to - from) % step != 0);
  int64_t& stride = spec.strides[static_cast<size_t>(dim)];
  stride = Stepped(stride, step);
  return spec;
}

ViewSpec unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  ViewSpec spec = Whole(self);
  dimension = WrapDim(dimension, self.ndim());
  const int64_t extent = self.ndim() == 0 ? 1 : self.sizes()[dimension];
  const int64_t stride = self.ndim() == 0 ? 1 : self.strides()[dimension];
  MICA_CHECK(size >= 0, "Window size (", size, ") is negative; expected 0 or more.");
  MICA_CHECK(size <= extent, "Window size (", size, ") exceeds the size (", extent, ") of dimension (",
             dimension, ").");
  MICA_CHECK(step > 0, "Step (", step, ") is not positive; expected 1 or more.");
  if (self.ndim() > 0) {
    spec.sizes[static_cast<size_t>(dimension)] = (extent - size) / step + 1;
    spec.strides[static_cast<size_t>(dimension)] = Stepped(stride, step);
  }
  spec.sizes.push_back(size);
  spec.strides.push_back(stride);
  return spec;
}

ViewSpec diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  MICA_CHECK_INDEX(self.ndim() >= 2, "Number of dimensions (", self.ndim(),
                   ") of `self` is below 2; expected a matrix or more.");
  dim1 = WrapDim(dim1, self.ndim());
  dim2 = WrapDim(dim2, self.ndim());
  MICA_CHECK(dim1 != dim2, "Dimensions `dim1` and `dim2` are the same (", dim1, "); expected two.");
  const int64_t rows = self.sizes()[dim1], columns = self.sizes()[dim2];
  const int64_t length = offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns);
  ViewSpec spec = Whole(self);
  if (length > 0)
    spec.byte_offset +=
        (offset >= 0 ? offset * self.strides()[dim2] : -offset * self.strides()[dim1]) * self.itemsize();
  const int64_t stride = self.strides()[dim1] + self.strides()[dim2];
  for (const int64_t d : {std::max(dim1, dim2), std::min(dim1, dim2)}) {
    spec.sizes.erase(spec.sizes.begin() + d);
    spec.strides.erase(spec.strides.begin() + d);
  }
  spec.sizes.push_back(std::max<int64_t>(0, length));
  spec.strides.push_back(stride);
  return spec;
}

ViewSpec as_strided(const Tensor& self, IntSpan size, IntSpan stride, std::optional<int64_t> storage_offset) {
  MICA_CHECK(size.size() == stride.size(), "Number of sizes (", size.size(),
             ") differs from the number of strides (", stride.size(), ").");
  for (int64_t i = 0; i < size.size(); ++i) {
    MICA_CHECK(size[i] >= 0, "Size (", size[i], ") of dimension (", i, ") is negative; expected 0 or more.");
    MICA_CHECK(stride[i] >= 0, "Stride (", stride[i], ") of dimension (", i,
               ") is negative; expected 0 or more (flip reverses a dimension).");
  }
  MICA_CHECK(storage_offset.value_or(0) >= 0, "Storage offset (", *storage_offset,
             ") is negative; expected 0 or more.");
  ViewSpec spec;
  spec.sizes = ToDims(size);
  spec.strides = ToDims(stride);
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  MICA_CHECK(!__builtin_mul_overflow(offset, self.itemsize(), &spec.byte_offset), "Storage offset (", offset,
             ") is beyond the range of int64 in bytes of ", Name(self.dtype()), ".");
  return spec;
}

}  // namespace mica::views
