// Meta functions of pooling and of windows as columns.
#include <algorithm>

#include "absl/strings/str_join.h"

#include "kernels/meta/meta_helpers.h"
#include "mica/kernels/meta_declarations.h"

namespace mica::meta {
namespace {

// Kernels, strides and paddings beyond this fit no image, and their products overflow.
constexpr int64_t kLargestStep = (int64_t{1} << 31) - 1;

// The value for one of the `spatial` dimensions of a plane; one number stands for all.
int64_t At(IntSpan list, int64_t i, int64_t otherwise, int64_t spatial = 2) {
  MICA_CHECK(list.size() <= 1 || list.size() == spatial, "Number of values (", list.size(),
             ") of a window's argument is neither 1 nor (", spatial, ").");
  for (const int64_t v : list)
    MICA_CHECK(v >= -kLargestStep && v <= kLargestStep, "Value (", v,
               ") of a window's argument is out of range; expected at most 2^31 - 1.");
  return list.empty() ? otherwise : list.size() == 1 ? list[0] : list[i];
}

// (Batch,) channels and `spatial` dimensions.
void CheckRank(const Tensor& self, int64_t spatial) {
  MICA_CHECK(self.ndim() == spatial + 1 || self.ndim() == spatial + 2, "Number of dimensions (", self.ndim(),
             ") of `self` with shape ", ShapeText(self.sizes()), " is not (", spatial + 1, ") or (",
             spatial + 2, "); expected (batch,) channels and the dimensions of a plane.");
}

void CheckPlanes(const Tensor& self, int64_t spatial = 2) {
  CheckRank(self, spatial);
  for (int64_t d = self.ndim() - spatial - 1; d < self.ndim(); ++d)
    MICA_CHECK(self.sizes()[d] > 0, "Dimension (", d, ") of `self` with shape ", ShapeText(self.sizes()),
               " is empty; expected a size of at least 1.");
}

// Windows that fit a size, as torch counts them: with ceil_mode the last must
// still begin inside the input or its left padding.
int64_t OutputSize(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                   bool ceil_mode) {
  MICA_CHECK(kernel > 0, "Size `kernel_size` (", kernel, ") is not positive.");
  MICA_CHECK(stride > 0, "Stride `stride` (", stride, ") is not positive.");
  MICA_CHECK(dilation > 0, "Dilation `dilation` (", dilation, ") is not positive.");
  MICA_CHECK(pad >= 0 && pad <= ((kernel - 1) * dilation + 1) / 2, "Padding `padding` (", pad,
             ") is not between 0 and half the kernel's reach (", ((kernel - 1) * dilation + 1) / 2,
             "), which follows from `kernel_size` (", kernel, ") and `dilation` (", dilation, ").");
  const int64_t room = in + 2 * pad - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
  int64_t out = (room >= 0 ? room / stride : -((-room + stride - 1) / stride)) + 1;
  if (ceil_mode && (out - 1) * stride >= in + pad) --out;
  return out;
}

Dims PooledSizes(const Tensor& self, int64_t spatial, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                 IntSpan dilation, bool ceil_mode) {
  CheckPlanes(self, spatial);
  const int64_t first = self.ndim() - spatial;
  Dims sizes = ToDims(self.sizes());
  for (int64_t d = 0; d < spatial; ++d) {
    const int64_t kernel = At(kernel_size, d, 1, spatial);
    sizes[static_cast<size_t>(first + d)] =
        OutputSize(self.sizes()[first + d], kernel, At(stride, d, kernel, spatial),
                   At(padding, d, 0, spatial), At(dilation, d, 1, spatial), ceil_mode);
  }
  const IntSpan planes(self.sizes().data() + first - 1, spatial + 1),
      pooled(sizes.data() + first - 1, spatial + 1);
  const bool fits = std::all_of(pooled.begin() + 1, pooled.end(), [](int64_t n) { return n >= 1; });
  MICA_CHECK(fits, "Given input size: (", absl::StrJoin(planes, "x"), "). Calculated output size: (",
             absl::StrJoin(pooled, "x"),
             "). Output size is too small: `kernel_size` with `dilation` exceeds the input with `padding`.");
  return sizes;
}

void CheckPooledGradient(const Tensor& grad_output, const Dims& pooled) {
  MICA_CHECK(grad_output.sizes() == IntSpan(pooled), "Shape ", ShapeText(grad_output.sizes()),
             " of `grad_output` is not the pooled shape ", ShapeText(pooled), ".");
}

// In the memory format of `like` where that has a batch of planes, or of volumes that max_pool3d
// pools: torch's other operators on volumes give contiguous ones.
void AddPlanes(MetaResult& result, const Tensor& like, int64_t spatial, const Dims& sizes, DType dtype,
               bool volumes = false) {
  OutputSpec& out = AddOutput(result, sizes, dtype, like.device());
  if (like.ndim() == spatial + 2 && (spatial == 2 || volumes)) out.strides = StridesInFormatOf(like, sizes);
}

Dims AdaptiveSizes(const Tensor& self, int64_t spatial, IntSpan output_size) {
  CheckRank(self, spatial);
  Dims sizes = ToDims(self.sizes());
  for (int64_t d = 0; d < spatial; ++d) {
    const int64_t size = At(output_size, d, 1, spatial);
    MICA_CHECK(size >= 0, "Size (", size, ") of dimension (", d,
               ") in `output_size` is negative; expected 0 or more.");
    sizes[sizes.size() - static_cast<size_t>(spatial - d)] = size;
  }
  return sizes;
}

// Largest elements, and their places.
void AddMaxima(MetaResult& result, const Tensor& self, int64_t spatial, const Dims& sizes,
               bool volumes = false) {
  ComputeIn(result, self.dtype());
  AddPlanes(result, self, spatial, sizes, self.dtype(), volumes);
  AddPlanes(result, self, spatial, sizes, DType::kI64, volumes);
}

void CheckAveraged(const Tensor& self, std::optional<int64_t> divisor, const char* name) {
  MICA_CHECK(!divisor || *divisor != 0, "Argument `divisor_override` (0) divides by zero.");
  MICA_CHECK_IMPLEMENTED(IsFloating(self.dtype()) || self.dtype() == DType::kI64, "Operator ", name,
                         " does not support the dtype (", Name(self.dtype()), ").");
}

void CheckIndicesOf(const Tensor& grad_output, const Tensor& indices) {
  MICA_CHECK(grad_output.sizes() == indices.sizes(), "Shape ", ShapeText(grad_output.sizes()),
             " of `grad_output` differs from shape ", ShapeText(indices.sizes()), " of `indices`.");
  MICA_CHECK(indices.dtype() == DType::kI64, "Dtype (", Name(indices.dtype()),
             ") of `indices` is not int64.");
  CheckSameDevice(indices, grad_output, "indices", "grad_output");
}

// A gradient for `self` from one of the pooled shape.
void AddGradient(MetaResult& result, const Tensor& grad_output, const Tensor& self, int64_t spatial,
                 const Dims& pooled) {
  CheckPooledGradient(grad_output, pooled);
  CheckSameDevice(grad_output, self, "grad_output", "self");
  CheckSameDType(grad_output, self, "grad_output", "self");
  AddPlanes(result, self, spatial, ToDims(self.sizes()), self.dtype());
}

void AddAdaptiveGradient(MetaResult& result, const Tensor& grad_output, const Tensor& self, int64_t spatial) {
  CheckRank(self, spatial);
  Dims pooled = ToDims(self.sizes());
  if (grad_output.ndim() == self.ndim())  // windows of any number
    for (size_t d = pooled.size() - static_cast<size_t>(spatial); d < pooled.size(); ++d)
      pooled[d] = grad_output.sizes()[static_cast<int64_t>(d)];
  AddGradient(result, grad_output, self, spatial, pooled);
}

void AddAdaptiveMean(MetaResult& result, const Tensor& self, int64_t spatial, IntSpan output_size) {
  MICA_CHECK_IMPLEMENTED(IsFloating(self.dtype()), "Operator adaptive_avg_pool", spatial,
                         "d does not support the dtype (", Name(self.dtype()), ").");
  CheckPlanes(self, spatial);
  ComputeIn(result, self.dtype());
  AddPlanes(result, self, spatial, AdaptiveSizes(self, spatial, output_size), self.dtype());
}

void AddAdaptiveMaxima(MetaResult& result, const Tensor& self, int64_t spatial, IntSpan output_size) {
  CheckPlanes(self, spatial);
  AddMaxima(result, self, spatial, AdaptiveSizes(self, spatial, output_size));
}

}  // namespace

void max_pool2d_with_indices(MetaResult& result, const Tensor& self, IntSpan kernel_size, IntSpan stride,
                             IntSpan padding, IntSpan dilation, bool ceil_mode) {
  AddMaxima(result, self, 2, PooledSizes(self, 2, kernel_size, stride, padding, dilation, ceil_mode));
}
void max_pool2d_with_indices_backward(MetaResult& result, const Tensor& grad_output, const Tensor& self,
                                      IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                                      bool ceil_mode, const Tensor& indices) {
  CheckIndicesOf(grad_output, indices);
  AddGradient(result, grad_output, self, 2,
              PooledSizes(self, 2, kernel_size, stride, padding, dilation, ceil_mode));
}
void avg_pool2d(MetaResult& result, const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                bool ceil_mode, bool, std::optional<int64_t> divisor_override) {
  CheckAveraged(self, divisor_override, "avg_pool2d");
  MICA_CHECK_INDEX(self.ndim() > 2, "Number of dimensions (", self.ndim(), ") of `self` with shape ",
                   ShapeText(self.sizes()),
                   " is less than 3; expected (batch,) channels and the dimensions of a plane.");
  ComputeIn(result, self.dtype());
  AddPlanes(result, self, 2, PooledSizes(self, 2, kernel_size, stride, padding, {1, 1}, ceil_mode),
            self.dtype());
}
void avg_pool2d_backward(MetaResult& result, const Tensor& grad_output, const Tensor& self,
                         IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode, bool,
                         std::optional<int64_t>) {
  AddGradient(result, grad_output, self, 2,
              PooledSizes(self, 2, kernel_size, stride, padding, {1, 1}, ceil_mode));
}
void _adaptive_avg_pool2d(MetaResult& result, const Tensor& self, IntSpan output_size) {
  AddAdaptiveMean(result, self, 2, output_size);
}
void _adaptive_avg_pool2d_backward(MetaResult& result, const Tensor& grad_output, const Tensor& self) {
  AddAdaptiveGradient(result, grad_output, self, 2);
}
void adaptive_max_pool2d(MetaResult& result, const Tensor& self, IntSpan output_size) {
  AddAdaptiveMaxima(result, self, 2, output_size);
}

void max_pool3d_with_indices(MetaResult& result, const Tensor& self, IntSpan kernel_size, IntSpan stride,
                             IntSpan padding, IntSpan dilation, bool ceil_mode) {
  AddMaxima(result, self, 3, PooledSizes(self, 3, kernel_size, stride, padding, dilation, ceil_mode), true);
}
void max_pool3d_with_indices_backward(MetaResult& result, const Tensor& grad_output, const Tensor& self,
                                      IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                                      bool ceil_mode, const Tensor& indices) {
  CheckIndicesOf(grad_output, indices);
  AddGradient(result, grad_output, self, 3,
              PooledSizes(self, 3, kernel_size, stride, padding, dilation, ceil_mode));
}
void avg_pool3d(MetaResult& result, const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                bool ceil_mode, bool, std::optional<int64_t> divisor_override) {
  CheckAveraged(self, divisor_override, "avg_pool3d");
  ComputeIn(result, self.dtype());
  AddPlanes(result, self, 3, PooledSizes(self, 3, kernel_size, stride, padding, {1, 1, 1}, ceil_mode),
            self.dtype());
}
void avg_pool3d_backward(MetaResult& result, const Tensor& grad_output, const Tensor& self,
                         IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode, bool,
                         std::optional<int64_t>) {
  AddGradient(result, grad_output, self, 3,
              PooledSizes(self, 3, kernel_size, stride, padding, {1, 1, 1}, ceil_mode));
}
void _adaptive_avg_pool3d(MetaResult& result, const Tensor& self, IntSpan output_size) {
  AddAdaptiveMean(result, self, 3, output_size);
}
void _adaptive_avg_pool3d_backward(MetaResult& result, const Tensor& grad_output, const Tensor& self) {
  AddAdaptiveGradient(result, grad_output, self, 3);
}
void adaptive_max_pool3d(MetaResult& result, const Tensor& self, IntSpan output_size) {
  AddAdaptiveMaxima(result, self, 3, output_size);
}

namespace {
int64_t Windows(int64_t in, int64_t kernel, int64_t dilation, int64_t pad, int64_t stride) {
  MICA_CHECK(kernel > 0 && dilation > 0 && stride > 0 && pad >= 0, "Kernel size (", kernel, "), dilation (",
             dilation, "), stride (", stride, ") and padding (", pad,
             ") are not all in range; expected positive ones and a padding of 0 or more.");
  const int64_t room = in + 2 * pad - dilation * (kernel - 1) - 1;
  MICA_CHECK(room >= 0,
             "The kernel does not fit: calculated shape of the array of sliding blocks as empty, since the "
             "padded size (",
             in + 2 * pad, ") is smaller than the reach (", dilation * (kernel - 1) + 1, ") of the kernel.");
  return room / stride + 1;
}
}  // namespace

void col2im(MetaResult& result, const Tensor& self, IntSpan output_size, IntSpan kernel_size,
            IntSpan dilation, IntSpan padding, IntSpan stride) {
  const int64_t n = self.ndim();
  MICA_CHECK(n == 2 || n == 3, "Number of dimensions (", n,
             ") of `self` is not 2 or 3; expected (batch,) channels times kernel, and windows.");
  int64_t windows = 1, area = 1;
  for (int64_t d = 0; d < 2; ++d) {
    windows = CheckedNumel({windows, Windows(At(output_size, d, 1), At(kernel_size, d, 1), At(dilation, d, 1),
                                             At(padding, d, 0), At(stride, d, 1))});
    area = CheckedNumel({area, At(kernel_size, d, 1)});
  }
  MICA_CHECK(self.sizes()[n - 2] % area == 0, "Size (", self.sizes()[n - 2], ") of dimension (", n - 2,
             ") is to be divisible by the product of kernel_size (", area, ").");
  MICA_CHECK(self.sizes()[n - 1] == windows, "Size (", self.sizes()[n - 1], ") of dimension (", n - 1,
             ") does not match the calculated number of sliding blocks (", windows, ").");
  Dims sizes;
  if (n == 3) sizes.push_back(self.sizes()[0]);
  sizes.push_back(self.sizes()[n - 2] / area);
  sizes.push_back(At(output_size, 0, 1));
  sizes.push_back(At(output_size, 1, 1));
  AddOutput(result, sizes, self.dtype(), self.device());
}

}  // namespace mica::meta
