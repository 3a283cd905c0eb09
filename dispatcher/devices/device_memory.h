// The memory of a plugin's device: its raw memory under the host's caching
// allocator, and copies of bytes between any two devices.
#pragma once

#include <cstdint>
#include <functional>

#include "tensor/tensor.h"

namespace mica {

// Puts a caching allocator over the backend's device table, once.
void RegisterDeviceMemory(int backend);

// `size` bytes between memory of two devices, one of which may be the CPU, in the
// order of the devices' current streams. When it returns, host memory has been
// read or written.
void CopyBytes(void* to, Device to_device, const void* from, Device from_device, int64_t size);
// Between a CPU tensor and a device's, of one layout and without gaps: only
// queued. Both are kept alive until it is done, and nobody may write what is read
// before that: memory of the host is pinned, so that who gave it knows, or the caller's own.
void CopyBytesLater(const Tensor& to, const Tensor& from);
// The same from a CPU tensor whose memory may be written as soon as this returns: it is copied aside first
// (unless it is a copy already, which nobody else has), or waited for where too much is aside.
void CopyBytesAside(const Tensor& to, const Tensor& from, bool aside_already);
// Calls `give_back` once the device has done all that was queued in its streams, on whatever thread: for
// memory of others that kernels may still use. At once where nothing is queued, or the device has ended;
// never where the process ends before. What a recorded graph uses at its replays is its maker's to keep.
void AfterQueuedWork(Device device, std::function<void()> give_back);
// Has fork() take the lock of what those copies and that work hold. Once, where the dispatcher is made.
void LockMemoryInUseAtFork();
// Gives back what those copies and that work are done with: whoever waits for a device calls it, the next
// such copy, and a device that has no memory left.
void GiveBackUnused();
// `size` bytes of the device's memory become `byte`, in the order of its current stream. False where the
// device declines (NOT_IMPLEMENTED), and nothing was written.
bool FillBytes(void* data, Device device, uint8_t byte, int64_t size);
// Between two devices of one backend, without the host. False where the backend
// cannot or declines (NOT_IMPLEMENTED), and nothing was copied.
bool CopyBetweenPeers(void* to, Device to_device, const void* from, Device from_device, int64_t size);

}  // namespace mica
