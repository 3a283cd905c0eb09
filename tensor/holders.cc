// Finds tensors by what stands in them. A live tensor has its storage's address, and
// its shape and strides point into itself or, with many dimensions, to the heap;
// TensorImpl::Destroy clears the storage's address, so no block that was a tensor is
// taken for one.
#include "tensor/holders.h"

#include "tensor/small_pool.h"
#include "tensor/tensor.h"

namespace mica::internal {
namespace {

struct Move {
  StorageImpl* from;
  const char* old_base;
  StorageImpl* to;
};

// Idle blocks are poisoned, and other threads may be at work in blocks that are no
// tensor of ours: the reads are of words that match by chance in neither.
__attribute__((no_sanitize("address", "thread"))) void MoveOne(void* block, void* context) {
  const auto& move = *static_cast<const Move*>(context);
  auto* impl = static_cast<TensorImpl*>(block);
  if (impl->storage != move.from || impl->dl.ndim < 0) return;
  const bool inside =
      impl->dl.shape == impl->dims_inline && impl->dl.strides == impl->dims_inline + kInlineDims;
  const bool outside = impl->dl.ndim > kInlineDims && impl->dl.strides == impl->dl.shape + impl->dl.ndim;
  if (!inside && !outside) return;
  const int64_t offset = static_cast<const char*>(impl->dl.data) - move.old_base;
  impl->dl.data = static_cast<char*>(move.to->data()) + offset;
  impl->set_flag(MICA_TENSOR_HAS_DATA, move.to->data() != nullptr);
  if (move.to == move.from) return;
  move.to->Retain();
  impl->storage = move.to;
  move.from->Release();
}

}  // namespace

void MoveTensors(StorageImpl* from, const void* old_base, StorageImpl* to) {
  const Storage kept = Storage::Borrow(from);
  if (to != from) {
    to->SetVersion(from->version());
    if (from->watched()) to->Watch();
  }
  Move move{from, static_cast<const char*>(old_base), to};
  VisitSmallBlocks(SmallClass(sizeof(TensorImpl)), MoveOne, &move);
}

}  // namespace mica::internal
