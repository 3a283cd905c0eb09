// The normalisation operators of the CPU backend that no class kernel serves.
#ifndef MICA_PLUGINS_CPU_NORMALIZATION_NORMALIZATION_H_
#define MICA_PLUGINS_CPU_NORMALIZATION_NORMALIZATION_H_

#include <mica/plugin.h>

namespace mica::cpu {

// native_batch_norm and its gradient. They are kernels of the functional form:
// `results` takes three tensors that the caller owns.
void RegisterNormalization(plugin::Registrar& registrar);

void NativeBatchNorm(const MicaCall* call, MicaTensor* input, MicaTensor* weight, MicaTensor* bias,
                     MicaTensor* running_mean, MicaTensor* running_var, int32_t training, double momentum,
                     double eps, MicaValue* results);
void NativeBatchNormBackward(const MicaCall* call, MicaTensor* grad_out, MicaTensor* input,
                             MicaTensor* weight, MicaTensor* running_mean, MicaTensor* running_var,
                             MicaTensor* save_mean, MicaTensor* save_invstd, int32_t train, double eps,
                             MicaBoolSpan output_mask, MicaValue* results);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_NORMALIZATION_NORMALIZATION_H_
