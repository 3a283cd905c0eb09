#include "plugins/cpu/normalization/normalization.h"

namespace mica::cpu {

void RegisterNormalization(plugin::Registrar& r) {
  r.Kernel<&NativeBatchNorm>("native_batch_norm");
  r.Kernel<&NativeBatchNormBackward>("native_batch_norm_backward");
}

}  // namespace mica::cpu
