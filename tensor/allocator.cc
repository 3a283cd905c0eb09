// CachingAllocator, and the table from devices to allocators.
#include "tensor/allocator.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "tensor/cpu_memory.h"
#include "tensor/error.h"
#include "tensor/key_set.h"
#include "tensor/poison.h"
#include "tensor/small_pool.h"

namespace mica {

namespace {

constexpr int64_t kUnsizedHeader = 64;
constexpr int64_t kMaxRequest = int64_t{1} << 62;

int64_t MachineMemory() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages * page : 0;
}

}  // namespace

void RawMemory::Copy(int, void* to, const void* from, int64_t size) {
  std::memcpy(to, from, static_cast<size_t>(size));
}

// Lets the mutex go while the raw memory is called.
class CachingAllocator::Unlocked {
 public:
  Unlocked(CachingAllocator* a, Lock& lock) : a_(a), lock_(lock) {
    ++a_->away_;
    lock_.unlock();
  }
  ~Unlocked() {
    lock_.lock();
    --a_->away_;
    a_->back_.notify_all();
  }

 private:
  CachingAllocator* a_;
  Lock& lock_;
};

// What other threads do with the raw memory may be what this one needs. No longer than a second: they may
// wait for a lock that this thread holds.
void CachingAllocator::WaitForOthers(Lock& lock) {
  back_.wait_for(lock, std::chrono::seconds(1), [this] { return away_ == 0; });
}

CachingAllocator::CachingAllocator(Device device, RawMemory* raw) : device_(device), raw_(raw) {
  if (is_cpu()) {
    limit_ = MachineMemory();
    if (limit_ > 0) cache_limit_ = limit_ / 4;
  }
}

int64_t CachingAllocator::RoundedSize(int64_t size) {
  constexpr int64_t kLeast = 512;
  if (size <= kLeast) return kLeast;
  const int octave = 63 - __builtin_clzll(static_cast<uint64_t>(size - 1));
  const int64_t step = std::max<int64_t>(kLeast, int64_t{1} << (octave - 3));
  return (size + step - 1) / step * step;
}

void* CachingAllocator::Allocate(int64_t size) {
  if (is_cpu() && size <= internal::kMaxSmallBlock) {
    const int c = internal::SmallClass(std::max<int64_t>(size, 1));
    void* data = internal::SmallAllocate(c);
    MICA_POISON_BLOCK(static_cast<char*>(data) + size, internal::SmallClassSize(c) - size);
    return data;
  }
  return AllocateBlock(size, raw_->CurrentStream(device_.index));
}

void CachingAllocator::Free(void* data, int64_t size) {
  if (is_cpu() && size <= internal::kMaxSmallBlock) {
    const int c = internal::SmallClass(std::max<int64_t>(size, 1));
    MICA_UNPOISON_BLOCK(data, internal::SmallClassSize(c));
    return internal::SmallFree(data, c);
  }
  FreeBlock(data);
}

void* CachingAllocator::AllocateUnsized(int64_t size, uint64_t stream) {
  if (!is_cpu()) return AllocateBlock(size, stream);
  const int64_t total = std::min(size, kMaxRequest) + kUnsizedHeader;
  auto* block = static_cast<char*>(Allocate(total));
  std::memcpy(block, &total, sizeof total);
  return block + kUnsizedHeader;
}

void CachingAllocator::FreeUnsized(void* data) {
  if (data == nullptr) return;
  if (!is_cpu()) return FreeBlock(data);
  char* block = static_cast<char*>(data) - kUnsizedHeader;
  int64_t total;
  std::memcpy(&total, block, sizeof total);
  Free(block, total);
}

void* CachingAllocator::AllocateBlock(int64_t size, uint64_t stream) {
  MICA_CHECK_VALUE(size >= 0, "The size (", size, ") of a request for memory is negative.");
  if (size > kMaxRequest) ThrowOutOfMemory(size);
  const int64_t rounded = RoundedSize(size);
  const Owner owner{is_cpu() ? 0 : raw_->PoolOf(device_.index, stream), stream};
  Lock lock(mutex_);
  if (!pending_.empty() && recordings_ == 0) TakeDonePending(lock);
  void* data = TakeIdle(rounded, owner);
  int64_t capacity = rounded;
  if (data) {
    capacity = blocks_[data].capacity;
    ++stats_.cache_hits;
  } else {
    data = RawAllocate(rounded, lock);
    if (data == nullptr) {
      lock.unlock();
      ThrowOutOfMemory(size);
    }
    blocks_[data] = {rounded, owner, {}};
  }
  ++stats_.allocations;
  stats_.bytes_in_use += capacity;
  NotePeak();
  MICA_UNPOISON_BLOCK(data, is_cpu() ? size : 0);
  MICA_POISON_BLOCK(static_cast<char*>(data) + size, is_cpu() ? capacity - size : 0);
  lock.unlock();
  if (is_cpu()) internal::Poison(data, size);
  return data;
}

void CachingAllocator::FreeBlock(void* data) {
  Lock lock(mutex_);
  const auto found = blocks_.find(data);
  MICA_INTERNAL(found != blocks_.end(), "the freed block is not one of the allocator of ", device_.ToString(),
                ".");
  Block& block = found->second;
  stats_.bytes_in_use -= block.capacity;
  if (block.used_on.empty() && !block.outlived_pool) {
    std::vector<Leaving> leaving;
    MakeIdle(data, leaving);
    return Return(leaving, lock);
  }
  if (recordings_ > 0)
    freed_in_recording_.push_back(data);
  else
    WaitForUsers(lock, data);
}

// Has a freed block wait for what other streams do with it.
void CachingAllocator::WaitForUsers(Lock& lock, void* data) {
  Block& block = blocks_.find(data)->second;
  if (block.outlived_pool) return ReturnOutlived(lock, data);
  const std::vector<uint64_t> streams = std::exchange(block.used_on, {});
  Pending pending{data, {}};
  {
    const Unlocked unlocked(this, lock);
    for (const uint64_t stream : streams) pending.events.push_back(raw_->RecordEvent(device_.index, stream));
  }
  pending_.push_back(std::move(pending));
}

void CachingAllocator::ReturnOutlived(Lock& lock, void* data) {
  const auto found = blocks_.find(data);
  const std::vector<Leaving> leaving{{data, found->second.capacity, found->second.owner.stream}};
  blocks_.erase(found);
  {
    const Unlocked unlocked(this, lock);
    raw_->SynchronizeDevice(device_.index);
  }
  Return(leaving, lock);
}

void CachingAllocator::BeginRecording() {
  Lock lock(mutex_);
  ++recordings_;
  WaitForOthers(lock);  // who may be asking the device about a stream that will be recorded
}

void CachingAllocator::EndRecording() {
  Lock lock(mutex_);
  if (--recordings_ > 0) return;
  for (void* data : std::exchange(freed_in_recording_, {})) WaitForUsers(lock, data);
}

void CachingAllocator::EndPool(uint64_t pool) {
  Lock lock(mutex_);
  std::vector<Owner> owners;
  for (const auto& [owner, blocks] : idle_)
    if (owner.pool == pool) owners.push_back(owner);
  for (auto& [data, block] : blocks_) {
    if (block.owner.pool != pool) continue;
    block.owner.pool = 0;
    block.outlived_pool = true;
  }
  for (const Owner& owner : owners) {
    for (const auto& [capacity, data] : idle_[owner]) {
      idle_bytes_ += capacity;
      blocks_[data].outlived_pool = false;
    }
    MergeIdle(owner, {0, owner.stream});
  }
  if (idle_bytes_ > cache_limit_) EmptyCache(lock);
}

void CachingAllocator::MergeIdle(const Owner& from, const Owner& to) {
  IdleBlocks blocks = std::move(idle_[from]);
  idle_.erase(from);
  idle_[to].merge(blocks);
}

// Keeps a freed block for the next request, or adds it to those that leave.
void CachingAllocator::MakeIdle(void* data, std::vector<Leaving>& leaving) {
  const auto found = blocks_.find(data);
  const auto [capacity, owner] = std::pair(found->second.capacity, found->second.owner);
  if (idle_bytes_ + capacity > cache_limit_ && owner.pool == 0 && recordings_ == 0) {
    blocks_.erase(found);
    leaving.push_back({data, capacity, owner.stream});
    return;
  }
  // Before others of its size: the block freed last is the one still in cache.
  IdleBlocks& idle = idle_[owner];
  idle.emplace_hint(idle.lower_bound(capacity), capacity, data);
  if (owner.pool == 0) idle_bytes_ += capacity;
  MICA_POISON_BLOCK(data, is_cpu() ? capacity : 0);
}

void CachingAllocator::RecordStream(void* data, uint64_t stream) {
  if (is_cpu()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.find(data);
  if (found == blocks_.end() || found->second.owner.stream == stream) return;
  std::vector<uint64_t>& used_on = found->second.used_on;
  if (std::find(used_on.begin(), used_on.end(), stream) == used_on.end()) used_on.push_back(stream);
}

void CachingAllocator::EndStream(uint64_t stream) {
  if (stream == 0) return;
  Lock lock(mutex_);
  WaitForOthers(lock);  // who may be about to use it
  for (auto& [data, block] : blocks_) {
    if (block.owner.stream == stream) block.owner.stream = 0;
    std::erase(block.used_on, stream);
  }
  std::vector<Owner> owners;
  for (const auto& [owner, blocks] : idle_)
    if (owner.stream == stream) owners.push_back(owner);
  for (const Owner& owner : owners) MergeIdle(owner, {owner.pool, 0});
}

void CachingAllocator::Copy(void* to, void* from, int64_t size) {
  raw_->Copy(device_.index, to, from, size);
  RecordStream(from, raw_->CurrentStream(device_.index));
}

void CachingAllocator::TakeDonePending(Lock& lock) {
  std::vector<Pending> asked = std::exchange(pending_, {});
  std::vector<void*> done;
  {
    const Unlocked unlocked(this, lock);
    std::erase_if(asked, [&](Pending& p) {
      while (!p.events.empty() && raw_->TakeIfDone(device_.index, p.events.back())) p.events.pop_back();
      if (p.events.empty()) done.push_back(p.data);
      return p.events.empty();
    });
  }
  std::move(asked.begin(), asked.end(), std::back_inserter(pending_));
  std::vector<Leaving> leaving;
  for (void* data : done) MakeIdle(data, leaving);
  Return(leaving, lock);
}

void CachingAllocator::FinishPending(Lock& lock) {
  const std::vector<Pending> asked = std::exchange(pending_, {});
  if (!asked.empty()) {
    const Unlocked unlocked(this, lock);
    for (const Pending& p : asked)
      for (const uint64_t event : p.events) raw_->WaitAndTake(device_.index, event);
  }
  std::vector<Leaving> leaving;
  for (const Pending& p : asked) MakeIdle(p.data, leaving);
  Return(leaving, lock);
}

// The owner's smallest idle block of `size` to 1.25 * `size` bytes, or NULL.
// It stays in `blocks_`.
void* CachingAllocator::TakeIdle(int64_t size, const Owner& owner) {
  const auto of_owner = idle_.find(owner);
  if (of_owner == idle_.end()) return nullptr;
  const auto found = of_owner->second.lower_bound(size);
  if (found == of_owner->second.end() || found->first > size + size / 4) return nullptr;
  void* data = found->second;
  if (owner.pool == 0) idle_bytes_ -= found->first;
  of_owner->second.erase(found);
  return data;
}

// `size` bytes from the device within the limit, NULL if that cannot be.
void* CachingAllocator::RawAllocate(int64_t size, Lock& lock) {
  if (void* data = RawTry(size, lock)) return data;
  EmptyCache(lock);
  if (void* data = RawTry(size, lock)) return data;
  WaitForOthers(lock);
  EmptyCache(lock);
  return RawTry(size, lock);
}

void* CachingAllocator::RawTry(int64_t size, Lock& lock) {
  if (limit_ != 0 && stats_.bytes_reserved + size > limit_) return nullptr;
  stats_.bytes_reserved += size;  // before the others look at the limit
  void* data = nullptr;
  try {
    const Unlocked unlocked(this, lock);
    data = raw_->Allocate(device_.index, size);
  } catch (...) {
    stats_.bytes_reserved -= size;
    throw;
  }
  if (data)
    ++stats_.raw_allocations;
  else
    stats_.bytes_reserved -= size;
  return data;
}

void* CachingAllocator::AllocateSlab(int64_t size) {
  Lock lock(mutex_);
  return RawAllocate(size, lock);
}

void CachingAllocator::Return(const std::vector<Leaving>& leaving, Lock& lock) {
  if (leaving.empty()) return;
  for (const Leaving& block : leaving) stats_.bytes_reserved -= block.capacity;
  stats_.raw_frees += static_cast<int64_t>(leaving.size());
  const Unlocked unlocked(this, lock);
  for (size_t i = 0; i < leaving.size(); ++i) {
    const Leaving& block = leaving[i];
    if (i == 0 || block.stream != leaving[i - 1].stream) raw_->SynchronizeStream(device_.index, block.stream);
    MICA_UNPOISON_BLOCK(block.data, is_cpu() ? block.capacity : 0);
    raw_->Free(device_.index, block.data, block.capacity);
  }
}

void CachingAllocator::EmptyCache(Lock& lock) {
  if (recordings_ > 0) return;
  FinishPending(lock);
  std::vector<Leaving> leaving;
  std::erase_if(idle_, [&](const auto& entry) {
    const auto& [owner, blocks] = entry;
    if (owner.pool != 0) return false;
    for (const auto& [capacity, data] : blocks) {
      blocks_.erase(data);
      leaving.push_back({data, capacity, owner.stream});
    }
    return true;
  });
  idle_bytes_ = 0;
  Return(leaving, lock);
}

void CachingAllocator::EmptyCache() {
  Lock lock(mutex_);
  EmptyCache(lock);
}

void CachingAllocator::NotePeak() {
  const int64_t small = is_cpu() ? internal::SmallBytesSeen() : 0;
  stats_.peak_in_use = std::max(stats_.peak_in_use, stats_.bytes_in_use + small);
}

void CachingAllocator::NotePeakOfSmall() {
  std::lock_guard<std::mutex> lock(mutex_);
  NotePeak();
}

AllocatorStats CachingAllocator::stats() const {
  AllocatorStats out;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    out = stats_;
  }
  if (is_cpu()) {
    const internal::SmallStats small = internal::GetSmallStats();
    out.bytes_in_use += small.bytes_in_use;
    out.peak_in_use = std::max(out.peak_in_use, out.bytes_in_use);
    out.allocations += small.allocations;
    out.cache_hits += small.allocations - small.misses;
  }
  return out;
}

void CachingAllocator::ResetPeak() {
  const int64_t small = is_cpu() ? internal::GetSmallStats().bytes_in_use : 0;
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.peak_in_use = stats_.bytes_in_use + small;
}

void CachingAllocator::SetLimit(int64_t bytes) {
  MICA_CHECK_VALUE(bytes >= 0, "The limit (", bytes,
                   ") of an allocator is negative; expected bytes, or 0 for none.");
  std::lock_guard<std::mutex> lock(mutex_);
  limit_ = bytes;
}

int64_t CachingAllocator::limit() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return limit_;
}

void CachingAllocator::SetCacheLimit(int64_t bytes) {
  MICA_CHECK_VALUE(bytes >= 0, "The cache limit (", bytes, ") of an allocator is negative.");
  Lock lock(mutex_);
  cache_limit_ = bytes;
  if (idle_bytes_ > cache_limit_) EmptyCache(lock);
}

void CachingAllocator::ThrowOutOfMemory(int64_t size) {
  const AllocatorStats now = stats();
  const int64_t most = limit();
  MICA_THROW(kOutOfMemory, "The device ", device_.ToString(), " has no memory for a request of ", size,
             " bytes; ", now.bytes_in_use, " bytes are in use, ", now.bytes_reserved,
             " reserved, and the limit is ", most ? absl::StrCat(most, " bytes.") : std::string("not set."));
}

namespace {

struct AllocatorTable {
  std::mutex mutex;
  RawMemory* raw[keys::kBackendCount] = {};
  std::vector<CachingAllocator*> allocators[keys::kBackendCount];
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

}  // namespace

namespace {
template <typename F>
void ForEachAllocator(F&& f) {
  for (auto& of_backend : Table().allocators)
    for (CachingAllocator* a : of_backend)
      if (a) f(a);
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
  ForEachAllocator([](CachingAllocator* a) { a->away_ = 0; });
  UnlockAllocators();
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
  if (slot == nullptr) slot = new CachingAllocator(device, table.raw[device.backend]);
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

}  // namespace mica
