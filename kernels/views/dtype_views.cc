// Views of the same memory as another dtype.
#include "kernels/views/view_helpers.h"
#include "mica/kernels/view_declarations.h"
#include "tensor/dtype.h"

namespace mica::views {

ViewSpec view_as_real(const Tensor& self) {
  MICA_CHECK(IsComplex(self.dtype()),
             "view_as_real is only supported for complex tensors; the dtype of `self` is (",
             Name(self.dtype()), ").");
  ViewSpec spec = Whole(self);
  for (int64_t& s : spec.strides) s *= 2;
  spec.sizes.push_back(2);
  spec.strides.push_back(1);
  spec.dtype = static_cast<int8_t>(RealOf(self.dtype()));
  return spec;
}

ViewSpec view_as_complex(const Tensor& self) {
  const DType d = self.dtype();
  MICA_CHECK(d == DType::kF32 || d == DType::kF64, "Dtype (", Name(d),
             ") of `self` has no complex counterpart; expected float32 or float64.");
  const int64_t n = self.ndim();
  MICA_CHECK(n > 0 && self.sizes()[n - 1] == 2,
             n == 0 ? "Input tensor must have one or more dimensions; its shape is []."
                    : "Tensor must have a last dimension of size 2, the pairs of real and imaginary parts; "
                      "its shape is ",
             n == 0 ? "" : ShapeText(self.sizes()), n == 0 ? "" : ".");
  const bool empty = self.numel() == 0;  // its strides lead nowhere, and contiguous() keeps them
  MICA_CHECK(empty || self.strides()[n - 1] == 1, "Tensor must have a last dimension with stride 1; it is (",
             self.strides()[n - 1], "). Call contiguous first.");
  MICA_CHECK(self.storage_offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2; it is (",
             self.storage_offset(), ").");
  ViewSpec spec = Whole(self);
  spec.sizes.pop_back();
  spec.strides.pop_back();
  for (size_t k = 0; k < spec.strides.size(); ++k) {
    int64_t& s = spec.strides[k];
    MICA_CHECK(empty || spec.sizes[k] == 1 || s % 2 == 0,
               "Tensor must have a stride divisible by 2 for all but last dimension; its strides are ",
               ShapeText(self.strides()), ".");
    s /= 2;
  }
  spec.dtype = static_cast<int8_t>(d == DType::kF32 ? DType::kC64 : DType::kC128);
  return spec;
}

ViewSpec view_dtype(const Tensor& self, DType dtype) {
  ViewSpec spec = Whole(self);
  spec.dtype = static_cast<int8_t>(dtype);
  const int64_t from = self.itemsize(), to = ItemSize(dtype), n = self.ndim();
  if (from == to) return spec;
  MICA_CHECK(n > 0, "self.dim() cannot be 0 to view ", ScalarTypeName(self.dtype()), " as ",
             ScalarTypeName(dtype), " (different element sizes).");
  MICA_CHECK(self.strides()[n - 1] == 1, "self.stride(-1) must be 1 to view ", ScalarTypeName(self.dtype()),
             " as ", ScalarTypeName(dtype), " (different element sizes), but got ", self.strides()[n - 1],
             ".");
  const size_t last = static_cast<size_t>(n - 1);
  if (from > to) {
    for (size_t d = 0; d < last; ++d) spec.strides[d] *= from / to;
    spec.sizes[last] *= from / to;
    return spec;
  }
  const int64_t ratio = to / from;
  MICA_CHECK(spec.sizes[last] % ratio == 0, "self.size(-1) must be divisible by ", ratio, " to view ",
             ScalarTypeName(self.dtype()), " as ", ScalarTypeName(dtype),
             " (different element sizes), but got ", spec.sizes[last], ".");
  MICA_CHECK(self.storage_offset() % ratio == 0, "self.storage_offset() must be divisible by ", ratio,
             " to view ", ScalarTypeName(self.dtype()), " as ", ScalarTypeName(dtype),
             " (different element sizes), but got ", self.storage_offset(), ".");
  spec.sizes[last] /= ratio;
  for (size_t d = 0; d < last; ++d) {
    MICA_CHECK(spec.strides[d] % ratio == 0, "self.stride(", d, ") must be divisible by ", ratio, " to view ",
               ScalarTypeName(self.dtype()), " as ", ScalarTypeName(dtype),
               " (different element sizes), but got ", spec.strides[d], ".");
    spec.strides[d] /= ratio;
  }
  return spec;
}

}  // namespace mica::views
