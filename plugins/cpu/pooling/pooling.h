// The pooling operators of the CPU backend.
//
// Maxima and averages over windows of planes of `kSpatial` (2 or 3) dimensions, given
// and adaptive, and their gradients. Indices are those of the flattened plane; a NaN wins.
#ifndef MICA_PLUGINS_CPU_POOLING_POOLING_H_
#define MICA_PLUGINS_CPU_POOLING_POOLING_H_

#include <mica/plugin.h>

namespace mica::cpu {

void RegisterMaxPooling(plugin::Registrar& registrar);      // max_pooling.cc
void RegisterAveragePooling(plugin::Registrar& registrar);  // average_pooling.cc

template <int32_t kSpatial>
void MaxPool(const MicaCall* call, MicaTensor* self, MicaIntSpan kernel_size, MicaIntSpan stride,
             MicaIntSpan padding, MicaIntSpan dilation, int32_t ceil_mode, MicaTensor* out,
             MicaTensor* indices);
template <int32_t kSpatial>
void MaxPoolBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor* self, MicaIntSpan kernel_size,
                     MicaIntSpan stride, MicaIntSpan padding, MicaIntSpan dilation, int32_t ceil_mode,
                     MicaTensor* indices, MicaTensor* grad_input);
template <int32_t kSpatial>
void AdaptiveMaxPool(const MicaCall* call, MicaTensor* self, MicaIntSpan output_size, MicaTensor* out,
                     MicaTensor* indices);

template <int32_t kSpatial>
void AvgPool(const MicaCall* call, MicaTensor* self, MicaIntSpan kernel_size, MicaIntSpan stride,
             MicaIntSpan padding, int32_t ceil_mode, int32_t count_include_pad, MicaOptInt divisor_override,
             MicaTensor* out);
template <int32_t kSpatial>
void AvgPoolBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor* self, MicaIntSpan kernel_size,
                     MicaIntSpan stride, MicaIntSpan padding, int32_t ceil_mode, int32_t count_include_pad,
                     MicaOptInt divisor_override, MicaTensor* grad_input);
template <int32_t kSpatial>
void AdaptiveAvgPool(const MicaCall* call, MicaTensor* self, MicaIntSpan output_size, MicaTensor* out);
template <int32_t kSpatial>
void AdaptiveAvgPoolBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor* self,
                             MicaTensor* out);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_POOLING_POOLING_H_
