// Pinned memory: host memory that a device reads and writes by itself, so that a copy
// between the two need not make the host wait (`non_blocking`).
//
// A pinned tensor is a CPU tensor whose storage came from `pinned_allocate` of a
// device table. Its blocks are kept in a cache of the backend. Nothing else differs: a
// kernel sees a CPU tensor, and a copy under way keeps its ends alive as any does.
#pragma once

#include "tensor/allocator.h"
#include "tensor/tensor.h"

namespace mica {

// Whether the backend has pinned memory: both functions in its table.
bool HasPinnedMemory(int backend);
// The backend that is meant without a name: the first with pinned memory. Throws a
// kNotImplemented Error that says what lacks where there is none.
int PinningBackend();
// A pinned CPU tensor of the shape, dtype and strides of `t`, a CPU tensor, with its
// values; `t` itself where it is pinned.
Tensor PinMemory(const Tensor& t, int backend);
// The same without its values, for a backend that has pinned memory. Dense strides stay.
Tensor EmptyPinned(const Tensor& t, int backend);
bool IsPinned(const Tensor& t);
// Has fork() take the lock of what is pinned. Once, where the dispatcher is made.
void LockPinnedMemoryAtFork();
// Where a backend's pinned blocks come from and go to; lives for good.
CachingAllocator& PinnedCacheOf(int backend);

}  // namespace mica
