// Deferred elements: a storage whose memory is made when somebody first needs it.
//
// A tensor over such a storage has the layer Opaque and, until it points into the memory, the flag of that
// name; its data pointer holds the offset alone. Whoever reads it in another thread may see it before or
// after that step, and asks again either way: the layer stays, and the step is the same for all.
#include "tensor/allocator.h"
#include "tensor/holder_lock.h"
#include "tensor/shape.h"
#include "tensor/storage.h"
#include "tensor/tensor.h"

namespace mica {

std::shared_ptr<DeferredElements> StorageImpl::deferred() {
  const HolderLock lock(this);
  return behind_ == Behind::kElements ? elements() : nullptr;
}

void StorageImpl::MakeMemory() {
  std::shared_ptr<DeferredElements> written = deferred();
  if (!written) return;
  CachingAllocator& allocator = AllocatorFor(device_);
  void* fresh = allocator.Allocate(nbytes_);
  try {
    written->WriteTo(fresh);
  } catch (...) {
    allocator.Free(fresh, nbytes_);
    throw;
  }
  {
    const HolderLock lock(this);
    if (behind_ == Behind::kElements) {
      elements().~shared_ptr();  // `written` is another reference: nothing is destroyed under the lock
      behind_ = Behind::kNothing;
      capacity_ = nbytes_;
      data_.store(std::exchange(fresh, nullptr), std::memory_order_release);
    }
  }
  if (fresh) allocator.Free(fresh, nbytes_);
}

void StorageImpl::MakeMemoryOf(TensorImpl* tensor) {
  MakeMemory();
  const HolderLock lock(this);
  if (!tensor->has_flag(MICA_TENSOR_OPAQUE)) return;
  void* const first = static_cast<char*>(data()) + reinterpret_cast<uintptr_t>(tensor->dl.data);
  __atomic_store_n(&tensor->dl.data, first, __ATOMIC_RELAXED);
  const uint64_t flags = (tensor->flags & ~MICA_TENSOR_OPAQUE) | MICA_TENSOR_HAS_DATA;
  __atomic_store_n(&tensor->flags, flags, __ATOMIC_RELEASE);
}

Tensor MakeDeferred(IntSpan sizes, DType dtype, Device device, std::shared_ptr<DeferredElements> elements) {
  int64_t nbytes;
  MICA_CHECK(!__builtin_mul_overflow(CheckedNumel(sizes), ItemSize(dtype), &nbytes),
             "Storage size calculation overflowed with sizes=", ShapeText(sizes),
             ": it needs more than 2^63 - 1 bytes of ", Name(dtype), ".");
  Storage storage = Storage::Deferred(nbytes, device, std::move(elements));
  Tensor t = Tensor::Steal(TensorImpl::Make(std::move(storage), 0, sizes, ContiguousStrides(sizes), dtype));
  t.impl()->flags |= MICA_TENSOR_OPAQUE;
  t.impl()->keys = t.impl()->keys | KeySet::Of(keys::kOpaque);
  return t;
}

}  // namespace mica
