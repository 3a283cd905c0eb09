// The caching allocator: classes, reuse, limits, statistics, threads, fork.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "tensor/allocator.h"
#include "tensor/poison.h"
#include "tensor/small_pool.h"
#include "tensor/tensor.h"
#include "test/support/mica_test.h"

namespace mica {
namespace {

CachingAllocator& Cpu() { return AllocatorFor(Device{}); }

// Raw memory that counts, and has so many bytes only.
class CountingMemory : public RawMemory {
 public:
  explicit CountingMemory(int64_t bytes) : left_(bytes) {}
  void* Allocate(int, int64_t size, uint64_t) override {
    if (size > left_) return nullptr;
    left_ -= size;
    ++allocations;
    return std::aligned_alloc(512, (size + 511) / 512 * 512);
  }
  void Free(int, void* data, int64_t size, uint64_t) override {
    left_ += size;
    ++frees;
    std::free(data);
  }
  int allocations = 0;
  int frees = 0;

 private:
  int64_t left_;
};

// A device whose driver asks the allocator something at each call, as a warning does that waits for another
// thread.
class AskingMemory : public RawMemory {
 public:
  void* Allocate(int, int64_t size, uint64_t) override {
    Ask();
    return std::aligned_alloc(512, (size + 511) / 512 * 512);
  }
  void Free(int, void* data, int64_t, uint64_t) override {
    Ask();
    std::free(data);
  }
  uint64_t RecordEvent(int, uint64_t) override { return Ask(); }
  bool TakeIfDone(int, uint64_t) override { return Ask() == 0; }
  void WaitAndTake(int, uint64_t) override { Ask(); }
  CachingAllocator* allocator = nullptr;
  uint64_t asked = 0;

 private:
  uint64_t Ask() {
    std::thread([this] { allocator->stats(); }).join();
    return ++asked;
  }
};

TEST_CASE("no lock of the allocator is held while the device's driver runs", "[tensor]") {
  AskingMemory memory;
  CachingAllocator allocator(Device{static_cast<int16_t>(RegisterBackendName("asking")), 0}, &memory);
  memory.allocator = &allocator;
  constexpr int64_t kSize = 3 << 20;
  void* shared = allocator.AllocateUnsized(kSize, 0);
  allocator.RecordStream(shared, 7);
  allocator.FreeUnsized(shared);                       // after an event that is never done
  void* second = allocator.AllocateUnsized(kSize, 0);  // which this asks
  CHECK(second != shared);
  allocator.FreeUnsized(second);
  CHECK(allocator.AllocateUnsized(kSize, 0) == second);
  allocator.EmptyCache();  // waits for the event
  CHECK(allocator.stats().segments.fallen == 1);
  allocator.SetLimit(kSize);
  MICA_REQUIRE_ERROR(allocator.AllocateUnsized(kSize, 0), "has no memory for a request");
  allocator.SetCacheLimit(0);
  allocator.FreeUnsized(second);
  CHECK(allocator.stats().segments.fallen == 2);
  CHECK(allocator.stats().reserved.current == 0);
  CHECK(memory.asked >= 6);
}

TEST_CASE("small classes cover every size with little waste", "[tensor]") {
  for (int64_t size = 1; size <= internal::kMaxSmallBlock; ++size) {
    const int c = internal::SmallClass(size);
    REQUIRE(c < internal::kSmallClasses);
    REQUIRE(internal::SmallClassSize(c) >= size);
    REQUIRE(internal::SmallClassSize(c) % 64 == 0);
    if (c > 0) REQUIRE(internal::SmallClassSize(c - 1) < size);
    if (size > 1024) REQUIRE(internal::SmallClassSize(c) <= size + size / 8);
  }
}

TEST_CASE("large requests are rounded by an eighth at most", "[tensor]") {
  for (int64_t size = 33000; size < (int64_t{1} << 40); size += size / 7 + 13) {
    const int64_t rounded = CachingAllocator::RoundedSize(size);
    REQUIRE(rounded >= size);
    REQUIRE(rounded <= size + size / 8 + 512);
    REQUIRE(CachingAllocator::RoundedSize(rounded) == rounded);
  }
}

TEST_CASE("blocks are aligned and reused", "[tensor]") {
  for (int64_t size : {0, 1, 64, 65, 1000, 5000, 32768, 32769, 100000, 1 << 20, 5 << 20}) {
    void* data = Cpu().Allocate(size);
    INFO("size " << size);
    CHECK(reinterpret_cast<uintptr_t>(data) % 64 == 0);
    if (size >= 1 << 20) CHECK(reinterpret_cast<uintptr_t>(data) % (2 << 20) == 0);
    std::memset(data, 1, size);
    Cpu().Free(data, size);
    void* again = Cpu().Allocate(size);
    CHECK(again == data);
    Cpu().Free(again, size);
    void* unsized = Cpu().AllocateUnsized(size, 0);
    CHECK(reinterpret_cast<uintptr_t>(unsized) % 64 == 0);
    std::memset(unsized, 2, size);
    Cpu().FreeUnsized(unsized);
  }
  Cpu().FreeUnsized(nullptr);
}

TEST_CASE("where blocks stay whole, the best idle one is taken, within a quarter", "[tensor]") {
  CountingMemory raw(int64_t{1} << 30);
  const int backend = RegisterBackendName("counting");
  RegisterRawMemory(backend, &raw);
  CachingAllocator& a = AllocatorFor({static_cast<int16_t>(backend), 0});
  CHECK(&a == &AllocatorFor({static_cast<int16_t>(backend), 0}));
  a.KeepBlocksWhole();
  void* small = a.Allocate(100 << 10);
  void* middle = a.Allocate(112 << 10);
  void* large = a.Allocate(400 << 10);
  a.Free(large, 0);
  a.Free(middle, 0);
  a.Free(small, 0);
  CHECK(a.Allocate(110 << 10) == middle);
  CHECK(a.Allocate(90 << 10) == small);
  CHECK(raw.allocations == 3);
  void* fresh = a.Allocate(300 << 10);  // 400 is more than a quarter larger
  CHECK(fresh != large);
  CHECK(raw.allocations == 4);
  const AllocatorStats stats = a.stats();
  CHECK(stats.blocks.risen == 6);
  CHECK(stats.cache_hits == 2);
  CHECK(stats.segments.risen == 4);
  CHECK(stats.allocated.current == CachingAllocator::RoundedSize(100 << 10) + (112 << 10) + (320 << 10));
  a.EmptyCache();
  CHECK(raw.frees == 1);
  CHECK(a.stats().reserved.current == a.stats().allocated.current);
  a.Free(fresh, 0);
  a.Free(middle, 0);
  a.Free(small, 0);
  CHECK(a.stats().allocated.current == 0);
  CHECK(a.stats().allocated.peak >= (612 << 10));
  a.ResetPeak();
  CHECK(a.stats().allocated.peak == 0);
  a.SetCacheLimit(0);
  CHECK(raw.frees == 4);
  a.Free(a.Allocate(64 << 10), 0);
  CHECK(raw.frees == 5);
  MICA_REQUIRE_ERROR((RegisterRawMemory(backend, nullptr), 0), "registered its memory already");
  MICA_REQUIRE_ERROR(AllocatorFor(Device{1, 0}), "The device meta has no memory");
  int local = 0;
  MICA_REQUIRE_ERROR((a.Free(&local, 0), 0), "not one of the allocator");
}

TEST_CASE("of idle blocks of one size the one freed last is taken", "[tensor]") {
  constexpr int64_t kSize = 3 << 20;
  void* blocks[4];
  for (void*& block : blocks) block = Cpu().Allocate(kSize);
  for (void* block : blocks) Cpu().Free(block, kSize);
  for (int i = 3; i >= 0; --i) CHECK(Cpu().Allocate(kSize) == blocks[i]);
  for (void* block : blocks) Cpu().Free(block, kSize);
}

TEST_CASE("a limit empties the cache first and then refuses", "[tensor]") {
  CountingMemory raw(int64_t{1} << 30);
  CachingAllocator a(Device{static_cast<int16_t>(RegisterBackendName("limited")), 0}, &raw);
  a.SetLimit(1 << 20);
  void* first = a.Allocate(600 << 10);
  a.Free(first, 0);
  void* second = a.Allocate(896 << 10);  // fits only without the idle block
  CHECK(raw.frees == 1);
  MICA_REQUIRE_ERROR(a.Allocate(200 << 10),
                     "The device limited:0 has no memory for a request of 204800 bytes; 917504 bytes are in "
                     "use, 917504 reserved, and the limit is 1048576 bytes.");
  CHECK(a.stats().out_of_memory == 1);
  CHECK(a.stats().retries == 2);  // the other was for the request of 896 KiB
  a.SetLimit(0);
  a.Free(a.Allocate(200 << 10), 0);
  a.Free(second, 0);
  a.EmptyCache();
  MICA_REQUIRE_ERROR(a.Allocate(int64_t{2} << 30), "the limit is not set");
  MICA_REQUIRE_ERROR(a.Allocate(INT64_MAX), "has no memory");
  MICA_REQUIRE_ERROR(a.Allocate(-1), "is negative");
  MICA_REQUIRE_ERROR((a.SetLimit(-1), 0), "is negative");
}

TEST_CASE("blocks of a pool are given to nobody else, and stay while work is recorded", "[tensor]") {
  class PooledMemory : public CountingMemory {
   public:
    using CountingMemory::CountingMemory;
    uint64_t PoolOf(int, uint64_t) override { return pool; }
    void SynchronizeDevice(int) override { ++waits; }
    uint64_t RecordEvent(int, uint64_t) override { return ++events; }
    uint64_t pool = 0, events = 0;
    int waits = 0;
  } raw(int64_t{1} << 30);
  CachingAllocator a(Device{static_cast<int16_t>(RegisterBackendName("pooled")), 0}, &raw);
  constexpr int64_t kSize = 50000;
  raw.pool = 3;
  a.BeginRecording();
  void* first = a.Allocate(kSize);
  a.Free(first, 0);
  CHECK(a.Allocate(kSize) == first);  // within the pool it goes round
  void* shared = a.Allocate(2 * kSize);
  a.RecordStream(shared, 7);
  a.Free(shared, 0);
  CHECK(raw.events == 0);  // no event is part of what is recorded
  a.EndRecording();
  CHECK(raw.events == 1);
  a.Free(first, 0);
  raw.pool = 0;
  void* other = a.Allocate(kSize);
  CHECK(other != first);
  a.EmptyCache();
  CHECK(raw.frees == 0);  // replays write the pool's blocks
  raw.pool = 3;
  void* outlived = a.Allocate(3 * kSize);
  raw.pool = 0;
  a.EndPool(3);
  CHECK(raw.frees == 0);
  a.Free(outlived, 0);  // any stream may read it still
  CHECK(raw.waits == 1);
  void* again = a.Allocate(4 * kSize);  // what was the pool's is everybody's
  CHECK(raw.allocations == 2);
  a.Free(again, 0);
  a.Free(other, 0);
  CHECK(raw.waits == 1);
  a.EmptyCache();
  CHECK(raw.frees == 2);
  CHECK(a.stats().reserved.current == 0);
}

TEST_CASE("blocks are cut from segments and join again", "[tensor]") {
  CountingMemory raw(int64_t{1} << 30);
  CachingAllocator a(Device{static_cast<int16_t>(RegisterBackendName("cut")), 0}, &raw);
  constexpr int64_t kMiB = int64_t{1} << 20;
  auto* whole = static_cast<char*>(a.Allocate(8 * kMiB));
  a.Free(whole, 0);
  void* parts[4];
  for (int i = 0; i < 4; ++i) CHECK((parts[i] = a.Allocate(2 * kMiB - 100)) == whole + i * 2 * kMiB);
  CHECK(raw.allocations == 1);
  CHECK(a.stats().requested.current == 4 * (2 * kMiB - 100));
  CHECK(a.stats().allocated.current == 8 * kMiB);
  a.Free(parts[1], 0);
  a.Free(parts[3], 0);
  CHECK((a.stats().split_blocks.current == 2 && a.stats().idle_split.current == 4 * kMiB));
  a.EmptyCache();
  CHECK(raw.frees == 0);  // part of the segment is in use
  const std::vector<MemoryBlock> seen = a.Snapshot();
  REQUIRE(seen.size() == 4);
  for (int i = 0; i < 4; ++i) {
    CHECK(seen[i].address == parts[i]);
    CHECK(seen[i].size == 2 * kMiB);
    CHECK(seen[i].begins_segment == (i == 0));
    CHECK(seen[i].state == (i % 2 ? BlockMap::State::kIdle : BlockMap::State::kInUse));
    CHECK(seen[i].requested == (i % 2 ? 0 : 2 * kMiB - 100));
  }
  a.Free(parts[2], 0);  // joins both sides
  CHECK(a.Allocate(6 * kMiB) == parts[1]);
  a.Free(parts[1], 0);
  a.Free(parts[0], 0);
  CHECK(a.Snapshot().size() == 1);
  CHECK(a.Allocate(8 * kMiB) == whole);
  a.Free(whole, 0);
  CHECK(a.stats().split_blocks.current == 0);
  void* small = a.Allocate(100);
  CHECK(raw.allocations == 2);  // small blocks have segments of their own
  a.Free(small, 0);
  a.EmptyCache();
  CHECK((raw.frees == 2 && a.stats().reserved.current == 0 && a.stats().segments.current == 0));
  CHECK(a.stats().reserved.peak == 10 * kMiB);
  a.ResetTotals();
  CHECK((a.stats().blocks.risen == 0 && a.stats().segments.fallen == 0));
}

TEST_CASE("of 199 sizes one after another, little more is reserved than is in use", "[tensor]") {
  constexpr int64_t kStep = 86000;
  const auto most_for_one_in_use = [](auto&& size_of) {
    CountingMemory raw(int64_t{1} << 30);
    CachingAllocator a(Device{static_cast<int16_t>(RegisterBackendName("sizes")), 0}, &raw);
    void* last = nullptr;
    for (int64_t i = 1; i < 200; ++i) {
      void* const next = a.Allocate(size_of(i));  // before the last one is freed, as in `x = f(x)`
      if (last) a.Free(last, 0);
      last = next;
    }
    CHECK(raw.allocations < 150);
    return static_cast<double>(a.stats().reserved.peak) / static_cast<double>(a.stats().requested.peak);
  };
  CHECK(most_for_one_in_use([](int64_t i) { return i * kStep; }) < 1.3);
  CHECK(most_for_one_in_use([](int64_t i) { return (200 - i) * kStep; }) < 1.3);
  std::vector<int64_t> sizes(199);
  std::iota(sizes.begin(), sizes.end(), 1);
  for (unsigned seed = 0; seed < 5; ++seed) {
    std::shuffle(sizes.begin(), sizes.end(), std::mt19937(seed));
    CHECK(most_for_one_in_use([&](int64_t i) { return sizes[i - 1] * kStep; }) < 1.3);
  }
}

TEST_CASE("statistics count small blocks too", "[tensor]") {
  const AllocatorStats before = Cpu().stats();
  std::vector<Tensor> tensors;
  for (int i = 0; i < 100; ++i) tensors.push_back(EmptyTensor({4}, DType::kF32, Device{}));
  const AllocatorStats during = Cpu().stats();
  CHECK(during.blocks.risen - before.blocks.risen == 200);
  CHECK(during.allocated.current - before.allocated.current == 100 * (192 + 128));
  tensors.clear();
  CHECK(Cpu().stats().allocated.current == before.allocated.current);
  for (int i = 0; i < 1000; ++i) EmptyTensor({4}, DType::kF32, Device{});
  const AllocatorStats after = Cpu().stats();
  if (!internal::PoisonsMemory())
    CHECK(after.cache_hits - during.cache_hits == 2000);  // else all come filled
}

TEST_CASE("large results reuse their pages", "[tensor]") {
  void* first = EmptyTensor({4 << 20}, DType::kF32, Device{}).data();
  for (int i = 0; i < 5; ++i) CHECK(EmptyTensor({4 << 20}, DType::kF32, Device{}).data() == first);
  CHECK(EmptyTensor({(4 << 20) - 1000}, DType::kF32, Device{}).data() == first);
}

TEST_CASE("threads allocate, pass on and free", "[tensor]") {
  const int64_t before = Cpu().stats().allocated.current;
  constexpr int kThreads = 4;
  std::vector<std::atomic<TensorImpl*>> slots(64);
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&slots, id] {
      uint32_t state = 12345u + static_cast<uint32_t>(id);
      for (int i = 0; i < 20000; ++i) {
        state = state * 1664525u + 1013904223u;
        const int64_t n = (state >> 8) % (i % 50 == 0 ? 20000 : 300);
        Tensor t = EmptyTensor({n}, DType::kF32, Device{});
        if (n > 0) t.data_as<float>()[n - 1] = static_cast<float>(id);
        Tensor view = MakeView(t, {n}, {1}, 0);
        // Leave one for another thread, and drop what another left.
        Tensor::Steal(slots[(state >> 3) % slots.size()].exchange(view.release()));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (auto& slot : slots) Tensor::Steal(slot.exchange(nullptr));
  CHECK(Cpu().stats().allocated.current == before);
}

TEST_CASE("a thread's end gives its blocks to the others", "[tensor]") {
  EmptyTensor({700}, DType::kF32, Device{});
  const int64_t reserved = Cpu().stats().reserved.current;
  for (int i = 0; i < 200; ++i) {
    std::thread([] {
      std::vector<Tensor> tensors;
      for (int k = 0; k < 40; ++k) tensors.push_back(EmptyTensor({700}, DType::kF32, Device{}));
    }).join();
  }
  CHECK(Cpu().stats().reserved.current - reserved <= (4 << 20));
}

struct LateTensor {
  Tensor tensor;
};

TEST_CASE("a thread_local that outlives the thread's lists still frees", "[tensor]") {
  const int64_t before = Cpu().stats().allocated.current;
  std::thread([] {
    thread_local LateTensor late;  // made before the pool's own thread_local
    late.tensor = Tensor();
    late.tensor = EmptyTensor({10}, DType::kF32, Device{});
  }).join();
  CHECK(Cpu().stats().allocated.current == before);
}

#if !defined(__SANITIZE_THREAD__)
TEST_CASE("a forked child allocates while threads of the parent do", "[tensor]") {
  std::atomic<bool> stop{false};
  std::thread busy([&stop] {
    while (!stop) {
      EmptyTensor({20000}, DType::kF32, Device{});
      std::vector<Tensor> many(600);
      for (Tensor& t : many) t = EmptyTensor({4}, DType::kF32, Device{});
    }
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      for (int k = 0; k < 100; ++k) {
        EmptyTensor({30000}, DType::kF32, Device{});
        EmptyTensor({k}, DType::kF32, Device{});
      }
      _exit(0);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
  }
  stop = true;
  busy.join();
}
#endif

}  // namespace
}  // namespace mica
