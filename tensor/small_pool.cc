// The centre of the small-block pool: central lists, slabs, the list of thread
// caches, thread end and fork.
#include "tensor/small_pool.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "tensor/allocator.h"
#include "tensor/poison.h"

namespace mica::internal {

thread_local constinit SmallCache* t_small_cache = nullptr;

namespace {

constexpr int64_t kSlabBytes = 256 << 10;

// A thread keeps at most about 64 KiB, and 8 to 256 blocks, of each class.
constexpr int32_t ListLimit(int c) {
  return static_cast<int32_t>(std::clamp<int64_t>((64 << 10) / SmallClassSize(c), 8, 256));
}

struct CentralList {
  std::mutex mutex;
  FreeBlock* head = nullptr;
  char* slab = nullptr;  // the part of the newest slab that is not carved yet
  int64_t slab_left = 0;
  std::vector<void*> slabs;  // all of them, so that a leak checker finds them
};

struct Centre {
  CentralList lists[kSmallClasses];
  std::mutex caches_mutex;  // taken before any list's mutex
  SmallCache* caches = nullptr;
  SmallStats ended{};  // counters of threads that are gone
  std::atomic<int64_t> reserved{0};
  std::atomic<int64_t> seen_in_use{0};

  Centre() {
    // First the allocators' own handlers: prepare handlers run in reverse order,
    // and a list's mutex is taken before an allocator's.
    AllocatorFor(Device{});
    pthread_atfork([] { Get().LockAll(); }, [] { Get().UnlockAll(); }, [] { Get().UnlockAll(); });
  }
  static Centre& Get() {
    static Centre* centre = new Centre();  // never destroyed: tensors may outlive statics
    return *centre;
  }
  void LockAll() {
    caches_mutex.lock();
    for (CentralList& list : lists) list.mutex.lock();
  }
  void UnlockAll() {
    for (CentralList& list : lists) list.mutex.unlock();
    caches_mutex.unlock();
  }
};

// Sees the bytes in use, for the peak; no mutex held.
void NoteInUse(Centre& centre) {
  centre.seen_in_use.store(GetSmallStats().bytes_in_use, std::memory_order_relaxed);
  AllocatorFor(Device{}).NotePeakOfSmall();
}

// One block with `list.mutex` held, or NULL when there is no memory for a slab.
FreeBlock* TakeCentral(Centre& centre, CentralList& list, int c) {
  if (FreeBlock* block = list.head) {
    MICA_UNPOISON_BLOCK(block, SmallClassSize(c));
    list.head = block->next;
    return block;
  }
  const int64_t size = SmallClassSize(c);
  if (list.slab_left < size) {
    void* slab = AllocatorFor(Device{}).AllocateSlab(kSlabBytes);
    if (slab == nullptr) return nullptr;
    list.slab = static_cast<char*>(slab);
    list.slab_left = kSlabBytes;
    list.slabs.push_back(slab);
    centre.reserved.fetch_add(kSlabBytes, std::memory_order_relaxed);
  }
  auto* block = reinterpret_cast<FreeBlock*>(list.slab);
  list.slab += size;
  list.slab_left -= size;
  return block;
}

void GiveCentral(CentralList& list, FreeBlock* block, [[maybe_unused]] int c) {
  block->next = list.head;
  list.head = block;
  MICA_POISON_BLOCK(block, SmallClassSize(c));
}

// Takes the first block off a thread's list.
FreeBlock* PopLocal(SmallCache::List& list, [[maybe_unused]] int c) {
  FreeBlock* block = list.head;
  MICA_UNPOISON_BLOCK(block, SmallClassSize(c));
  list.head = block->next;
  --list.count;
  return block;
}

thread_local constinit bool t_ended = false;

// Lives as long as its thread; its destructor gives the thread's lists back.
struct ThreadEnd {
  ~ThreadEnd() {
    t_ended = true;
    SmallCache* cache = t_small_cache;
    t_small_cache = nullptr;
    if (cache == nullptr) return;
    Centre& centre = Centre::Get();
    for (int c = 0; c < kSmallClasses; ++c) {
      std::lock_guard<std::mutex> lock(centre.lists[c].mutex);
      while (cache->lists[c].head) GiveCentral(centre.lists[c], PopLocal(cache->lists[c], c), c);
    }
    std::lock_guard<std::mutex> lock(centre.caches_mutex);
    centre.ended.bytes_in_use += cache->bytes_in_use.load(std::memory_order_relaxed);
    centre.ended.allocations += cache->allocations.load(std::memory_order_relaxed);
    centre.ended.misses += cache->misses.load(std::memory_order_relaxed);
    (cache->previous ? cache->previous->next : centre.caches) = cache->next;
    if (cache->next) cache->next->previous = cache->previous;
    delete cache;
  }
};

// This thread's cache, made on first use; NULL once the thread is ending.
SmallCache* EnsureCache(Centre& centre) {
  if (t_small_cache) return t_small_cache;
  if (t_ended) return nullptr;
  thread_local ThreadEnd end;
  static_cast<void>(end);  // the use that makes it
  auto* cache = new SmallCache();
  // Where memory is poisoned every block comes through the slow path, which fills it.
  for (int c = 0; c < kSmallClasses; ++c) cache->lists[c].limit = PoisonsMemory() ? 0 : ListLimit(c);
  std::lock_guard<std::mutex> lock(centre.caches_mutex);
  cache->next = centre.caches;
  if (cache->next) cache->next->previous = cache;
  centre.caches = cache;
  return t_small_cache = cache;
}

}  // namespace

void* SmallAllocateSlow(int c) {
  Centre& centre = Centre::Get();
  SmallCache* cache = EnsureCache(centre);
  if (cache && cache->lists[c].head) return SmallAllocate(c);
  CentralList& central = centre.lists[c];
  if (cache == nullptr) {
    FreeBlock* block;
    {
      std::lock_guard<std::mutex> lock(central.mutex);
      block = TakeCentral(centre, central, c);
    }
    if (block == nullptr) AllocatorFor(Device{}).ThrowOutOfMemory(SmallClassSize(c));
    std::lock_guard<std::mutex> lock(centre.caches_mutex);
    centre.ended.bytes_in_use += SmallClassSize(c);
    ++centre.ended.allocations;
    ++centre.ended.misses;
    Poison(block, SmallClassSize(c));
    return block;
  }
  SmallCache::List& list = cache->lists[c];
  FreeBlock* result;
  {
    std::lock_guard<std::mutex> lock(central.mutex);
    result = TakeCentral(centre, central, c);
    // Half a list more, as far as there are blocks without a new slab.
    for (int32_t i = 1; result && i < list.limit / 2; ++i) {
      if (central.head == nullptr && central.slab_left < SmallClassSize(c)) break;
      FreeBlock* block = TakeCentral(centre, central, c);
      block->next = list.head;
      list.head = block;
      ++list.count;
      MICA_POISON_BLOCK(block, SmallClassSize(c));
    }
  }
  if (result == nullptr) AllocatorFor(Device{}).ThrowOutOfMemory(SmallClassSize(c));
  cache->Count(cache->bytes_in_use, SmallClassSize(c));
  cache->Count(cache->allocations, 1);
  cache->Count(cache->misses, 1);
  NoteInUse(centre);
  Poison(result, SmallClassSize(c));
  return result;
}

void SmallFreeSlow(void* p, int c) {
  Centre& centre = Centre::Get();
  SmallCache* cache = EnsureCache(centre);
  CentralList& central = centre.lists[c];
  if (cache == nullptr) {
    {
      std::lock_guard<std::mutex> lock(central.mutex);
      GiveCentral(central, static_cast<FreeBlock*>(p), c);
    }
    std::lock_guard<std::mutex> lock(centre.caches_mutex);
    centre.ended.bytes_in_use -= SmallClassSize(c);
    return;
  }
  SmallCache::List& list = cache->lists[c];
  if (list.limit == 0) {
    std::lock_guard<std::mutex> lock(central.mutex);
    GiveCentral(central, static_cast<FreeBlock*>(p), c);
    cache->Count(cache->bytes_in_use, -SmallClassSize(c));
  } else {
    if (list.count >= list.limit) {
      std::lock_guard<std::mutex> lock(central.mutex);
      while (list.count > list.limit / 2) GiveCentral(central, PopLocal(list, c), c);
    }
    SmallFree(p, c);
  }
  NoteInUse(centre);
}

int64_t SmallBytesSeen() { return Centre::Get().seen_in_use.load(std::memory_order_relaxed); }

SmallStats GetSmallStats() {
  Centre& centre = Centre::Get();
  std::lock_guard<std::mutex> lock(centre.caches_mutex);
  SmallStats sum = centre.ended;
  for (SmallCache* cache = centre.caches; cache; cache = cache->next) {
    sum.bytes_in_use += cache->bytes_in_use.load(std::memory_order_relaxed);
    sum.allocations += cache->allocations.load(std::memory_order_relaxed);
    sum.misses += cache->misses.load(std::memory_order_relaxed);
  }
  sum.bytes_reserved = centre.reserved.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace mica::internal
