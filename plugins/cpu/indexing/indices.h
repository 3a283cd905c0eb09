// Index tensors as the kernels of this folder read them: dense int64, checked.
//
// A kernel here serves what is valid and common; for an index out of range, a layout
// or a dtype that it does not know it throws NotImplemented, and the portable kernel
// serves the call or says what is wrong with it.
#ifndef MICA_PLUGINS_CPU_INDEXING_INDICES_H_
#define MICA_PLUGINS_CPU_INDEXING_INDICES_H_

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "plugins/cpu/contraction/dense.h"

namespace mica::cpu {

// Indices where they lie in their tensor, or a copy of them.
class IndexList {
 public:
  IndexList(const int64_t* data, int64_t size) : data_(data), size_(size) {}
  explicit IndexList(std::vector<int64_t> copy)
      : copy_(std::move(copy)), data_(copy_.data()), size_(static_cast<int64_t>(copy_.size())) {}
  IndexList(const IndexList&) = delete;
  int64_t operator[](int64_t i) const { return data_[i]; }
  const int64_t* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  std::vector<int64_t> copy_;
  const int64_t* data_;
  int64_t size_;
};

// All elements in row-major order, each in [0, size).
IndexList Indices(const MicaTensor* index, int64_t size);
// The same of a tensor broadcast to `sizes`; with `wrap` also elements of [-size, 0),
// which count from the end.
std::vector<int64_t> BroadcastIndices(const MicaTensor* index, const std::vector<int64_t>& sizes,
                                      int64_t size, bool wrap);

// Whether n indices, `stride` apart, are in [0, size).
template <class I>
bool AreInside(const I* index, int64_t stride, int64_t n, int64_t size) {
  // The top bit is set once an index is negative, or greater than the last one.
  const auto last = static_cast<uint64_t>(size - 1);
  uint64_t outside = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto place = static_cast<uint64_t>(index[i * stride]);
    outside |= place | (last - place);
  }
  return outside >> 63 == 0;
}

// Calls f(T{}) with an unsigned type of `itemsize` bytes; elements are only moved.
struct Wide {
  uint64_t parts[2];
};
template <class F>
void VisitSize(int64_t itemsize, F f) {
  switch (itemsize) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      return f(Wide{});
  }
}

// Elements that make a second thread worth waking.
inline constexpr int64_t kIndexGrain = 16384;
// Elements of a line between two questions for a Ctrl-C: some milliseconds where each waits for memory.
inline constexpr int64_t kLineElements = 1 << 18;

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_INDEXING_INDICES_H_
