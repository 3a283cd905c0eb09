// Matrix products by cuBLAS, behind plugins/gpu's Products.
#pragma once

#include <string>

#include "plugins/gpu/libraries/products.h"

namespace cuda {

// The products of this process; never destroyed. cuBLAS is opened at the first product, which takes some
// milliseconds, and takes memory of a device at the first product there.
gpu::Products& GetCublas();

// Why there is no cuBLAS, as a sentence; empty where there is one. Throws nothing.
const std::string& CublasMissing();

}  // namespace cuda
