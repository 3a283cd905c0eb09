// CpuMemory: from 1 MiB up a 2 MiB-aligned mapping advised to huge pages (one
// fault for 512 pages), below that aligned_alloc.
#include "tensor/cpu_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

namespace mica {

namespace {

constexpr int64_t kMapFrom = int64_t{1} << 20;
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kPage = 4096;

class CpuRawMemory : public RawMemory {
 public:
  void* Allocate(int, int64_t size, uint64_t) override {
    if (size < kMapFrom) return std::aligned_alloc(64, (size + 63) / 64 * 64);
    const int64_t bytes = (size + kPage - 1) / kPage * kPage;
    void* mapped =
        mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    char* begin = static_cast<char*>(mapped);
    char* end = begin + bytes + kHugePage;
    const uintptr_t address = (reinterpret_cast<uintptr_t>(begin) + kHugePage - 1) / kHugePage * kHugePage;
    char* data = reinterpret_cast<char*>(address);
    if (data > begin) munmap(begin, data - begin);
    if (data + bytes < end) munmap(data + bytes, end - data - bytes);
    madvise(data, bytes, MADV_HUGEPAGE);  // advice: its failure changes speed alone
    return data;
  }
  void Free(int, void* data, int64_t size, uint64_t) override {
    if (size < kMapFrom) return std::free(data);
    munmap(data, (size + kPage - 1) / kPage * kPage);
  }
};

}  // namespace

RawMemory* CpuMemory() {
  static CpuRawMemory* memory = new CpuRawMemory();
  return memory;
}

}  // namespace mica
