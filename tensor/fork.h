// Locks and fork(): a child finds every allocator unlocked, whatever the other threads of its parent held.
#pragma once

#include "tensor/allocator.h"

namespace mica {

// Has fork() lock an allocator that AllocatorFor does not know, as it does those that it knows.
void LockAtFork(CachingAllocator* of_no_device);

}  // namespace mica
