// Views of a part of a tensor: select, slice, unfold, diagonal, as_strided.
#include <algorithm>
#include <limits>

#include "kernels/views/view_helpers.h"
#include "mica/kernels/view_declarations.h"

namespace mica::views {

namespace {
// The stride of every `step`-th element. It wraps where one element is left, which needs none.
int64_t Stepped(int64_t stride, int64_t step) {
  return static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(step));
}
}  // namespace

ViewSpec select(const Tensor& self, int64_t dim, int64_t index) {
  MICA_CHECK_INDEX(self.ndim() > 0,
                   "select() cannot be applied to a 0-dim tensor; expected at least one dimension.");
  dim = WrapDim(dim, self.ndim());
  const int64_t size = self.sizes()[dim];
  MICA_CHECK_INDEX(index >= -size && index < size, "select(): index ", index,
                   " out of range for tensor of size ", ShapeText(self.sizes()), " at dimension ", dim,
                   "; expected -", size, " to ", size - 1, ".");
  if (index < 0) index += size;
  ViewSpec spec = First(self);
  spec.byte_offset += index * self.strides()[dim] * self.itemsize();
  for (int64_t d = 0; d < self.ndim(); ++d) {
    if (d == dim) continue;
    spec.sizes.push_back(self.sizes()[d]);
    spec.strides.push_back(self.strides()[d]);
  }
  return spec;
}

ViewSpec slice(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
               int64_t step) {
  MICA_CHECK_INDEX(self.ndim() > 0,
                   "slice() cannot be applied to a 0-dim tensor; expected at least one dimension.");
  dim = WrapDim(dim, self.ndim());
  MICA_CHECK(step > 0, "The slice step must be positive; it is (", step, "). flip reverses a dimension.");
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
  MICA_CHECK(size <= extent, "The maximum size for tensor at dimension ", dimension, " is ", extent,
             " but size is ", size, ".");
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
  MICA_CHECK_INDEX(self.ndim() >= 2, "The dimension (", dim2,
                   ") is not one of `self`: Dimension out of range (expected to be in range of [",
                   -std::max<int64_t>(self.ndim(), 1), ", ", std::max<int64_t>(self.ndim(), 1) - 1,
                   "], but got ", dim2, "); `self` has ", self.ndim(),
                   " dimensions, and a diagonal needs 2.");
  dim1 = WrapDim(dim1, self.ndim());
  dim2 = WrapDim(dim2, self.ndim());
  MICA_CHECK(dim1 != dim2, "The diagonal dimensions cannot be identical ", dim1, ", ", dim2, ".");
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
  MICA_CHECK(size.size() == stride.size(),
             "There is a mismatch in length of strides and shape: the number of sizes (", size.size(),
             ") differs from the number of strides (", stride.size(), ").");
  for (int64_t i = 0; i < size.size(); ++i) {
    MICA_CHECK(size[i] >= 0, "Trying to create tensor with negative dimension ", size[i], ": ",
               ShapeText(size), "; the size of dimension (", i, ") is 0 or more.");
    MICA_CHECK(stride[i] >= 0,
               "Negative strides are not supported at the moment, got strides: ", ShapeText(stride),
               "; the stride of dimension (", i, ") is 0 or more (flip reverses a dimension).");
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
