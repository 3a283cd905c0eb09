// The memory of a plugin's device: its raw memory under the host's caching
// allocator, and copies of bytes between any two devices.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace mica {

// Puts a caching allocator over the backend's device table, once.
void RegisterDeviceMemory(int backend);

// `size` bytes between memory of two devices, one of which may be the CPU, in the
// order of the devices' current streams. When it returns, host memory has been
// read or written.
void CopyBytes(void* to, Device to_device, const void* from, Device from_device, int64_t size);
// Between a CPU tensor and a device's, of one layout and without gaps: only
// queued. Both are kept alive until it is done.
void CopyBytesLater(const Tensor& to, const Tensor& from);
// Lets go of what the copies that are done kept alive: whoever waits for a device calls it, the next such
// copy, and a device that has no memory left.
void ReleaseDoneCopies();
// Between two devices of one backend, without the host. False where the backend
// cannot, and nothing was copied.
bool CopyBetweenPeers(void* to, Device to_device, const void* from, Device from_device, int64_t size);

}  // namespace mica
