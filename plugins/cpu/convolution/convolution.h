// The convolution operators of the CPU backend.
//
// All three directions, ordinary and transposed, are one of the three tasks of
// libraries.h: a transposed convolution is the gradient of an ordinary one for its
// input, and so on round. float32 runs in winograd.h, oneDNN or unfolded.h, the half types
// convert to float32, other dtypes run in unfolded.h.
#ifndef MICA_PLUGINS_CPU_CONVOLUTION_CONVOLUTION_H_
#define MICA_PLUGINS_CPU_CONVOLUTION_CONVOLUTION_H_

#include <mica/plugin.h>

namespace mica::cpu {

// convolution, _convolution_backward_input, _convolution_backward_weight.
void RegisterConvolution(plugin::Registrar& registrar);

void Convolution(const MicaCall* call, MicaTensor* input, MicaTensor* weight, MicaTensor* bias,
                 MicaIntSpan stride, MicaIntSpan padding, MicaIntSpan dilation, int32_t transposed,
                 MicaIntSpan output_padding, int64_t groups, MicaTensor* out);
void ConvolutionBackwardInput(const MicaCall* call, MicaTensor* grad_output, MicaTensor* weight,
                              MicaIntSpan input_sizes, MicaIntSpan stride, MicaIntSpan padding,
                              MicaIntSpan dilation, int32_t transposed, MicaIntSpan output_padding,
                              int64_t groups, MicaTensor* out);
void ConvolutionBackwardWeight(const MicaCall* call, MicaTensor* grad_output, MicaTensor* input,
                               MicaIntSpan weight_sizes, MicaIntSpan stride, MicaIntSpan padding,
                               MicaIntSpan dilation, int32_t transposed, MicaIntSpan output_padding,
                               int64_t groups, MicaTensor* out);
// columns.cc
void Col2im(const MicaCall* call, MicaTensor* self, MicaIntSpan output_size, MicaIntSpan kernel_size,
            MicaIntSpan dilation, MicaIntSpan padding, MicaIntSpan stride, MicaTensor* out);
void UnfoldBackward(const MicaCall* call, MicaTensor* grad_in, MicaIntSpan input_sizes, int64_t dim,
                    int64_t size, int64_t step, MicaTensor* out);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_CONVOLUTION_CONVOLUTION_H_
