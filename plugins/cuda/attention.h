// Attention by cuDNN, behind plugins/gpu's Attention.
#pragma once

#include "plugins/gpu/libraries/attention.h"

namespace cuda {

// The attention of this process; never destroyed. cuDNN is opened at the first one, and compiles kernels for
// a shape when a machine first sees it, which takes some tenths of a second to a second.
gpu::Attention& GetCudnnAttention();

}  // namespace cuda
