// Views of the same memory as another dtype.
#include "mica/kernels/view_declarations.h"
#include "mica/kernels/views/view_helpers.h"

namespace mica::views {

ViewSpec view_as_real(const Tensor& self) {
  MICA_CHECK(IsComplex(self.dtype()), "Dtype (", Name(self.dtype()),
             ") of `self` is not complex; expected complex64 or complex128.");
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
  MICA_CHECK(n > 0 && self.sizes()[n - 1] == 2, "Shape ", ShapeText(self.sizes()),
             " does not end in 2; expected pairs of real and imaginary parts.");
  MICA_CHECK(self.strides()[n - 1] == 1, "Stride (", self.strides()[n - 1],
             ") of the last dimension is not 1; call contiguous first.");
  MICA_CHECK(self.storage_offset() % 2 == 0, "Storage offset (", self.storage_offset(),
             ") is odd; expected an even one.");
  ViewSpec spec = Whole(self);
  spec.sizes.pop_back();
  spec.strides.pop_back();
  for (int64_t& s : spec.strides) {
    MICA_CHECK(s % 2 == 0, "Strides ", ShapeText(self.strides()),
               " are not even; expected pairs side by side.");
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
  MICA_CHECK(n > 0, "A 0-d tensor of dtype (", Name(self.dtype()), ") cannot be seen as dtype (", Name(dtype),
             ") of another size.");
  MICA_CHECK(self.strides()[n - 1] == 1, "Stride (", self.strides()[n - 1],
             ") of the last dimension is not 1; expected 1 to see it as a dtype of another size.");
  const size_t last = static_cast<size_t>(n - 1);
  if (from > to) {
    for (size_t d = 0; d < last; ++d) spec.strides[d] *= from / to;
    spec.sizes[last] *= from / to;
    return spec;
  }
  const int64_t ratio = to / from;
  MICA_CHECK(spec.sizes[last] % ratio == 0, "Size (", spec.sizes[last],
             ") of the last dimension is no multiple of (", ratio, "), the ratio of the dtypes' sizes.");
  MICA_CHECK(self.storage_offset() % ratio == 0, "Storage offset (", self.storage_offset(),
             ") is no multiple of (", ratio, "), the ratio of the dtypes' sizes.");
  spec.sizes[last] /= ratio;
  for (size_t d = 0; d < last; ++d) {
    MICA_CHECK(spec.strides[d] % ratio == 0, "Stride (", spec.strides[d], ") of dimension (", d,
               ") is no multiple of (", ratio, "), the ratio of the dtypes' sizes.");
    spec.strides[d] /= ratio;
  }
  return spec;
}

}  // namespace mica::views
