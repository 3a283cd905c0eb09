// The tensors over a storage, listed so that they follow when its memory moves.
//
// A tensor holds the address of its first element, so that kernels and plugins read it at no cost. When the
// memory of a storage moves (it grows, or goes to where other processes see it), every tensor over it gets
// its new address. Nearly all storages have one tensor: that one is `first_`, is in no list and pays one
// store. The others are linked through their TensorExtra, behind a lock of the storage's own.
#include <pthread.h>
#include <sched.h>

#include <vector>

#include "tensor/holder_lock.h"
#include "tensor/storage.h"
#include "tensor/tensor.h"

namespace mica {
namespace {

// What a held lock says: which process holds it. A child that was forked while another thread held one has
// none of its parent's threads, and takes the lock as free.
std::atomic<uint16_t> g_generation{1};
[[maybe_unused]] const bool g_forks_counted = [] {
  pthread_atfork(nullptr, nullptr, [] {
    uint16_t next = static_cast<uint16_t>(g_generation.load() + 1);
    g_generation.store(next ? next : 1);
  });
  return true;
}();

}  // namespace

StorageImpl::HolderLock::HolderLock(StorageImpl* storage) : lock_(storage->holder_lock_) {
  const uint16_t ours = g_generation.load(std::memory_order_relaxed);
  for (int spins = 0; lock_.exchange(ours, std::memory_order_acquire) == ours;)
    if (++spins % 64 == 0) sched_yield();
}

void StorageImpl::EnlistShared(TensorImpl* tensor) {
  if (!first_.load(std::memory_order_relaxed)) {
    const HolderLock lock(this);
    TensorImpl* nobody = nullptr;
    if (first_.compare_exchange_strong(nobody, tensor, std::memory_order_relaxed)) return;
  }
  TensorExtra& extra = tensor->EnsureExtra();
  const HolderLock lock(this);
  extra.previous_holder = nullptr;
  extra.next_holder = holders_;
  if (holders_) holders_->extra->previous_holder = tensor;
  holders_ = tensor;
}

void StorageImpl::DelistShared(TensorImpl* tensor) noexcept {
  const HolderLock lock(this);
  if (first_.load(std::memory_order_relaxed) == tensor) {
    first_.store(nullptr, std::memory_order_relaxed);
    return;
  }
  TensorExtra* const extra = tensor->extra;
  const bool listed = extra && (holders_ == tensor || extra->previous_holder);
  if (!listed) return;  // one that could not be enlisted
  if (extra->next_holder) extra->next_holder->extra->previous_holder = extra->previous_holder;
  (extra->previous_holder ? extra->previous_holder->extra->next_holder : holders_) = extra->next_holder;
  extra->next_holder = extra->previous_holder = nullptr;
}

void StorageImpl::MoveTensors(const void* old_base, StorageImpl* to) {
  const Storage kept = Storage::Borrow(this);
  if (to != this) {
    to->SetVersion(version());
    if (watched()) to->Watch();
  }
  const auto place = [&](TensorImpl* t) {
    const bool is_apart = t->has_flag(MICA_TENSOR_OPAQUE);  // made before the memory was: it has its offset
    const int64_t offset =
        static_cast<const char*>(t->dl.data) - static_cast<const char*>(is_apart ? nullptr : old_base);
    t->dl.data = static_cast<char*>(to->data()) + offset;
    t->set_flag(MICA_TENSOR_HAS_DATA, to->data() != nullptr);
    t->set_flag(MICA_TENSOR_OPAQUE, false);
  };
  // With the lock: a tensor that another thread drops meanwhile waits for it.
  const auto for_each = [this](auto&& f) {
    const HolderLock lock(this);
    if (TensorImpl* const first = first_.load(std::memory_order_relaxed)) f(first);
    for (TensorImpl* t = holders_; t; t = t->extra->next_holder) f(t);
  };
  if (to == this) return for_each(place);
  std::vector<TensorImpl*> tensors;
  for_each([&](TensorImpl* t) { tensors.push_back(t); });
  for (TensorImpl* t : tensors) {
    t->MoveTo(to);
    place(t);
  }
}

}  // namespace mica
