// Matrix products by cuBLAS, behind plugins/gpu's Products.
#pragma once

#include "plugins/gpu/libraries/products.h"

namespace cuda {

// The products of this process; never destroyed. cuBLAS is opened at the first product, which takes some
// milliseconds, and takes memory of a device at the first product there.
gpu::Products& GetCublas();

}  // namespace cuda
