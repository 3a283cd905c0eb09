// The table from devices to allocators, and what fork() asks of them.
#include <pthread.h>

#include <mutex>
#include <vector>

#include "tensor/allocator.h"
#include "tensor/cpu_memory.h"
#include "tensor/error.h"
#include "tensor/fork.h"
#include "tensor/key_set.h"

namespace mica {
namespace {

struct AllocatorTable {
  std::mutex mutex;
  RawMemory* raw[keys::kBackendCount] = {};
  std::vector<CachingAllocator*> allocators[keys::kBackendCount];
  bool whole[keys::kBackendCount] = {};
  std::vector<CachingAllocator*> of_no_device;
};

AllocatorTable& Table() {
  static AllocatorTable* table = [] {
    auto* t = new AllocatorTable();  // never destroyed: tensors may outlive statics
    t->raw[keys::kCpu] = CpuMemory();
    t->allocators[keys::kCpu].push_back(new CachingAllocator(Device{}, CpuMemory()));
    return t;
  }();
  return *table;
}

template <typename F>
void ForEachAllocator(F&& f) {
  for (auto& of_backend : Table().allocators)
    for (CachingAllocator* a : of_backend)
      if (a) f(a);
  for (CachingAllocator* a : Table().of_no_device) f(a);
}
}  // namespace

// Around fork(): the child must find every allocator unlocked.
void LockAllocators() {
  Table().mutex.lock();
  ForEachAllocator([](CachingAllocator* a) { a->mutex_.lock(); });
}

void UnlockAllocators() {
  ForEachAllocator([](CachingAllocator* a) { a->mutex_.unlock(); });
  Table().mutex.unlock();
}

// The child has none of the threads that were away.
void UnlockAllocatorsOfChild() {
  ForEachAllocator([](CachingAllocator* a) { a->away_ = a->asked_for_ = 0; });
  UnlockAllocators();
}

void LockAtFork(CachingAllocator* of_no_device) {
  AllocatorTable& table = Table();
  std::lock_guard<std::mutex> lock(table.mutex);
  table.of_no_device.push_back(of_no_device);
}

CachingAllocator& AllocatorFor(Device device) {
  static CachingAllocator* const cpu = [] {
    CachingAllocator* first = Table().allocators[keys::kCpu][0];
    pthread_atfork(LockAllocators, UnlockAllocators, UnlockAllocatorsOfChild);
    return first;
  }();
  if (device.is_cpu()) return *cpu;
  AllocatorTable& table = Table();
  std::lock_guard<std::mutex> lock(table.mutex);
  MICA_CHECK(device.backend >= 0 && device.backend < keys::kBackendCount && device.index >= 0 &&
                 table.raw[device.backend] != nullptr,
             "The device ", device.ToString(), " has no memory: its backend has registered none.");
  auto& allocators = table.allocators[device.backend];
  if (allocators.size() <= static_cast<size_t>(device.index)) allocators.resize(device.index + 1);
  CachingAllocator*& slot = allocators[device.index];
  if (slot == nullptr) {
    slot = new CachingAllocator(device, table.raw[device.backend]);
    if (table.whole[device.backend]) slot->KeepBlocksWhole();
  }
  return *slot;
}

void RegisterRawMemory(int backend, RawMemory* raw) {
  AllocatorTable& table = Table();
  std::lock_guard<std::mutex> lock(table.mutex);
  MICA_CHECK(backend > keys::kMeta && backend < BackendNameCount(), "The backend index (", backend,
             ") is not one of a registered backend with memory of its own.");
  MICA_CHECK(table.raw[backend] == nullptr || table.raw[backend] == raw, "The backend ", BackendName(backend),
             " has registered its memory already.");
  table.raw[backend] = raw;
}

void KeepBlocksWhole(int backend) {
  AllocatorTable& table = Table();
  std::lock_guard<std::mutex> lock(table.mutex);
  table.whole[backend] = true;
  for (CachingAllocator* a : table.allocators[backend])
    if (a) a->KeepBlocksWhole();
}

}  // namespace mica
