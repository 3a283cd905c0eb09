// native_layer_norm and its gradient, as kernels of the functional form:
// `results` takes three tensors that the caller owns.
#ifndef MICA_PLUGINS_CPU_REDUCE_LAYER_NORM_H_
#define MICA_PLUGINS_CPU_REDUCE_LAYER_NORM_H_

#include <mica/abi.h>

namespace mica::cpu {

// Dense float32 and float64 alone; declines the rest, which the decomposition
// serves. `mean` and `rstd` have the input's shape with ones at the end.
void NativeLayerNorm(const MicaCall* call, MicaTensor* input, MicaIntSpan normalized_shape,
                     MicaTensor* weight, MicaTensor* bias, double eps, MicaValue* results);
void NativeLayerNormBackward(const MicaCall* call, MicaTensor* grad_out, MicaTensor* input,
                             MicaIntSpan normalized_shape, MicaTensor* mean, MicaTensor* rstd,
                             MicaTensor* weight, MicaTensor* bias, MicaBoolSpan output_mask,
                             MicaValue* results);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_LAYER_NORM_H_
