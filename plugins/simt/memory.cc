// First fit among the holes, then from the top of the arena on.
#include "plugins/simt/memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include <mica/plugin.h>

namespace simt {
namespace {

constexpr int64_t kAlignment = 256, kRedZone = 64;
constexpr unsigned char kRed = 0xB5, kPoison = 0xFF;

// Where the first byte that is not `byte` stands, or -1.
int64_t FindOther(const char* at, int64_t size, unsigned char byte) {
  if (size > 0 && static_cast<unsigned char>(at[0]) == byte &&
      std::memcmp(at, at + 1, static_cast<size_t>(size - 1)) == 0) {
    return -1;
  }
  for (int64_t i = 0; i < size; ++i) {
    if (static_cast<unsigned char>(at[i]) != byte) return i;
  }
  return -1;
}

// Whether the allocation that MICA_SIMT_FAIL_ALLOCATION counts to is this one.
bool FailsOnRequest() {
  static std::mutex mutex;
  static int64_t asked = 0, count = 0;
  const char* text = std::getenv("MICA_SIMT_FAIL_ALLOCATION");
  const int64_t now = text ? std::atoll(text) : 0;
  std::lock_guard<std::mutex> lock(mutex);
  if (now != asked) count = 0;
  asked = now;
  return ++count == now;
}

std::string Bytes(int64_t n) { return "(" + std::to_string(n) + ") bytes"; }

}  // namespace

Memory::Memory(int device, int64_t limit)
    : device_(device), limit_(limit), length_(2 * limit + (int64_t{64} << 20)), guarded_([] {
        const char* text = std::getenv("MICA_SIMT_GUARD");
        return !text || std::atoi(text) != 0;
      }()) {
  void* base = mmap(nullptr, static_cast<size_t>(length_), guarded_ ? PROT_NONE : PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  MICA_PLUGIN_CHECK(base != MAP_FAILED, MICA_ERROR_RUNTIME,
                    "The simulated GPU (" + std::to_string(device) + ") cannot reserve " + Bytes(length_) +
                        " of addresses; MICA_SIMT_MEMORY says how many it has.");
  base_ = static_cast<char*>(base);
  // Open() costs 7 ms with 256 MiB in use by small pages.
  madvise(base, static_cast<size_t>(length_), MADV_HUGEPAGE);
}

void Memory::Open(int change) {
  if (!guarded_) return;
  std::lock_guard<std::mutex> lock(access_mutex_);
  const bool was = open_ > 0;
  open_ += change;
  if (was == (open_ > 0)) return;
  const int done = mprotect(base_, static_cast<size_t>(length_), was ? PROT_NONE : PROT_READ | PROT_WRITE);
  MICA_PLUGIN_CHECK(done == 0, MICA_ERROR_RUNTIME, "mprotect of a simulated GPU's memory failed.");
}

void* Memory::Allocate(int64_t size) {
  const std::string where = "The simulated GPU (" + std::to_string(device_) + ") ";
  MICA_PLUGIN_CHECK(size >= 0, MICA_ERROR_VALUE, where + "is asked for " + Bytes(size) + ".");
  const bool fails = FailsOnRequest();
  std::lock_guard<std::mutex> lock(mutex_);
  const auto fail = [&](const std::string& why) {
    MICA_PLUGIN_THROW(MICA_ERROR_OUT_OF_MEMORY, where + "has no room for an allocation of " + Bytes(size) +
                                                    ": " + Bytes(used_) + " of its " + Bytes(limit_) +
                                                    " are in use" + why + ".");
  };
  if (fails) fail(", and MICA_SIMT_FAIL_ALLOCATION lets this one fail");
  if (size > limit_ - used_) fail("");
  // A red zone of kAlignment before the data, one of at least kRedZone behind it.
  const int64_t length = kAlignment + (size + kRedZone + kAlignment - 1) / kAlignment * kAlignment;
  auto hole = holes_.begin();
  while (hole != holes_.end() && hole->second < length) ++hole;
  Block block{0, length, size, count_ + 1};
  Access access(*this);
  if (hole != holes_.end()) {
    block.offset = hole->first;
    if (hole->second > length) holes_[hole->first + length] = hole->second - length;
    holes_.erase(hole);
  } else {
    if (length > length_ - top_) fail(", in pieces");
    block.offset = top_;
    std::memset(base_ + top_, kPoison, static_cast<size_t>(length));
    top_ += length;
  }
  char* data = base_ + block.offset + kAlignment;
  const int64_t written = FindOther(base_ + block.offset, length, kPoison);
  if (written >= 0) {
    // Reported once: the bytes are poison again when the hole is taken next.
    std::memset(base_ + block.offset, kPoison, static_cast<size_t>(length));
    holes_[block.offset] = length;
    MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME, "Freed memory of the simulated GPU (" + std::to_string(device_) +
                                              ") was written to, at the address (" +
                                              std::to_string(reinterpret_cast<uintptr_t>(base_) +
                                                             static_cast<uintptr_t>(block.offset + written)) +
                                              ").");
  }
  std::memset(data - kAlignment, kRed, kAlignment);
  std::memset(data + size, kRed, static_cast<size_t>(length - kAlignment - size));
  ++count_;
  used_ += size;
  blocks_[data - base_] = block;
  return data;
}

std::string Memory::Name(const Block& block) const {
  return "the allocation (" + std::to_string(block.number) + ") of " + Bytes(block.size) +
         " on the simulated GPU (" + std::to_string(device_) + ")";
}

std::string Memory::Overwritten(const Block& block) const {
  const char* data = base_ + block.offset + kAlignment;
  const int64_t tail = block.length - kAlignment - block.size;
  int64_t before = 0;
  while (before < kAlignment && static_cast<unsigned char>(data[-1 - before]) == kRed) ++before;
  const int64_t behind = FindOther(data + block.size, tail, kRed);
  std::string sides;
  if (before < kAlignment) sides = "before its start, at (-" + std::to_string(before + 1) + ")";
  if (behind >= 0) {
    sides += std::string(sides.empty() ? "" : " and ") + "behind its end, at (" +
             std::to_string(block.size + behind) + ")";
  }
  return sides.empty() ? "" : "A kernel wrote outside of " + Name(block) + ": " + sides + ".";
}

std::string Memory::Free(void* data) {
  if (!data) return "";
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.find(static_cast<char*>(data) - base_);
  if (found == blocks_.end()) {
    return "The simulated GPU (" + std::to_string(device_) +
           ") is asked to free an address that it did not give.";
  }
  Access access(*this);
  const Block block = found->second;
  const std::string wrong = Overwritten(block);
  std::memset(base_ + block.offset, kPoison, static_cast<size_t>(block.length));
  blocks_.erase(found);
  used_ -= block.size;
  // One hole with its neighbours.
  auto hole = holes_.emplace(block.offset, block.length).first;
  const auto next = std::next(hole);
  if (next != holes_.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    holes_.erase(next);
  }
  if (hole != holes_.begin()) {
    const auto previous = std::prev(hole);
    if (previous->first + previous->second == hole->first) {
      previous->second += hole->second;
      holes_.erase(hole);
    }
  }
  return wrong;
}

std::string Memory::CheckRedZones() {
  std::lock_guard<std::mutex> lock(mutex_);
  Access access(*this);
  for (const auto& [offset, block] : blocks_) {
    const std::string wrong = Overwritten(block);
    if (wrong.empty()) continue;
    // Reported once.
    char* data = base_ + offset;
    std::memset(data - kAlignment, kRed, kAlignment);
    std::memset(data + block.size, kRed, static_cast<size_t>(block.length - kAlignment - block.size));
    return wrong;
  }
  return "";
}

bool Memory::Owns(const void* data) const {
  const char* at = static_cast<const char*>(data);
  return at >= base_ && at < base_ + length_;
}

bool Memory::Holds(const void* data, int64_t size) {
  std::lock_guard<std::mutex> lock(mutex_);
  const int64_t offset = static_cast<const char*>(data) - base_;
  auto found = blocks_.upper_bound(offset);
  if (found == blocks_.begin()) return false;
  --found;
  return size >= 0 && size <= found->first + found->second.size - offset;
}

int64_t Memory::free_bytes() {
  std::lock_guard<std::mutex> lock(mutex_);
  return limit_ - used_;
}

}  // namespace simt
