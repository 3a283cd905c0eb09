// Meta functions of convolution and its two gradients.
//
// Lists of one number stand for all spatial dimensions, as in torch.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "kernels/meta/meta_helpers.h"
#include "mica/kernels/meta_declarations.h"

namespace mica::meta {
namespace {

// Whether the channels lie side by side and the pixels do not.
bool HasChannelsLast(const Tensor& t) {
  return !t.is_contiguous() &&
         (t.is_contiguous(MemoryFormat::kChannelsLast) || t.is_contiguous(MemoryFormat::kChannelsLast3d));
}

// Strides, paddings and sizes beyond this are no images, and their products overflow.
constexpr int64_t kLargestStep = (int64_t{1} << 31) - 1;

int64_t At(IntSpan list, int64_t i) { return list.size() == 1 ? list[0] : list[i]; }

void CheckList(IntSpan list, int64_t spatial, int64_t least, const char* name) {
  MICA_CHECK(list.size() == 1 || list.size() == spatial, "Number of values (", list.size(), ") of `", name,
             "` is neither 1 nor the number of spatial dimensions (", spatial, ").");
  for (const int64_t v : list) {
    MICA_CHECK(v >= least, "Value (", v, ") of `", name, "` is too small; expected ", least, " or more.");
    MICA_CHECK(v <= kLargestStep, "Value (", v, ") of `", name, "` exceeds 2^31 - 1.");
  }
}

// The sizes that f gives of each spatial dimension, as "(4 x 4)".
template <class F>
std::string Spatial(int64_t spatial, F f) {
  Dims sizes;
  for (int64_t d = 0; d < spatial; ++d) sizes.push_back(f(d));
  return absl::StrCat("(", absl::StrJoin(sizes, " x "), ")");
}

// The shape of a convolution's result; checks all that decides it.
Dims ConvolvedSizes(IntSpan input, IntSpan weight, IntSpan stride, IntSpan padding, IntSpan dilation,
                    bool transposed, IntSpan output_padding, int64_t groups) {
  const int64_t n = input.size(), spatial = n - 2;
  MICA_CHECK(spatial >= 1 && spatial <= 3, "Number of dimensions (", n, ") of `input` with shape ",
             ShapeText(input), " is not 3 to 5; expected batch, channels and 1 to 3 spatial dimensions.");
  MICA_CHECK(weight.size() == n, "Number of dimensions (", weight.size(), ") of `weight` with shape ",
             ShapeText(weight), " is not (", n, ").");
  CheckList(stride, spatial, 1, "stride");
  CheckList(padding, spatial, 0, "padding");
  CheckList(dilation, spatial, 1, "dilation");
  if (transposed) CheckList(output_padding, spatial, 0, "output_padding");
  MICA_CHECK(groups > 0, "Number of groups `groups` (", groups, ") is not positive.");
  MICA_CHECK(groups <= std::max<int64_t>(weight[0], 1) && weight[0] % groups == 0, "Size (", weight[0],
             ") of dimension (0) of `weight` is no multiple of the number of groups (", groups, ").");
  const int64_t channels = input[1], expected = transposed ? weight[0] : weight[1] * groups;
  MICA_CHECK(channels == expected, "Given ", transposed ? "transposed=1" : absl::StrCat("groups=", groups),
             ", weight of size ", ShapeText(weight), ", expected input", ShapeText(input), " to have ",
             expected, " channels, but got ", channels, " channels instead.");
  Dims sizes = {input[0], transposed ? weight[1] * groups : weight[0]};
  for (int64_t d = 0; d < spatial; ++d) {
    const int64_t in = input[d + 2], kernel = weight[d + 2];
    MICA_CHECK(in <= kLargestStep && kernel >= 1 && kernel <= kLargestStep, "Size (", in, ") of `input` or (",
               kernel, ") of `weight` in spatial dimension (", d,
               ") is out of range; expected a kernel of at least 1 and sizes up to 2^31 - 1.");
    const int64_t reach = At(dilation, d) * (kernel - 1) + 1;
    if (transposed) {
      MICA_CHECK(in > 0, "Spatial dimension (", d, ") of `input` with shape ", ShapeText(input),
                 " is empty; a transposed convolution expects a size of at least 1.");
      MICA_CHECK(At(output_padding, d) < std::max(At(stride, d), At(dilation, d)), "Value (",
                 At(output_padding, d), ") of `output_padding` in spatial dimension (", d,
                 ") is not smaller than either `stride` (", At(stride, d), ") or `dilation` (",
                 At(dilation, d), ").");
      sizes.push_back((in - 1) * At(stride, d) - 2 * At(padding, d) + reach + At(output_padding, d));
    } else {
      MICA_CHECK(in + 2 * At(padding, d) >= reach, "Calculated padded input size per channel: ",
                 Spatial(spatial, [&](int64_t i) { return input[i + 2] + 2 * At(padding, i); }),
                 ". Kernel size: ",
                 Spatial(spatial, [&](int64_t i) { return At(dilation, i) * (weight[i + 2] - 1) + 1; }),
                 ". Kernel size can't be greater than actual input size.");
      sizes.push_back((in + 2 * At(padding, d) - reach) / At(stride, d) + 1);
    }
    MICA_CHECK(sizes.back() >= 0, "Output size (", sizes.back(), ") of spatial dimension (", d,
               ") is negative; expected a larger `input` or less `padding`.");
  }
  return sizes;
}

// Throws unless `grad_output` has the shape of the convolution's result.
void CheckGradient(const Tensor& grad_output, const Dims& convolved) {
  MICA_CHECK(grad_output.sizes() == IntSpan(convolved), "Shape ", ShapeText(grad_output.sizes()),
             " of `grad_output` is not the shape ", ShapeText(convolved), " of the convolution's result.");
}

}  // namespace

void convolution(MetaResult& result, const Tensor& input, const Tensor& weight, const Tensor& bias,
                 IntSpan stride, IntSpan padding, IntSpan dilation, bool transposed, IntSpan output_padding,
                 int64_t groups) {
  const Dims sizes = ConvolvedSizes(input.sizes(), weight.sizes(), stride, padding, dilation, transposed,
                                    output_padding, groups);
  CheckSameDType(input, weight, "input", "weight");
  CheckSameDevice(input, weight, "input", "weight");
  MICA_CHECK(!bias.defined() || (bias.ndim() == 1 && bias.sizes()[0] == sizes[1]), "Shape ",
             bias.defined() ? ShapeText(bias.sizes()) : "", " of `bias` is not [", sizes[1],
             "], the number of output channels.");
  if (bias.defined()) CheckSameDType(input, bias, "input", "bias");
  OutputSpec& out = AddOutput(result, sizes, input.dtype(), input.device());
  out.strides = StridesInFormatOf(input, sizes);
  if (out.strides.empty()) out.strides = StridesInFormatOf(weight, sizes);
  ComputeIn(result, input.dtype());
}

void _convolution_backward_input(MetaResult& result, const Tensor& grad_output, const Tensor& weight,
                                 IntSpan input_sizes, IntSpan stride, IntSpan padding, IntSpan dilation,
                                 bool transposed, IntSpan output_padding, int64_t groups) {
  CheckGradient(grad_output, ConvolvedSizes(input_sizes, weight.sizes(), stride, padding, dilation,
                                            transposed, output_padding, groups));
  CheckSameDType(grad_output, weight, "grad_output", "weight");
  CheckSameDevice(grad_output, weight, "grad_output", "weight");
  OutputSpec& out = AddOutput(result, input_sizes, grad_output.dtype(), grad_output.device());
  if (HasChannelsLast(grad_output)) out.strides = ChannelsLastStrides(input_sizes);
  ComputeIn(result, grad_output.dtype());
}

void _convolution_backward_weight(MetaResult& result, const Tensor& grad_output, const Tensor& input,
                                  IntSpan weight_sizes, IntSpan stride, IntSpan padding, IntSpan dilation,
                                  bool transposed, IntSpan output_padding, int64_t groups) {
  CheckGradient(grad_output, ConvolvedSizes(input.sizes(), weight_sizes, stride, padding, dilation,
                                            transposed, output_padding, groups));
  CheckSameDType(grad_output, input, "grad_output", "input");
  CheckSameDevice(grad_output, input, "grad_output", "input");
  AddOutput(result, weight_sizes, grad_output.dtype(), grad_output.device());
  ComputeIn(result, grad_output.dtype());
}

}  // namespace mica::meta
