// Convolutions by cuDNN, behind plugins/gpu's Convolutions.
#pragma once

#include "plugins/gpu/libraries/convolutions.h"

namespace cuda {

// The convolutions of this process; never destroyed. cuDNN is opened at the first one, which takes some
// milliseconds, and loads its kernels at the first one on a device, which takes some tenths of a second.
gpu::Convolutions& GetCudnn();

}  // namespace cuda
