// The tensors over a storage, found when its memory moves.
//
// A tensor holds the address of its first element, so that kernels and plugins read
// it at no cost; a storage knows how many tensors hold it, not which. When its memory
// moves (it grows, or goes to where other processes see it) all of them follow: every
// block of the small-block pool that may be a tensor is looked at, which takes about
// 2 ns each. Do not use on a hot path, nor while another thread uses those tensors.
#pragma once

#include "tensor/storage.h"

namespace mica::internal {

// Every tensor over `from`, whose memory began at `old_base`, becomes one over `to` at
// the same offset. `to` may be `from`, whose memory is then another by now.
void MoveTensors(StorageImpl* from, const void* old_base, StorageImpl* to);

// Calls visit(block, context) for each block of a size class that was ever given out,
// idle ones too; no block of the class is carved meanwhile.
void VisitSmallBlocks(int c, void (*visit)(void* block, void* context), void* context);

}  // namespace mica::internal
