// What each folder of the CPU plugin registers; plugin.cc calls all of them.
#ifndef MICA_PLUGINS_CPU_KERNELS_H_
#define MICA_PLUGINS_CPU_KERNELS_H_

#include <mica/plugin.h>

namespace mica::cpu {

// engine/copy.cc: copy_
void RegisterCopy(plugin::Registrar& registrar);

// reduce/layer_norm.cc: native_layer_norm and its gradient
void RegisterLayerNorm(plugin::Registrar& registrar);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_KERNELS_H_
