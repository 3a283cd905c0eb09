// Storage: a reference-counted block of device memory and what all views of it
// share, the version counter among them.
//
// A small CPU block lies directly behind its Storage header, in one allocation
// from the caching allocator. Always holds: data() is 64-byte aligned for CPU
// blocks made here; the deleter runs once, when the last reference goes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "tensor/device.h"
#include "tensor/private_struct.h"

namespace mica {

struct TensorImpl;

class Storage;

// Elements that lie elsewhere until somebody reads or writes them: in a layout of a plugin's own.
struct DeferredElements {
  virtual ~DeferredElements() = default;
  // They, in fresh memory of the storage's size and device. May run in several threads at once.
  virtual Storage InMemory() = 0;
};

class StorageImpl {
 public:
  void* data() const { return data_.load(std::memory_order_acquire); }
  int64_t nbytes() const { return nbytes_; }
  Device device() const { return device_; }
  // The version, bumped by every in-place write through any view.
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void BumpVersion() { version_.fetch_add(1, std::memory_order_relaxed); }
  void SetVersion(uint32_t v) { version_.store(v, std::memory_order_relaxed); }
  // Whether writes are logged by name (dispatcher/calls/write_log.h).
  bool watched() const { return watched_.load(std::memory_order_relaxed); }
  void Watch() { watched_.store(true, std::memory_order_relaxed); }
  bool resizable() const { return resizable_; }
  // Its memory stays where it is from now on, and so does that of the storage whose memory it shows: somebody
  // reads it by address, such as a NumPy array, and holds the storage.
  void Pin();
  // Gives the block a new size, keeping the old contents up to the smaller one.
  // data() may change, so growing throws unless resizable() and without aliases; the tensors over it follow.
  // The contents are copied on their device, in the order of its current stream.
  void Resize(int64_t nbytes, bool keep = true);

  void Retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) Destroy();
  }
  uint32_t use_count() const { return refs_.load(std::memory_order_relaxed); }
  bool is_deferred() const { return behind_.load(std::memory_order_acquire) == Behind::kElements; }
  // Its elements where they are still deferred; else NULL.
  std::shared_ptr<DeferredElements> deferred();
  // Gives a storage of deferred elements its memory, if nobody has. Several threads may write it; the first
  // one's is kept. No lock is held meanwhile.
  void MakeMemory();
  // Makes the memory, and has `tensor`, which was made without, point there.
  void MakeMemoryOf(TensorImpl* tensor);
  // Where the first element of such a tensor is, from the beginning, while other threads may make the memory.
  int64_t OffsetOf(const TensorImpl* tensor);
  // Its own number, above 0, which no other storage ever gets: what a weak reference keeps.
  int64_t Number();
  // Whether the storage of this number is still there.
  static bool Lives(int64_t number);

  // The tensors over it, listed for when its memory moves (holders.cc). `tensor` holds a reference meanwhile;
  // where it is the only one, nobody else knows the storage.
  void Enlist(TensorImpl* tensor) {
    if (use_count() == 1)
      first_.store(tensor, std::memory_order_relaxed);
    else
      EnlistShared(tensor);
  }
  void Delist(TensorImpl* tensor) noexcept {
    if (use_count() > 1) DelistShared(tensor);
  }
  // Every tensor over it becomes one over `to` at the same offset from `old_base`, where the memory began.
  // `to` may be this one, whose memory is then another by now. No other thread may use those tensors
  // meanwhile.
  void MoveTensors(const void* old_base, StorageImpl* to);

 private:
  friend class Storage;
  using Deleter = void (*)(void* context);
  // Of foreign memory; behind the header.
  struct Owner {
    Deleter deleter;
    void* context;
    StorageImpl* base;  // whose memory it is, or NULL; kept alive by what the deleter releases
  };
  StorageImpl() = default;
  void Destroy();
  void* behind_header();
  Owner& owner();
  std::shared_ptr<DeferredElements>& elements();
  void FreeMemory(void* data);
  void LeaveMemory();  // and its number
  enum class Behind : uint8_t { kNothing, kOwner, kElements };
  class HolderLock;
  void EnlistShared(TensorImpl* tensor);
  void DelistShared(TensorImpl* tensor) noexcept;

  MICA_PRIVATE_STRUCT;
  std::atomic<uint32_t> refs_{1};
  std::atomic<uint32_t> version_{0};
  std::atomic<void*> data_{nullptr};
  int64_t nbytes_ = 0;
  Device device_;
  bool resizable_ = true;
  std::atomic<bool> watched_{false};
  bool numbered_ = false;                         // Number() was asked for
  bool inline_data_ = false;                      // data_ lies behind this header
  std::atomic<Behind> behind_{Behind::kNothing};  // the header; nothing: the device's allocator has data_
  uint8_t block_class_ = 0;  // small-pool class of the block that begins with this header
  std::atomic<uint16_t> holder_lock_{0};
  std::atomic<uint32_t> aliases_{0};         // storages over its memory
  int64_t capacity_ = 0;                     // bytes at data_, at least nbytes_
  std::atomic<TensorImpl*> first_{nullptr};  // a tensor over it that is in no list; changed under the lock
  TensorImpl* holders_ = nullptr;            // the others, linked through their TensorExtra
};

// A counted reference to a StorageImpl.
class Storage {
 public:
  Storage() = default;
  Storage(const Storage& o) : impl_(o.impl_) {
    if (impl_) impl_->Retain();
  }
  Storage(Storage&& o) noexcept : impl_(std::exchange(o.impl_, nullptr)) {}
  Storage& operator=(Storage o) noexcept {
    std::swap(impl_, o.impl_);
    return *this;
  }
  ~Storage() {
    if (impl_) impl_->Release();
  }

  // `nbytes` fresh, uninitialised bytes from the device's caching allocator.
  // Meta storages have no memory. Throws kOutOfMemory with device, request and
  // what is in use.
  static Storage Allocate(int64_t nbytes, Device device);
  // Foreign memory; `deleter(context)` runs when the last reference goes. Where it is that of another
  // storage, an alias of that, `context` keeps `base` alive.
  static Storage FromMemory(void* data, int64_t nbytes, Device device, void (*deleter)(void*), void* context,
                            StorageImpl* base = nullptr);
  // `nbytes` that `elements` writes when they are first read or written; until then there is no memory.
  static Storage Deferred(int64_t nbytes, Device device, std::shared_ptr<DeferredElements> elements);

  static Storage Borrow(StorageImpl* impl) {
    if (impl) impl->Retain();
    Storage s;
    s.impl_ = impl;
    return s;
  }
  StorageImpl* release() { return std::exchange(impl_, nullptr); }
  explicit operator bool() const { return impl_ != nullptr; }
  StorageImpl* operator->() const { return impl_; }
  StorageImpl* get() const { return impl_; }
  bool operator==(const Storage& o) const { return impl_ == o.impl_; }

 private:
  // Memory with a header of its own: of a device, or larger than the small blocks.
  static Storage AllocateApart(int64_t nbytes, Device device);

  StorageImpl* impl_ = nullptr;
};

}  // namespace mica
