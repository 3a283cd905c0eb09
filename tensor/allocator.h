// The caching allocator: one for each device, between tensors and the device's
// raw memory.
//
// Fresh memory costs more than most operators (64 MB faulted in page by page: 36 of the 42 ms that
// torch's `x + x` takes; a driver's allocation waits for the device), so freed blocks are kept and
// reused. What a device gives is a segment, cut into blocks that join again when they are freed
// (block_map.h): requests are rounded to 512 bytes; those up to 256 KiB share segments of 2 MiB,
// larger ones get segments up to a sixteenth larger. Before such a segment makes what is reserved exceed
// what was ever in use at once by more than a sixteenth (4 MiB at least), idle ones go back to the
// device; so do all of them when it has no more. On the CPU, requests up to 32 KiB go to the thread-local
// pool (small_pool.h); larger ones are rounded up to a class (at most 12.5 % larger), and each is a mapping
// of its own. Idle blocks beyond `cache_limit` are returned.
//
// A block belongs to the stream that was current when it was handed out: freed, it
// waits for requests on that stream alone, whose order makes the reuse safe. One
// that another stream used too (RecordStream) waits for events of those first.
//
// Work that is recorded and run again (dispatcher/devices/graphs.h) writes where it wrote when
// it was recorded. So its blocks belong to a pool: freed, they wait for requests of that pool
// alone, and go to everybody, or back to the device, once the pool has ended. While anything
// is recorded the device is asked nothing that could end the recording: no event of a freed
// block is looked at, and nothing goes back to the raw memory.
//
// Blocks are 64-byte aligned on the CPU; those from 1 MiB up are 2 MiB-aligned
// mappings advised to huge pages. All functions may be called from any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tensor/block_map.h"
#include "tensor/device.h"

namespace mica {

// A device's memory without a cache. CachingAllocator calls it from any thread and holds no lock meanwhile:
// what a plugin does here, such as a warning that waits for Python, may need the allocator in another thread.
class RawMemory {
 public:
  virtual ~RawMemory() = default;
  // What it is called where there is none left.
  virtual const char* Name() const { return "memory"; }
  // NULL when the device has no `size` bytes left. Work of `stream` is the first to use it.
  virtual void* Allocate(int index, int64_t size, uint64_t stream) = 0;
  // What was queued on `stream` may use it still.
  virtual void Free(int index, void* data, int64_t size, uint64_t stream) = 0;
  // Streams; the defaults are those of a device that has none. An event that was
  // recorded is either found done or waited for, and gone after that.
  virtual uint64_t CurrentStream(int) { return 0; }
  // The pool that a stream's blocks belong to; 0 is everybody's.
  virtual uint64_t PoolOf(int, uint64_t) { return 0; }
  virtual uint64_t RecordEvent(int, uint64_t) { return 0; }
  virtual bool TakeIfDone(int, uint64_t) { return true; }
  virtual void WaitAndTake(int, uint64_t) {}
  // All streams, but those whose work is recorded.
  virtual void SynchronizeDevice(int) {}
  // Between blocks of the device, in the order of the current stream.
  virtual void Copy(int index, void* to, const void* from, int64_t size);
};

// A number that rises and falls.
struct MemoryCount {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t risen = 0;   // by how much, all in all
  int64_t fallen = 0;  // the same
  void Add(int64_t n) {
    current += n;
    (n > 0 ? risen : fallen) += n > 0 ? n : -n;
    if (current > peak) peak = current;
  }
};

struct AllocatorStats {
  MemoryCount allocated;      // bytes in blocks handed out, after rounding; on the CPU the peak is seen at
                              // calls that left a thread's own lists of small blocks
  MemoryCount requested;      // bytes that were asked for, without those of the CPU's small blocks
  MemoryCount active;         // bytes handed out, or freed while other streams use them still
  MemoryCount reserved;       // bytes taken from the raw memory
  MemoryCount idle_split;     // idle bytes of segments that are in use elsewhere: no cache to empty
  MemoryCount blocks;         // handed out
  MemoryCount active_blocks;  // handed out, or freed and used by other streams still
  MemoryCount split_blocks;   // idle ones of segments that are in use elsewhere
  MemoryCount segments;       // pieces taken from the raw memory
  int64_t cache_hits = 0;     // requests served without the raw memory
  int64_t retries = 0;        // the raw memory had none, and idle memory went back to it
  int64_t out_of_memory = 0;  // requests that found none
};

// A block as Snapshot() sees it.
struct MemoryBlock {
  const void* address;
  int64_t size;
  int64_t requested;    // bytes that were asked for; 0 in idle blocks
  bool begins_segment;  // or continues the one before
  BlockMap::Owner owner;
  BlockMap::State state;
};

class CachingAllocator {
 public:
  CachingAllocator(Device device, RawMemory* raw);
  CachingAllocator(const CachingAllocator&) = delete;

  // At least `size` bytes (a block even for 0). Throws a kOutOfMemory Error that
  // names device, request, bytes in use and limit.
  void* Allocate(int64_t size);
  // `size` must be the one of the request.
  void Free(void* data, int64_t size);
  // For callers that do not keep the size, as the C ABI: on the CPU such a block
  // carries its size in front. The two belong together.
  void* AllocateUnsized(int64_t size, uint64_t stream);
  void FreeUnsized(void* data);
  // A stream other than the block's own uses it; foreign memory is left alone.
  void RecordStream(void* data, uint64_t stream);
  // The stream is about to end, its work done: its blocks belong to stream 0 from now on.
  void EndStream(uint64_t stream);
  // `size` bytes from one block to another, in the order of the current stream.
  void Copy(void* to, void* from, int64_t size);
  // Around the recording of work; from several threads at once, each counts.
  void BeginRecording();
  void EndRecording();
  // Nothing recorded uses the pool any more, and the device has done all that read its blocks: they are
  // everybody's. Those in use go back to the raw memory when they are freed.
  void EndPool(uint64_t pool);

  AllocatorStats stats() const;
  void ResetPeak();
  // Counts rises and falls from 0 again.
  void ResetTotals();
  // Every block, in the order of addresses, which is that within a segment; without the CPU's small ones.
  std::vector<MemoryBlock> Snapshot() const;
  // Returns all idle segments to the raw memory, but those of pools; nothing while work is recorded. On the
  // CPU, small blocks stay.
  void EmptyCache();
  // The most bytes to reserve; a request beyond it empties the cache, tries
  // again and then throws. 0: no limit. On the CPU the default is the memory of
  // the machine, so that absurd requests end in an Error and not in the kernel's
  // out-of-memory killer.
  void SetLimit(int64_t bytes);
  int64_t limit() const;
  // The most bytes to keep in idle blocks; on the CPU by default a quarter of
  // the machine's memory.
  void SetCacheLimit(int64_t bytes);
  // From now on a block is memory of its own, for devices that watch the bounds of each.
  void KeepBlocksWhole();
  Device device() const { return device_; }

  // What a request of `size` bytes beyond the small pool is rounded to where blocks are whole.
  static int64_t RoundedSize(int64_t size);

  // For small_pool.cc: small blocks in use have changed.
  void NotePeakOfSmall();
  // For small_pool.cc: memory that is never given back; NULL if there is none.
  void* AllocateSlab(int64_t size);
  [[noreturn]] void ThrowOutOfMemory(int64_t size);

 private:
  friend void LockAllocators();
  friend void UnlockAllocators();
  friend void UnlockAllocatorsOfChild();
  using Block = BlockMap::Block;
  using Leaving = BlockMap::Leaving;
  // A freed block that other streams may still use.
  struct Pending {
    void* data;
    std::vector<uint64_t> events;
  };
  class Unlocked;
  using Lock =
      std::unique_lock<std::mutex>;  // of mutex_, held; what takes one lets it go to call the raw memory

  bool is_cpu() const { return device_.is_cpu(); }
  void* AllocateBlock(int64_t size, uint64_t stream);
  void FreeBlock(void* data);
  void MakeIdle(void* data, std::vector<Leaving>& leaving);
  void TakeDonePending(Lock& lock);
  void FinishPending(Lock& lock);
  void WaitForUsers(Lock& lock, void* data);
  template <typename T>
  T* Insist(Lock& lock, T* (CachingAllocator::*attempt)(int64_t, const BlockMap::Owner&, Lock&), int64_t size,
            const BlockMap::Owner& owner);
  Block* Obtain(int64_t size, const BlockMap::Owner& owner, Lock& lock);
  Block* NewSegment(int64_t size, const BlockMap::Owner& owner, Lock& lock);
  void* RawTry(int64_t size, const BlockMap::Owner& owner, Lock& lock);
  void Return(std::vector<Leaving> leaving, Lock& lock);
  void WaitForOthers(Lock& lock);
  void EmptyCache(Lock& lock);
  void NotePeak();
  void NoteSplit();
  void ForEachCount(void (*f)(MemoryCount&));

  const Device device_;
  RawMemory* const raw_;
  mutable std::mutex mutex_;
  BlockMap blocks_;
  std::vector<Pending> pending_;
  std::vector<void*> freed_in_recording_;  // whose users are asked about at its end
  int recordings_ = 0;
  int64_t away_ =
      0;  // threads that call the raw memory, with blocks that are counted nowhere or twice meanwhile
  std::condition_variable back_;
  AllocatorStats stats_;     // without the small pool
  int64_t asked_for_ = 0;    // bytes that threads ask the raw memory for now
  int64_t most_active_ = 0;  // bytes, ever
  int64_t limit_ = 0;
  int64_t cache_limit_ = INT64_MAX;
};

// The allocator of a device; lives for good. Throws a kRuntime Error when the
// backend has registered no memory (meta has none).
CachingAllocator& AllocatorFor(Device device);
// Gives a backend its raw memory, for all its device indices. `raw` must live
// for good. A second registration for one backend throws.
void RegisterRawMemory(int backend, RawMemory* raw);
// From now on the blocks of its devices are memory of their own.
void KeepBlocksWhole(int backend);

}  // namespace mica
