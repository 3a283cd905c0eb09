// The layer my_layer.flops, which counts, and my_layer::flops, which tells.
#pragma once

#include <mica/abi.h>

namespace my_layer {
void RegisterFlops(const MicaRegistrar* r);
}
