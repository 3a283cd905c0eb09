// The raw memory of the CPU: mappings for large blocks, aligned_alloc for the
// rest. Used by CachingAllocator alone; everybody else allocates through that.
#pragma once

#include "tensor/allocator.h"

namespace mica {

RawMemory* CpuMemory();

}  // namespace mica
