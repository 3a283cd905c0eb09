// Small host blocks (up to 32 KiB): TensorImpls, extras, storage headers and the
// data of small CPU tensors all come from here.
//
// A size has a class (64-byte steps to 1 KiB, then eighths of a power of two).
// Each thread keeps a bounded free list for each class, so that taking and
// giving a block touches no lock; half a list moves to or from the class's
// central list (one mutex) when it is full or empty. Central lists carve new
// blocks out of slabs. Slabs are never given back: what is idle here is bounded
// by the most that was ever in use at once. Blocks are 64-byte aligned.
//
// A thread's lists go to the centre when it ends; blocks freed after that, by
// later thread_local destructors, go to the centre at once. After fork() the
// child has its own thread's lists and usable central lists. Under the address
// sanitizer idle blocks are poisoned, and of blocks in use what was not asked for.
//
// Not for device memory, and not for blocks whose size is unknown when freed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define MICA_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MICA_POISON 1
#endif
#endif
#ifdef MICA_POISON
#include <sanitizer/asan_interface.h>
#define MICA_POISON_BLOCK(p, n) __asan_poison_memory_region(p, n)
#define MICA_UNPOISON_BLOCK(p, n) __asan_unpoison_memory_region(p, n)
#else
#define MICA_POISON_BLOCK(p, n) static_cast<void>(0)
#define MICA_UNPOISON_BLOCK(p, n) static_cast<void>(0)
#endif

namespace mica::internal {

inline constexpr int64_t kMaxSmallBlock = 32768;
inline constexpr int kSmallClasses = 56;  // 16 steps of 64 bytes, then 5 octaves of 8

// The class of a size in 1..kMaxSmallBlock.
constexpr int SmallClass(int64_t size) {
  if (size <= 1024) return static_cast<int>((size + 63) / 64) - 1;
  const uint64_t last = static_cast<uint64_t>(size) - 1;
  const int octave = 63 - __builtin_clzll(last);  // 10 for 1025..2048
  const int eighth = static_cast<int>((last >> (octave - 3)) & 7);
  return 16 + (octave - 10) * 8 + eighth;
}

// The bytes of a block of the class.
struct SmallClassSizes {
  int64_t of[kSmallClasses];
  constexpr SmallClassSizes() : of() {
    for (int c = 0; c < 16; ++c) of[c] = int64_t{64} * (c + 1);
    for (int c = 16; c < kSmallClasses; ++c) {
      const int octave = 10 + (c - 16) / 8;
      of[c] = (int64_t{1} << octave) + ((int64_t{1} << (octave - 3)) * ((c - 16) % 8 + 1));
    }
  }
};
inline constexpr SmallClassSizes kSmallClassSizes;
constexpr int64_t SmallClassSize(int c) { return kSmallClassSizes.of[c]; }

struct FreeBlock {
  FreeBlock* next;
};

// One thread's lists. The counters are written by their thread alone and read
// by anyone who asks for statistics.
struct SmallCache {
  struct List {
    FreeBlock* head = nullptr;
    int32_t count = 0;
    int32_t limit = 0;
  };
  List lists[kSmallClasses];
  std::atomic<int64_t> bytes_in_use{0};  // may be negative: blocks may be freed by another thread
  std::atomic<int64_t> allocations{0};
  std::atomic<int64_t> misses{0};  // calls that went to the central list
  SmallCache* next = nullptr;
  SmallCache* previous = nullptr;

  void Count(std::atomic<int64_t>& counter, int64_t delta) {
    counter.store(counter.load(std::memory_order_relaxed) + delta, std::memory_order_relaxed);
  }
};

// NULL before the thread's first block and after its end.
extern thread_local constinit SmallCache* t_small_cache __attribute__((tls_model("initial-exec")));

void* SmallAllocateSlow(int c);
void SmallFreeSlow(void* block, int c);

// A block of class `c`. Throws a kOutOfMemory Error when the CPU's limit or the
// machine gives no more.
inline void* SmallAllocate(int c) {
  SmallCache* cache = t_small_cache;
  if (__builtin_expect(cache == nullptr, 0)) return SmallAllocateSlow(c);
  SmallCache::List& list = cache->lists[c];
  FreeBlock* block = list.head;
  if (__builtin_expect(block == nullptr, 0)) return SmallAllocateSlow(c);
  MICA_UNPOISON_BLOCK(block, SmallClassSize(c));
  list.head = block->next;
  --list.count;
  cache->Count(cache->bytes_in_use, SmallClassSize(c));
  cache->Count(cache->allocations, 1);
  return block;
}

inline void SmallFree(void* p, int c) {
  SmallCache* cache = t_small_cache;
  if (__builtin_expect(cache == nullptr, 0)) return SmallFreeSlow(p, c);
  SmallCache::List& list = cache->lists[c];
  if (__builtin_expect(list.count >= list.limit, 0)) return SmallFreeSlow(p, c);
  auto* block = static_cast<FreeBlock*>(p);
  block->next = list.head;
  list.head = block;
  ++list.count;
  cache->Count(cache->bytes_in_use, -SmallClassSize(c));
  MICA_POISON_BLOCK(p, SmallClassSize(c));
}

// Sums over all threads, past ones included.
struct SmallStats {
  int64_t bytes_in_use;
  int64_t bytes_reserved;  // slabs
  int64_t allocations;
  int64_t misses;
};
SmallStats GetSmallStats();
// The bytes in use as of the last call of any thread that left its own lists: at most
// 64 KiB a size class and thread behind.
int64_t SmallBytesSeen();

}  // namespace mica::internal
