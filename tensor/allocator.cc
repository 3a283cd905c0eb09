#include "tensor/allocator.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "tensor/error.h"
#include "tensor/poison.h"
#include "tensor/small_pool.h"

namespace mica {

namespace {

constexpr int64_t kUnsizedHeader = 64;
constexpr int64_t kMaxRequest = int64_t{1} << 62;
constexpr int64_t kGranule = 512;  // of blocks
constexpr int64_t kSegmentOfSmall = int64_t{2} << 20;
constexpr int64_t kLeastSlack = int64_t{4} << 20;

int64_t MachineMemory() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages * page : 0;
}

int64_t RoundUp(int64_t size, int64_t step) { return (size + step - 1) / step * step; }

int OctaveOf(int64_t size) { return 63 - __builtin_clzll(static_cast<uint64_t>(size - 1)); }

// What is asked of the device for a block of `size` bytes. Large blocks have segments of their own: of a
// GPT's training, segments of 2 MiB and more for all left 16 to 34 % unused, these leave 6 to 8 %. A
// sixteenth more lets a size that grows by little find room.
int64_t SegmentSize(int64_t size) {
  if (size <= BlockMap::kSmall) return kSegmentOfSmall;
  return RoundUp(size, int64_t{1} << (OctaveOf(size) - 4));
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

CachingAllocator::CachingAllocator(Device device, RawMemory* raw)
    : device_(device), raw_(raw), blocks_(device.is_cpu()) {
  if (is_cpu()) {
    limit_ = MachineMemory();
    if (limit_ > 0) cache_limit_ = limit_ / 4;
  }
}

int64_t CachingAllocator::RoundedSize(int64_t size) {
  if (size <= kGranule) return kGranule;
  return RoundUp(size, std::max(kGranule, int64_t{1} << (OctaveOf(size) - 3)));
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

// What `attempt` gives; where that is NULL, what it gives after idle memory went back to the device, after
// that of what other threads had there meanwhile, and after all work that the memory went back behind: what
// goes back in the order of a stream is there once the stream has come to it.
template <typename T>
T* CachingAllocator::Insist(Lock& lock,
                            T* (CachingAllocator::*attempt)(int64_t, const BlockMap::Owner&, Lock&),
                            int64_t size, const BlockMap::Owner& owner) {
  if (T* const found = (this->*attempt)(size, owner, lock)) return found;
  ++stats_.retries;
  EmptyCache(lock);
  if (T* const found = (this->*attempt)(size, owner, lock)) return found;
  WaitForOthers(lock);
  EmptyCache(lock);
  T* const found = (this->*attempt)(size, owner, lock);
  if (found || is_cpu() || recordings_ > 0) return found;
  {
    const Unlocked unlocked(this, lock);
    raw_->SynchronizeDevice(device_.index);
  }
  return (this->*attempt)(size, owner, lock);
}

void* CachingAllocator::AllocateBlock(int64_t size, uint64_t stream) {
  MICA_CHECK_VALUE(size >= 0, "The size (", size, ") of a request for memory is negative.");
  if (size > kMaxRequest) ThrowOutOfMemory(size);
  const uint64_t pool = is_cpu() ? 0 : raw_->PoolOf(device_.index, stream);
  Lock lock(mutex_);
  if (!pending_.empty() && recordings_ == 0) TakeDonePending(lock);
  const bool whole = blocks_.keeps_whole();
  const int64_t rounded = whole ? RoundedSize(size) : RoundUp(std::max<int64_t>(size, 1), kGranule);
  const BlockMap::Owner owner{pool, stream, !whole && rounded <= BlockMap::kSmall};
  Block* const block = Insist(lock, &CachingAllocator::Obtain, rounded, owner);
  if (block == nullptr) {
    lock.unlock();
    ThrowOutOfMemory(size);
  }
  block->requested = size;
  stats_.blocks.Add(1);
  stats_.active_blocks.Add(1);
  stats_.allocated.Add(block->capacity);
  stats_.active.Add(block->capacity);
  stats_.requested.Add(size);
  most_active_ = std::max(most_active_, stats_.active.current);
  NotePeak();
  NoteSplit();
  void* const data = block->data;
  MICA_UNPOISON_BLOCK(data, is_cpu() ? size : 0);
  MICA_POISON_BLOCK(static_cast<char*>(data) + size, is_cpu() ? block->capacity - size : 0);
  lock.unlock();
  if (is_cpu()) internal::Poison(data, size);
  return data;
}

void CachingAllocator::FreeBlock(void* data) {
  Lock lock(mutex_);
  Block* const block = blocks_.Find(data);
  MICA_INTERNAL(block && block->state == BlockMap::State::kInUse,
                "the freed block is not one of the allocator of ", device_.ToString(), ".");
  block->state = BlockMap::State::kWaiting;
  stats_.blocks.Add(-1);
  stats_.allocated.Add(-block->capacity);
  stats_.requested.Add(-block->requested);
  if (block->used_on.empty() && !block->outlived_pool) {
    std::vector<Leaving> leaving;
    MakeIdle(data, leaving);
    return Return(std::move(leaving), lock);
  }
  if (recordings_ > 0)
    freed_in_recording_.push_back(data);
  else
    WaitForUsers(lock, data);
}

// Has a freed block wait for what other streams do with it.
void CachingAllocator::WaitForUsers(Lock& lock, void* data) {
  Block& block = *blocks_.Find(data);
  Pending pending{data, {}};
  const std::vector<uint64_t> streams = std::exchange(block.used_on, {});
  const bool used_by_any = std::exchange(block.outlived_pool, false);
  {
    const Unlocked unlocked(this, lock);
    if (used_by_any)
      raw_->SynchronizeDevice(device_.index);
    else
      for (const uint64_t stream : streams)
        pending.events.push_back(raw_->RecordEvent(device_.index, stream));
  }
  if (!pending.events.empty()) return pending_.push_back(std::move(pending));
  std::vector<Leaving> leaving;
  MakeIdle(data, leaving);
  Return(std::move(leaving), lock);
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
  blocks_.EndPool(pool);
  if (blocks_.idle_bytes() > cache_limit_) EmptyCache(lock);
}

// Keeps a freed block for the next request, or adds its segment to those that leave.
void CachingAllocator::MakeIdle(void* data, std::vector<Leaving>& leaving) {
  Block* block = blocks_.Find(data);
  stats_.active_blocks.Add(-1);
  stats_.active.Add(-block->capacity);
  MICA_POISON_BLOCK(data, is_cpu() ? block->capacity : 0);
  block = blocks_.MakeIdle(block);
  NoteSplit();
  if (blocks_.idle_bytes() > cache_limit_ && block->owner.pool == 0 && block->whole() && recordings_ == 0)
    leaving.push_back(blocks_.Remove(block));
}

void CachingAllocator::RecordStream(void* data, uint64_t stream) {
  if (is_cpu()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  Block* const block = blocks_.Find(data);
  if (!block || block->owner.stream == stream) return;
  std::vector<uint64_t>& used_on = block->used_on;
  if (std::find(used_on.begin(), used_on.end(), stream) == used_on.end()) used_on.push_back(stream);
}

void CachingAllocator::EndStream(uint64_t stream) {
  if (stream == 0) return;
  Lock lock(mutex_);
  WaitForOthers(lock);  // who may be about to use it
  blocks_.EndStream(stream);
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
  Return(std::move(leaving), lock);
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
  Return(std::move(leaving), lock);
}

BlockMap::Block* CachingAllocator::Obtain(int64_t size, const BlockMap::Owner& owner, Lock& lock) {
  const bool can_go_back = owner.pool == 0 && recordings_ == 0;
  if (Block* const block = blocks_.Take(size, owner, can_go_back)) {
    ++stats_.cache_hits;
    return block;
  }
  return NewSegment(size, owner, lock);
}

// A block of a segment that the device gives, NULL if it has none.
BlockMap::Block* CachingAllocator::NewSegment(int64_t size, const BlockMap::Owner& owner, Lock& lock) {
  int64_t capacity = blocks_.keeps_whole() ? size : SegmentSize(size);
  if (!blocks_.keeps_whole() && !owner.small && recordings_ == 0) {
    const int64_t most = std::max(most_active_, stats_.active.current + size);
    const int64_t surplus = stats_.reserved.current + capacity - most - std::max(most / 16, kLeastSlack);
    if (surplus > 0) Return(blocks_.TakeSegments(surplus), lock);
  }
  void* data = RawTry(capacity, owner, lock);
  if (!data && capacity > size) data = RawTry(capacity = size, owner, lock);
  return data ? blocks_.Add(data, capacity, size, owner) : nullptr;
}

void* CachingAllocator::RawTry(int64_t size, const BlockMap::Owner& owner, Lock& lock) {
  if (limit_ != 0 && stats_.reserved.current + asked_for_ + size > limit_) return nullptr;
  asked_for_ += size;  // before the others look at the limit
  void* data = nullptr;
  try {
    const Unlocked unlocked(this, lock);
    data = raw_->Allocate(device_.index, size, owner.stream);
  } catch (...) {
    asked_for_ -= size;
    throw;
  }
  asked_for_ -= size;
  if (data) {
    stats_.reserved.Add(size);
    stats_.segments.Add(1);
  }
  return data;
}

void* CachingAllocator::AllocateSlab(int64_t size) {
  Lock lock(mutex_);
  return Insist(lock, &CachingAllocator::RawTry, size, {});
}

void CachingAllocator::Return(std::vector<Leaving> leaving, Lock& lock) {
  if (leaving.empty()) return;
  for (const Leaving& segment : leaving) stats_.reserved.Add(-segment.capacity);
  stats_.segments.Add(-static_cast<int64_t>(leaving.size()));
  const Unlocked unlocked(this, lock);
  for (const Leaving& segment : leaving) {
    MICA_UNPOISON_BLOCK(segment.data, is_cpu() ? segment.capacity : 0);
    raw_->Free(device_.index, segment.data, segment.capacity, segment.stream);
  }
}

void CachingAllocator::EmptyCache(Lock& lock) {
  if (recordings_ > 0) return;
  FinishPending(lock);
  Return(blocks_.TakeSegments(INT64_MAX), lock);
}

void CachingAllocator::EmptyCache() {
  Lock lock(mutex_);
  EmptyCache(lock);
}

void CachingAllocator::KeepBlocksWhole() {
  std::lock_guard<std::mutex> lock(mutex_);
  blocks_.KeepWhole();
}

void CachingAllocator::NotePeak() {
  const int64_t small = is_cpu() ? internal::SmallBytesSeen() : 0;
  stats_.allocated.peak = std::max(stats_.allocated.peak, stats_.allocated.current + small);
}

void CachingAllocator::NotePeakOfSmall() {
  std::lock_guard<std::mutex> lock(mutex_);
  NotePeak();
}

void CachingAllocator::NoteSplit() {
  stats_.idle_split.Add(blocks_.split_bytes() - stats_.idle_split.current);
  stats_.split_blocks.Add(blocks_.split_blocks() - stats_.split_blocks.current);
}

AllocatorStats CachingAllocator::stats() const {
  AllocatorStats out;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    out = stats_;
  }
  if (is_cpu()) {
    const internal::SmallStats small = internal::GetSmallStats();
    out.allocated.current += small.bytes_in_use;
    out.allocated.peak = std::max(out.allocated.peak, out.allocated.current);
    out.blocks.risen += small.allocations;
    out.cache_hits += small.allocations - small.misses;
  }
  return out;
}

void CachingAllocator::ForEachCount(void (*f)(MemoryCount&)) {
  AllocatorStats& s = stats_;
  for (MemoryCount* count : {&s.allocated, &s.requested, &s.active, &s.reserved, &s.idle_split, &s.blocks,
                             &s.active_blocks, &s.split_blocks, &s.segments})
    f(*count);
}

void CachingAllocator::ResetPeak() {
  const int64_t small = is_cpu() ? internal::GetSmallStats().bytes_in_use : 0;
  std::lock_guard<std::mutex> lock(mutex_);
  ForEachCount([](MemoryCount& count) { count.peak = count.current; });
  stats_.allocated.peak += small;
}

void CachingAllocator::ResetTotals() {
  std::lock_guard<std::mutex> lock(mutex_);
  ForEachCount([](MemoryCount& count) { count.risen = count.fallen = 0; });
  stats_.retries = stats_.out_of_memory = 0;
}

std::vector<MemoryBlock> CachingAllocator::Snapshot() const {
  std::vector<MemoryBlock> found;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    blocks_.ForEach([&](const Block& b) {
      found.push_back({b.data, b.capacity, b.requested, b.before == nullptr, b.owner, b.state});
    });
  }
  std::sort(found.begin(), found.end(),
            [](const MemoryBlock& a, const MemoryBlock& b) { return a.address < b.address; });
  return found;
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
  if (blocks_.idle_bytes() > cache_limit_) EmptyCache(lock);
}

void CachingAllocator::ThrowOutOfMemory(int64_t size) {
  const AllocatorStats now = stats();
  const int64_t most = limit();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++stats_.out_of_memory;
  }
  // What emptying the cache has left: beside blocks in use, or of graphs.
  const int64_t idle = now.reserved.current - now.active.current;
  MICA_THROW(kOutOfMemory, "The device ", device_.ToString(), " has no ", raw_->Name(), " for a request of ",
             size, " bytes; ", now.allocated.current, " bytes are in use, ", now.reserved.current,
             " reserved, and the limit is ", most ? absl::StrCat(most, " bytes.") : std::string("not set."),
             idle > 0 && !is_cpu()
                 ? absl::StrCat(" Of the reserved ones ", idle,
                                " are idle, between blocks in use or kept for recorded work.")
                 : std::string());
}

}  // namespace mica
