// What the plugins of all GPU backends register: the device, and the kit's kernels over it.
#pragma once

#include <mica/plugin.h>

#include "plugins/gpu/driver/driver.h"
#include "plugins/gpu/libraries/attention.h"
#include "plugins/gpu/libraries/convolutions.h"
#include "plugins/gpu/libraries/products.h"

namespace gpu {

// Called by a plugin's init. `driver`, and `products`, `convolutions` and `attention` (or NULL), live as long
// as the process.
void Register(const MicaHost* host, const MicaRegistrar* registrar, Driver& driver, Products* products,
              Convolutions* convolutions, Attention* attention = nullptr);

}  // namespace gpu
