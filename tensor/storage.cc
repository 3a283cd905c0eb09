// Storage: where blocks come from and go to.
#include "tensor/storage.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <unordered_map>
#include <unordered_set>

#include "tensor/allocator.h"
#include "tensor/error.h"
#include "tensor/loan.h"
#include "tensor/small_pool.h"

namespace mica {

namespace {

// The header's share of a block that holds data too, so that the data is
// 64-byte aligned.
constexpr int64_t kHeaderBytes = kMicaShuffledBytes == 0 ? 64 : 128;
static_assert(sizeof(StorageImpl) <= kHeaderBytes);
constexpr int kHeaderClass = internal::SmallClass(kHeaderBytes);
constexpr int kForeignClass = internal::SmallClass(2 * kHeaderBytes);
constexpr int64_t kMaxInline = internal::kMaxSmallBlock - kHeaderBytes;

// The numbers of the storages that were asked for one and are still there.
struct Numbers {
  std::mutex mutex;
  std::unordered_map<const StorageImpl*, int64_t> of;
  std::unordered_set<int64_t> living;
  int64_t last = 0;
};
Numbers& TheNumbers() {
  static auto* numbers = new Numbers;  // storages outlive static objects
  return *numbers;
}

}  // namespace

Storage Storage::Allocate(int64_t nbytes, Device device) {
  if (!device.is_cpu() || static_cast<uint64_t>(nbytes) > static_cast<uint64_t>(kMaxInline))
    return AllocateApart(nbytes, device);
  const int c = internal::SmallClass(kHeaderBytes + std::max<int64_t>(nbytes, 1));
  auto* impl = new (internal::SmallAllocate(c)) StorageImpl();
  impl->data_.store(impl->behind_header(), std::memory_order_relaxed);
  impl->nbytes_ = nbytes;
  impl->capacity_ = internal::SmallClassSize(c) - kHeaderBytes;
  impl->inline_data_ = true;
  impl->block_class_ = static_cast<uint8_t>(c);
  MICA_POISON_BLOCK(static_cast<char*>(impl->data()) + nbytes, impl->capacity_ - nbytes);
  Storage result;
  result.impl_ = impl;
  return result;
}

Storage Storage::AllocateApart(int64_t nbytes, Device device) {
  MICA_CHECK_VALUE(nbytes >= 0, "The size (", nbytes, ") of a storage is negative.");
  void* data = device.is_meta() ? nullptr : AllocatorFor(device).Allocate(nbytes);
  void* header;
  try {
    header = internal::SmallAllocate(kHeaderClass);
  } catch (...) {
    if (data) AllocatorFor(device).Free(data, nbytes);
    throw;
  }
  auto* impl = new (header) StorageImpl();
  impl->data_.store(data, std::memory_order_relaxed);
  impl->nbytes_ = nbytes;
  impl->capacity_ = nbytes;
  impl->device_ = device;
  impl->block_class_ = kHeaderClass;
  Storage result;
  result.impl_ = impl;
  return result;
}

Storage Storage::FromMemory(void* data, int64_t nbytes, Device device, void (*deleter)(void*), void* context,
                            StorageImpl* base) {
  MICA_CHECK_VALUE(nbytes >= 0, "The size (", nbytes, ") of a storage is negative.");
  auto* impl = new (internal::SmallAllocate(kForeignClass)) StorageImpl();
  impl->data_.store(data, std::memory_order_relaxed);
  impl->nbytes_ = nbytes;
  impl->capacity_ = nbytes;
  impl->device_ = device;
  impl->resizable_ = false;
  impl->block_class_ = kForeignClass;
  impl->behind_ = StorageImpl::Behind::kOwner;
  new (&impl->owner()) StorageImpl::Owner{deleter, context, base};
  if (base) base->aliases_.fetch_add(1, std::memory_order_relaxed);
  Storage result;
  result.impl_ = impl;
  return result;
}

void StorageImpl::Resize(int64_t nbytes, bool keep) {
  MICA_CHECK_VALUE(nbytes >= 0, "The size (", nbytes, ") of a storage is negative.");
  MakeMemory();
  if (device_.is_meta() && resizable_) {
    nbytes_ = capacity_ = nbytes;
    return;
  }
  if (nbytes <= capacity_ && (resizable_ || nbytes <= nbytes_)) {
    if (inline_data_) {
      MICA_UNPOISON_BLOCK(data(), nbytes);
      MICA_POISON_BLOCK(static_cast<char*>(data()) + nbytes, capacity_ - nbytes);
    }
    nbytes_ = nbytes;
    return;
  }
  const bool is_foreign = behind_ == Behind::kOwner;
  MICA_CHECK(resizable_ || (is_foreign && IsLent(this)),
             "Trying to resize storage that is not resizable: the storage (", nbytes_, " bytes) ",
             is_foreign ? "holds foreign memory" : "has given its address away, as to a NumPy array",
             " and cannot grow to ", nbytes, " bytes.");
  MICA_CHECK(aliases_.load(std::memory_order_acquire) == 0,
             "Trying to resize storage that is not resizable now: a tensor that `.data` gave shows its ",
             nbytes_, " bytes and would not follow; let that tensor go first.");
  CachingAllocator& allocator = AllocatorFor(device_);
  void* fresh = allocator.Allocate(nbytes);
  if (keep && nbytes_ > 0) {
    try {
      allocator.Copy(fresh, data(), nbytes_);
    } catch (...) {
      allocator.Free(fresh, nbytes);
      throw;
    }
  }
  void* const old = data_.exchange(fresh);
  MoveTensors(old, this);
  FreeMemory(old);
  resizable_ = true;
  nbytes_ = capacity_ = nbytes;
  inline_data_ = false;
}

Storage Storage::Deferred(int64_t nbytes, Device device, std::shared_ptr<DeferredElements> elements) {
  MICA_CHECK_VALUE(nbytes >= 0, "The size (", nbytes, ") of a storage is negative.");
  auto* impl = new (internal::SmallAllocate(kForeignClass)) StorageImpl();
  impl->nbytes_ = nbytes;
  impl->device_ = device;
  impl->block_class_ = kForeignClass;
  impl->behind_ = StorageImpl::Behind::kElements;
  new (&impl->elements()) std::shared_ptr<DeferredElements>(std::move(elements));
  Storage result;
  result.impl_ = impl;
  return result;
}

void* StorageImpl::behind_header() { return reinterpret_cast<char*>(this) + kHeaderBytes; }
StorageImpl::Owner& StorageImpl::owner() { return *static_cast<Owner*>(behind_header()); }
std::shared_ptr<DeferredElements>& StorageImpl::elements() {
  return *static_cast<std::shared_ptr<DeferredElements>*>(behind_header());
}

void StorageImpl::FreeMemory(void* data) {
  const Behind behind = behind_.exchange(Behind::kNothing);
  if (behind == Behind::kElements) {
    elements().~shared_ptr();
  } else if (behind == Behind::kOwner) {
    if (owner().base) owner().base->aliases_.fetch_sub(1, std::memory_order_release);
    if (owner().deleter) owner().deleter(owner().context);
  } else if (!inline_data_ && data) {
    AllocatorFor(device_).Free(data, capacity_);
  }
}

void StorageImpl::Pin() {
  resizable_ = false;
  if (behind_ == Behind::kOwner && owner().base) owner().base->Pin();
}

int64_t StorageImpl::Number() {
  Numbers& numbers = TheNumbers();
  const std::lock_guard lock(numbers.mutex);
  const auto [place, fresh] = numbers.of.try_emplace(this, numbers.last + 1);
  if (fresh) numbers.living.insert(++numbers.last);
  numbered_ = true;
  return place->second;
}

bool StorageImpl::Lives(int64_t number) {
  Numbers& numbers = TheNumbers();
  const std::lock_guard lock(numbers.mutex);
  return numbers.living.count(number) > 0;
}

__attribute__((noinline)) void StorageImpl::LeaveMemory() {
  if (numbered_) {
    Numbers& numbers = TheNumbers();
    const std::lock_guard lock(numbers.mutex);
    const auto place = numbers.of.find(this);
    numbers.living.erase(place->second);
    numbers.of.erase(place);
  }
  FreeMemory(data());
}

void StorageImpl::Destroy() {
  if (numbered_ || !inline_data_) LeaveMemory();
  const int c = block_class_;
  this->~StorageImpl();
  internal::SmallFree(this, c);
}

}  // namespace mica
