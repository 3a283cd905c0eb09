// The pooling operators of the CPU backend.
#ifndef MICA_PLUGINS_CPU_POOLING_POOLING_H_
#define MICA_PLUGINS_CPU_POOLING_POOLING_H_

#include "mica/plugin.h"

namespace mica::cpu {

// Maxima and averages over windows of planes, given and adaptive, and their gradients.
void RegisterPooling(plugin::Registrar& registrar);

// max_pooling.cc. Indices are those of the flattened plane; a NaN wins.
void MaxPool2d(const MicaCall* call, MicaTensor* self, MicaIntSpan kernel_size, MicaIntSpan stride,
               MicaIntSpan padding, MicaIntSpan dilation, int32_t ceil_mode, MicaTensor* out,
               MicaTensor* indices);
void MaxPool2dBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor* self,
                       MicaIntSpan kernel_size, MicaIntSpan stride, MicaIntSpan padding, MicaIntSpan dilation,
                       int32_t ceil_mode, MicaTensor* indices, MicaTensor* grad_input);
void AdaptiveMaxPool2d(const MicaCall* call, MicaTensor* self, MicaIntSpan output_size, MicaTensor* out,
                       MicaTensor* indices);

// average_pooling.cc
void AvgPool2d(const MicaCall* call, MicaTensor* self, MicaIntSpan kernel_size, MicaIntSpan stride,
               MicaIntSpan padding, int32_t ceil_mode, int32_t count_include_pad, MicaOptInt divisor_override,
               MicaTensor* out);
void AvgPool2dBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor* self,
                       MicaIntSpan kernel_size, MicaIntSpan stride, MicaIntSpan padding, int32_t ceil_mode,
                       int32_t count_include_pad, MicaOptInt divisor_override, MicaTensor* grad_input);
void AdaptiveAvgPool2d(const MicaCall* call, MicaTensor* self, MicaIntSpan output_size, MicaTensor* out);
void AdaptiveAvgPool2dBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor* self,
                               MicaTensor* out);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_POOLING_POOLING_H_
