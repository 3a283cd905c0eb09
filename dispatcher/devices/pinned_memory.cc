#include "dispatcher/devices/pinned_memory.h"

#include <pthread.h>

#include <array>
#include <map>
#include <mutex>

#include "dispatcher/devices/device_copy.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/devices/driven_table.h"
#include "dispatcher/devices/late_errors.h"
#include "dispatcher/plugins/status.h"
#include "tensor/allocator.h"
#include "tensor/fork.h"
#include "tensor/shape.h"

namespace mica {
namespace {

// The raw memory of one backend's cache. A block goes back to the table that gave it.
class PinnedMemory : public RawMemory {
 public:
  explicit PinnedMemory(int backend) : backend_(backend) {}

  const char* Name() const override { return "pinned memory of the host"; }
  void* Allocate(int, int64_t size, uint64_t) override {
    const MicaDeviceTable& table = DeviceTableOf({static_cast<int16_t>(backend_), 0});
    MICA_CHECK_IMPLEMENTED(HasPinnedMemory(backend_), "The device (", BackendName(backend_),
                           ") has no pinned memory: `pinned_allocate` lacks in its table.");
    void* data = nullptr;
    const Device device = DeviceOfPinned(table);
    const MicaStatus s = table.pinned_allocate(table.context, size, &data);
    if (!s) {
      const std::lock_guard lock(mutex_);
      givers_[data] = &table;
      return data;
    }
    if (CodeOf(s) != MICA_ERROR_OUT_OF_MEMORY) RaiseReported(device, s);
    DropStatus(s);
    return nullptr;
  }
  void Free(int, void* data, int64_t size, uint64_t) override {
    // Ended, or of before a fork, which another thread's hold of the mutex may have come through.
    if (!LiveDeviceTable(backend_)) return;
    const MicaDeviceTable* giver;
    {
      const std::lock_guard lock(mutex_);
      giver = givers_[data];
      givers_.erase(data);
    }
    const Device device = DeviceOfPinned(*giver);
    KeepLate(device, giver->pinned_free(giver->context, data, size));
  }

 private:
  const int backend_;
  std::mutex mutex_;
  std::map<void*, const MicaDeviceTable*> givers_;
};

// The blocks in use, by address, and the caches, by backend. Never destroyed: tensors
// may outlive statics.
struct Pinned {
  std::mutex mutex;
  std::map<const void*, CachingAllocator*> blocks;
  std::array<CachingAllocator*, keys::kBackendCount> caches{};
};
Pinned& AllPinned() {
  static Pinned* pinned = new Pinned();
  return *pinned;
}

void FreePinned(void* data) {
  Pinned& pinned = AllPinned();
  CachingAllocator* cache;
  {
    const std::lock_guard lock(pinned.mutex);
    const auto found = pinned.blocks.find(data);
    cache = found->second;
    pinned.blocks.erase(found);
  }
  cache->FreeUnsized(data);
}

}  // namespace

void LockPinnedMemoryAtFork() {
  pthread_atfork([] { AllPinned().mutex.lock(); }, [] { AllPinned().mutex.unlock(); },
                 [] { AllPinned().mutex.unlock(); });
}

CachingAllocator& PinnedCacheOf(int backend) {
  Pinned& pinned = AllPinned();
  const std::lock_guard lock(pinned.mutex);
  CachingAllocator*& cache = pinned.caches[static_cast<size_t>(backend)];
  if (!cache) {
    cache = new CachingAllocator({static_cast<int16_t>(backend), 0}, new PinnedMemory(backend));
    LockAtFork(cache);
  }
  return *cache;
}

bool HasPinnedMemory(int backend) {
  const MicaDeviceTable* table = backend > keys::kMeta ? LiveDeviceTable(backend) : nullptr;
  return table && table->pinned_allocate && table->pinned_free;
}

int PinningBackend() {
  for (int b = keys::kMeta + 1; b < BackendNameCount(); ++b)
    if (HasPinnedMemory(b) && DeviceCount(b) > 0) return b;
  MICA_THROW(
      kNotImplemented,
      "No device that is loaded has pinned memory (`pinned_allocate` of its table); leave the tensor as "
      "it is, or load the plugin of a device that has it.");
}

bool IsPinned(const Tensor& t) {
  if (!t.device().is_cpu()) return false;
  Pinned& pinned = AllPinned();
  const std::lock_guard lock(pinned.mutex);
  return pinned.blocks.count(t.storage()->data()) != 0;
}

Tensor PinMemory(const Tensor& t, int backend) {
  MICA_CHECK(t.device().is_cpu(), "A tensor on the device (", t.device().ToString(),
             ") cannot be pinned; pinned memory is the host's, so move it with x.cpu() first.");
  MICA_CHECK_IMPLEMENTED(HasPinnedMemory(backend), "The device (", BackendName(backend),
                         ") has no pinned memory: `pinned_allocate` lacks in its table.");
  if (IsPinned(t)) return t;
  Tensor copy = EmptyPinned(t, backend);
  CopyValues(copy, t);
  return copy;
}

Tensor EmptyPinned(const Tensor& t, int backend) {
  CachingAllocator& cache = PinnedCacheOf(backend);
  const Layouted in{t.sizes(), t.strides()};
  const Dims strides = ElementwiseStrides(t.sizes(), Span<Layouted>(&in, 1));
  const int64_t bytes = t.numel() * t.itemsize();
  void* data = cache.AllocateUnsized(bytes, 0);
  {
    Pinned& pinned = AllPinned();
    const std::lock_guard lock(pinned.mutex);
    pinned.blocks[data] = &cache;
  }
  Storage memory = Storage::FromMemory(data, bytes, Device{}, &FreePinned, data);
  return Tensor::Steal(TensorImpl::Make(std::move(memory), 0, t.sizes(), strides, t.dtype()));
}

}  // namespace mica
