// Composites of convolution and pooling: conv1d .. conv3d, their transposes, and
// pooling of one dimension as a plane of height 1.
#include "mica/ops/convolution.h"
#include "mica/kernels/composite/composite_helpers.h"
#include "mica/ops/_adaptive_avg_pool2d.h"
#include "mica/ops/_channel_sum.h"
#include "mica/ops/_convolution_backward_input.h"
#include "mica/ops/_convolution_backward_weight.h"
#include "mica/ops/avg_pool2d.h"
#include "mica/ops/constant_pad_nd.h"
#include "mica/ops/max_pool2d_with_indices.h"
#include "mica/ops/mean.h"
#include "mica/ops/permute.h"
#include "mica/ops/reshape.h"
#include "mica/ops/squeeze.h"
#include "mica/ops/sum.h"
#include "mica/ops/unsqueeze.h"

namespace mica::composite {
namespace {

// A sample without batch gets one of size 1.
Tensor Convolve(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                IntSpan padding, IntSpan dilation, bool transposed, IntSpan output_padding, int64_t groups,
                int64_t spatial) {
  MICA_CHECK(input.ndim() == spatial + 2 || input.ndim() == spatial + 1, "Number of dimensions (",
             input.ndim(), ") of `input` with shape ", ShapeText(input.sizes()), " is not (", spatial + 1,
             ") or (", spatial + 2, ").");
  const bool batched = input.ndim() == spatial + 2;
  const Tensor x = batched ? input : ops::unsqueeze(input, 0);
  const Tensor y = ops::convolution(x, weight, bias, Repeated(stride, spatial, 1),
                                    Repeated(padding, spatial, 0), Repeated(dilation, spatial, 1), transposed,
                                    Repeated(output_padding, spatial, 0), groups);
  return batched ? y : ops::squeeze(y, 0);
}

Tensor ConvolveWithMode(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                        std::string_view padding, IntSpan dilation, int64_t groups, int64_t spatial) {
  if (padding == "valid")
    return Convolve(input, weight, bias, stride, {}, dilation, false, {}, groups, spatial);
  MICA_CHECK(padding == "same", "Padding (", std::string(padding),
             ") is unknown; expected same, valid or numbers.");
  const Dims strides = Repeated(stride, spatial, 1), dilations = Repeated(dilation, spatial, 1);
  Dims even, extra(static_cast<size_t>(2 * spatial), 0);
  bool symmetric = true;
  for (int64_t d = 0; d < spatial; ++d) {
    MICA_CHECK(strides[static_cast<size_t>(d)] == 1, "Stride (", strides[static_cast<size_t>(d)],
               ") is not 1, which padding (same) needs.");
    const int64_t total = dilations[static_cast<size_t>(d)] * (weight.sizes()[d + 2] - 1);
    even.push_back(total / 2);
    extra[static_cast<size_t>(2 * (spatial - 1 - d) + 1)] = total % 2;
    symmetric = symmetric && total % 2 == 0;
  }
  const Tensor x = symmetric ? input : ops::constant_pad_nd(input, extra, Scalar(0));
  return Convolve(x, weight, bias, stride, even, dilation, false, {}, groups, spatial);
}

}  // namespace

#define MICA_CONVOLUTION(name, spatial)                                                                \
  Tensor name(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,           \
              IntSpan padding, IntSpan dilation, int64_t groups) {                                     \
    return Convolve(input, weight, bias, stride, padding, dilation, false, {}, groups, spatial);       \
  }                                                                                                    \
  Tensor name##_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride, \
                        std::string_view padding, IntSpan dilation, int64_t groups) {                  \
    return ConvolveWithMode(input, weight, bias, stride, padding, dilation, groups, spatial);          \
  }
MICA_CONVOLUTION(conv1d, 1)
MICA_CONVOLUTION(conv2d, 2)
MICA_CONVOLUTION(conv3d, 3)
#undef MICA_CONVOLUTION

#define MICA_CONV_TRANSPOSE(name, spatial)                                                                  \
  Tensor name(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,                \
              IntSpan padding, IntSpan output_padding, int64_t groups, IntSpan dilation) {                  \
    return Convolve(input, weight, bias, stride, padding, dilation, true, output_padding, groups, spatial); \
  }
MICA_CONV_TRANSPOSE(conv_transpose1d, 1)
MICA_CONV_TRANSPOSE(conv_transpose2d, 2)
MICA_CONV_TRANSPOSE(conv_transpose3d, 3)
#undef MICA_CONV_TRANSPOSE

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad_output, const Tensor& input,
                                                        const Tensor& weight, std::optional<IntSpan>,
                                                        IntSpan stride, IntSpan padding, IntSpan dilation,
                                                        bool transposed, IntSpan output_padding,
                                                        int64_t groups, BoolSpan output_mask) {
  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0])
    grad_input = ops::_convolution_backward_input(grad_output, weight, input.sizes(), stride, padding,
                                                  dilation, transposed, output_padding, groups);
  if (output_mask[1])
    grad_weight = ops::_convolution_backward_weight(grad_output, input, weight.sizes(), stride, padding,
                                                    dilation, transposed, output_padding, groups);
  if (output_mask[2]) grad_bias = ops::_channel_sum(grad_output);
  return {grad_input, grad_weight, grad_bias};
}

Tensor _channel_sum(const Tensor& self) {
  Dims dims = {0};
  for (int64_t d = 2; d < self.ndim(); ++d) dims.push_back(d);
  return ops::sum(self, dims, false);
}

Tensor max_pool2d(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                  bool ceil_mode) {
  return std::get<0>(ops::max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
}

namespace {
struct Lifted {
  Dims kernel, stride, padding, dilation;
};
// Arguments of one dimension as those of a plane of height 1.
Lifted Lift(IntSpan kernel, IntSpan stride, IntSpan padding, IntSpan dilation) {
  const auto at = [](IntSpan list, int64_t otherwise) { return list.empty() ? otherwise : list[0]; };
  return {{1, at(kernel, 1)}, {1, at(stride, at(kernel, 1))}, {0, at(padding, 0)}, {1, at(dilation, 1)}};
}
}  // namespace

std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& self, IntSpan kernel_size, IntSpan stride,
                                                   IntSpan padding, IntSpan dilation, bool ceil_mode) {
  MICA_CHECK(self.ndim() == 2 || self.ndim() == 3, "Number of dimensions (", self.ndim(),
             ") of `self` is not 2 or 3.");
  const Lifted a = Lift(kernel_size, stride, padding, dilation);
  const auto [values, indices] = ops::max_pool2d_with_indices(ops::unsqueeze(self, -2), a.kernel, a.stride,
                                                              a.padding, a.dilation, ceil_mode);
  return {ops::squeeze(values, -2), ops::squeeze(indices, -2)};
}
Tensor max_pool1d(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                  bool ceil_mode) {
  return std::get<0>(max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
}
Tensor avg_pool1d(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                  bool count_include_pad) {
  MICA_CHECK(self.ndim() == 2 || self.ndim() == 3, "Number of dimensions (", self.ndim(),
             ") of `self` is not 2 or 3.");
  const Lifted a = Lift(kernel_size, stride, padding, {});
  return ops::squeeze(ops::avg_pool2d(ops::unsqueeze(self, -2), a.kernel, a.stride, a.padding, ceil_mode,
                                      count_include_pad, std::nullopt),
                      -2);
}
Tensor adaptive_avg_pool2d(const Tensor& self, IntSpan output_size) {
  const Dims size = Repeated(output_size, 2, 1);
  if (size[0] == 1 && size[1] == 1) return ops::mean(self, IntSpan({-2, -1}), true);
  return ops::_adaptive_avg_pool2d(self, size);
}
Tensor adaptive_avg_pool1d(const Tensor& self, IntSpan output_size) {
  MICA_CHECK(self.ndim() == 2 || self.ndim() == 3, "Number of dimensions (", self.ndim(),
             ") of `self` is not 2 or 3.");
  return ops::squeeze(
      ops::_adaptive_avg_pool2d(ops::unsqueeze(self, -2), {1, Repeated(output_size, 1, 1)[0]}), -2);
}

Tensor pixel_shuffle(const Tensor& self, int64_t upscale_factor) {
  const int64_t n = self.ndim(), r = upscale_factor;
  MICA_CHECK(n >= 3, "Number of dimensions (", n, ") of `self` is below 3.");
  MICA_CHECK(r > 0 && r < (int64_t{1} << 31) && self.size(-3) % (r * r) == 0, "Number of channels (",
             self.size(-3), ") is no multiple of the square of `upscale_factor` (", r, ").");
  const int64_t channels = self.size(-3) / (r * r), height = self.size(-2), width = self.size(-1);
  Dims split = ToDims(self.sizes().subspan(0, n - 3)), sizes = split, order;
  for (int64_t d = 0; d < n - 3; ++d) order.push_back(d);
  for (const int64_t s : {channels, r, r, height, width}) split.push_back(s);
  for (const int64_t d : {0, 3, 1, 4, 2}) order.push_back(n - 3 + d);
  for (const int64_t s : {channels, height * r, width * r}) sizes.push_back(s);
  return ops::reshape(ops::permute(ops::reshape(self, split), order), sizes);
}

}  // namespace mica::composite
