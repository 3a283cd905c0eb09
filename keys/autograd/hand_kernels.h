// Kernels of the autograd layer that are not generated: detach, as_strided, the
// refusal of out= and resize_, and operators without a formula.
#pragma once

#include "dispatcher/registration/registration.h"

namespace mica::autograd {

// Registers them, and what the layer does with operators that have neither
// formula nor decomposition.
void RegisterHandKernels(Scope& scope);

}  // namespace mica::autograd
