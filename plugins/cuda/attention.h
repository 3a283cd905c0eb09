// Attention by cuDNN, behind plugins/gpu's Attention.
#pragma once

#include "plugins/gpu/libraries/attention.h"

namespace cuda {

// The attention of this process; never destroyed. cuDNN is opened at the first one, and compiles kernels for
// a shape when it is first seen, which takes some tenths of a second.
gpu::Attention& GetCudnnAttention();

}  // namespace cuda
