// The caching allocator: one for each device, between tensors and the device's
// raw memory.
//
// Fresh pages cost more than most operators (64 MB faulted in page by page: 36
// of the 42 ms that torch's `x + x` takes), so freed blocks are kept and reused.
// On the CPU, requests up to 32 KiB go to the thread-local pool (small_pool.h).
// Everything else is rounded up to a class (at most 12.5 % larger) and served by
// the smallest idle block that is at most a quarter larger than the class; only
// then is the raw memory asked. Idle blocks beyond `cache_limit` are returned.
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

#include <compare>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tensor/device.h"

namespace mica {

// A device's memory without a cache. CachingAllocator calls it from any thread and holds no lock meanwhile:
// what a plugin does here, such as a warning that waits for Python, may need the allocator in another thread.
class RawMemory {
 public:
  virtual ~RawMemory() = default;
  // NULL when the device has no `size` bytes left.
  virtual void* Allocate(int index, int64_t size) = 0;
  virtual void Free(int index, void* data, int64_t size) = 0;
  // Streams; the defaults are those of a device that has none. An event that was
  // recorded is either found done or waited for, and gone after that.
  virtual uint64_t CurrentStream(int) { return 0; }
  // The pool that a stream's blocks belong to; 0 is everybody's.
  virtual uint64_t PoolOf(int, uint64_t) { return 0; }
  virtual uint64_t RecordEvent(int, uint64_t) { return 0; }
  virtual bool TakeIfDone(int, uint64_t) { return true; }
  virtual void WaitAndTake(int, uint64_t) {}
  virtual void SynchronizeStream(int, uint64_t) {}
  // All streams, but those whose work is recorded.
  virtual void SynchronizeDevice(int) {}
  // Between blocks of the device, in the order of the current stream.
  virtual void Copy(int index, void* to, const void* from, int64_t size);
};

struct AllocatorStats {
  int64_t bytes_in_use = 0;    // in blocks handed out, after rounding
  int64_t bytes_reserved = 0;  // taken from the raw memory
  int64_t peak_in_use = 0;     // seen at calls that left a thread's own lists of small blocks
  int64_t allocations = 0;
  int64_t cache_hits = 0;  // served without the raw memory
  int64_t raw_allocations = 0;
  int64_t raw_frees = 0;
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
  // Returns all idle blocks of more than 32 KiB to the raw memory, but those of pools; nothing while
  // work is recorded.
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
  Device device() const { return device_; }

  // What a request of `size` bytes beyond the small pool is rounded to.
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
  // Whom an idle block may be given to.
  struct Owner {
    uint64_t pool, stream;
    auto operator<=>(const Owner&) const = default;
  };
  struct Block {
    int64_t capacity;
    Owner owner;
    std::vector<uint64_t> used_on;  // other streams
    bool outlived_pool = false;     // any stream may use it
  };
  // A freed block that other streams may still use.
  struct Pending {
    void* data;
    std::vector<uint64_t> events;
  };
  using IdleBlocks = std::multimap<int64_t, void*>;  // by capacity
  // An idle block on its way to the raw memory: counted no more.
  struct Leaving {
    void* data;
    int64_t capacity;
    uint64_t stream;
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
  void* TakeIdle(int64_t size, const Owner& owner);
  void MergeIdle(const Owner& from, const Owner& to);
  void WaitForUsers(Lock& lock, void* data);
  void ReturnOutlived(Lock& lock, void* data);
  void* RawAllocate(int64_t size, Lock& lock);
  void* RawTry(int64_t size, Lock& lock);
  void Return(const std::vector<Leaving>& leaving, Lock& lock);
  void WaitForOthers(Lock& lock);
  void EmptyCache(Lock& lock);
  void NotePeak();

  const Device device_;
  RawMemory* const raw_;
  mutable std::mutex mutex_;
  std::map<Owner, IdleBlocks> idle_;
  std::unordered_map<void*, Block> blocks_;  // all of them, idle ones too
  std::vector<Pending> pending_;
  std::vector<void*> freed_in_recording_;  // whose users are asked about at its end
  int recordings_ = 0;
  int away_ = 0;  // threads that call the raw memory, with blocks that are counted nowhere or twice meanwhile
  std::condition_variable back_;
  AllocatorStats stats_;    // without the small pool
  int64_t idle_bytes_ = 0;  // without pools
  int64_t limit_ = 0;
  int64_t cache_limit_ = INT64_MAX;
};

// The allocator of a device; lives for good. Throws a kRuntime Error when the
// backend has registered no memory (meta has none).
CachingAllocator& AllocatorFor(Device device);
// Gives a backend its raw memory, for all its device indices. `raw` must live
// for good. A second registration for one backend throws.
void RegisterRawMemory(int backend, RawMemory* raw);

}  // namespace mica
