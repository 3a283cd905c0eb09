// The lock of one storage, held for a few instructions: over the list of its tensors, and over elements that
// are deferred.
#pragma once

#include "tensor/storage.h"

namespace mica {

class StorageImpl::HolderLock {
 public:
  explicit HolderLock(StorageImpl* storage);
  ~HolderLock() { lock_.store(0, std::memory_order_release); }
  HolderLock(const HolderLock&) = delete;
  HolderLock& operator=(const HolderLock&) = delete;

 private:
  std::atomic<uint16_t>& lock_;
};

}  // namespace mica
