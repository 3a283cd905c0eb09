// Poisoned memory, for tests: with MICA_POISON_MEMORY=<0..255> in the environment every block that is handed
// out holds that byte everywhere, so that a kernel which reads what nobody wrote gives NaN, -1 or a wild
// index (255) and not, by luck, the zeros of fresh pages or a former result.
//
// Read once, at the first block. Without the variable nothing is filled, and no path takes an instruction
// more than a request to the allocators' slow paths.
#pragma once

#include <cstdint>

namespace mica::internal {

// Whether blocks are to be filled.
bool PoisonsMemory();
// Fills the block, if blocks are to be filled.
void Poison(void* block, int64_t size);

}  // namespace mica::internal
