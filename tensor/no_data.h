// The key of tensors without memory: of a Python subclass that wraps other tensors. They
// have a shape, a dtype and a device; their storage says how many bytes there would be, and
// its data pointer is NULL.
//
// Lowest of the layers: an operator that no layer above has taken from such a tensor ends
// there, with an error, before a backend's kernel reads from NULL. Views inherit the key.
#pragma once

#include "tensor/key_set.h"

namespace mica::keys {
inline constexpr int kNoData = 24;
}  // namespace mica::keys
