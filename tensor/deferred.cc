// Deferred elements: a storage whose memory is made when somebody first needs it.
//
// A tensor over such a storage has the layer Opaque and, until it points into the memory, the flag of that
// name; its data pointer holds the offset alone. That step is taken under the storage's lock, pointer first:
// who reads the flag and finds it gone may read the pointer, who finds it set asks under the lock. The layer
// stays until the tensor is written.
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
  Storage made = written->InMemory();
  const HolderLock lock(this);
  if (behind_ != Behind::kElements) return;
  elements().~shared_ptr();  // `written` is another reference: nothing is destroyed under the lock
  data_.store(made->data(), std::memory_order_release);
  capacity_ = nbytes_;
  const auto release = [](void* memory) { static_cast<StorageImpl*>(memory)->Release(); };
  new (&owner()) Owner{release, made.release(), nullptr};
  behind_.store(Behind::kOwner, std::memory_order_release);  // last: is_deferred() says that memory is there
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

int64_t StorageImpl::OffsetOf(const TensorImpl* tensor) {
  const HolderLock lock(this);
  const auto first = reinterpret_cast<uintptr_t>(tensor->dl.data);
  const uintptr_t base = tensor->has_flag(MICA_TENSOR_OPAQUE) ? 0 : reinterpret_cast<uintptr_t>(data());
  return static_cast<int64_t>(first - base);
}

Tensor MakeDeferred(IntSpan sizes, DType dtype, Device device, std::shared_ptr<DeferredElements> elements) {
  int64_t nbytes;
  MICA_CHECK(!__builtin_mul_overflow(CheckedNumel(sizes), ItemSize(dtype), &nbytes),
             "Storage size calculation overflowed with sizes=", ShapeText(sizes),
             ": it needs more than 2^63 - 1 bytes of ", Name(dtype), ".");
  Storage storage = Storage::Deferred(nbytes, device, std::move(elements));
  Tensor t = Tensor::Steal(TensorImpl::Make(std::move(storage), 0, sizes, ContiguousStrides(sizes), dtype));
  t.impl()->keys = t.impl()->keys | KeySet::Of(keys::kOpaque);
  return t;
}

}  // namespace mica
