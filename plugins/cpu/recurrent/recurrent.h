// A direction of a recurrent layer in one call.
#ifndef MICA_PLUGINS_CPU_RECURRENT_RECURRENT_H_
#define MICA_PLUGINS_CPU_RECURRENT_RECURRENT_H_

#include <mica/plugin.h>

namespace mica::cpu {

void RegisterRecurrent(plugin::Registrar& registrar);

// _recurrent_layer in the functional form: a float32 LSTM whose samples are all of one length. Other
// layers are the composite's.
void RecurrentLayer(const MicaCall* call, MicaTensor* gates, MicaTensor* weight, MicaTensor* bias,
                    MicaTensor* h0, MicaTensor* c0, MicaIntSpan batch_sizes, int64_t mode, int32_t reverse,
                    MicaValue* results);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_RECURRENT_RECURRENT_H_
