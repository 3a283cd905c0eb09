// The frame kind my_layer.interval and the operators that make and read its tensors.
#pragma once

#include <mica/abi.h>

namespace my_layer {
void RegisterInterval(const MicaRegistrar* r);
}
