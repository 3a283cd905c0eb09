// Lines of elements become pairs of key and position, and those are sorted: long lines
// by counting digits of eight bits (a stable radix sort, 4 passes for 32-bit keys), short
// ones by comparison, a pair being one 64-bit number where the key is short. topk selects
// first, and sorts what it selected.
#include "mica/plugins/cpu/sorting/sorting.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "mica/plugins/cpu/engine/threads.h"
#include "mica/plugins/cpu/indexing/indices.h"
#include "mica/plugins/cpu/sorting/keys.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

int64_t LengthAlong(const TensorRef& t, int64_t dim) {
  return t.ndim() == 0 ? 1 : t.size(static_cast<int>(dim));
}

// Under this a comparison sort is faster than counting.
constexpr int64_t kShort = 256;

template <class Key, bool kShortKey = sizeof(Key) <= 4>
class Entry {
 public:
  Entry() = default;
  Entry(Key key, uint32_t position) : pair_(static_cast<uint64_t>(key) << 32 | position) {}
  uint64_t key() const { return pair_ >> 32; }
  uint32_t position() const { return static_cast<uint32_t>(pair_); }
  bool operator<(const Entry& other) const { return pair_ < other.pair_; }

 private:
  uint64_t pair_;
};
template <class Key>
class Entry<Key, false> {
 public:
  Entry() = default;
  Entry(Key key, uint32_t position) : key_(key), position_(position) {}
  uint64_t key() const { return key_; }
  uint32_t position() const { return position_; }
  bool operator<(const Entry& other) const {
    return key_ != other.key_ ? key_ < other.key_ : position_ < other.position_;
  }

 private:
  Key key_;
  uint32_t position_;
};

// Sorts by key, equal keys in their order, with `spare` as room of the same size.
template <class Key>
void RadixSort(std::vector<Entry<Key>>& entries, std::vector<Entry<Key>>& spare) {
  constexpr size_t kDigits = sizeof(Key);
  std::vector<uint32_t> counts(kDigits * 256);
  for (const Entry<Key>& e : entries)
    for (size_t digit = 0; digit < kDigits; ++digit) ++counts[digit * 256 + (e.key() >> (digit * 8) & 255)];
  spare.resize(entries.size());
  for (size_t digit = 0; digit < kDigits; ++digit) {
    uint32_t* count = counts.data() + digit * 256;
    // A digit that all share moves nothing.
    if (count[entries[0].key() >> (digit * 8) & 255] == entries.size()) continue;
    uint32_t before = 0;
    for (size_t i = 0; i < 256; ++i) before += std::exchange(count[i], before);
    for (const Entry<Key>& e : entries) spare[count[e.key() >> (digit * 8) & 255]++] = e;
    entries.swap(spare);
  }
}

// The first `kept` of the sorted entries stand in front.
template <class Key>
void Order(std::vector<Entry<Key>>& entries, std::vector<Entry<Key>>& spare, int64_t kept) {
  const auto n = static_cast<int64_t>(entries.size());
  if (kept * 4 <= n) {
    std::nth_element(entries.begin(), entries.begin() + kept, entries.end());
    std::sort(entries.begin(), entries.begin() + kept);
  } else if (n <= kShort) {
    std::sort(entries.begin(), entries.end());
  } else {
    RadixSort(entries, spare);
  }
}

// Elements of a line, `step` apart.
template <class T>
struct Line {
  T* data;
  int64_t step;
  T& operator[](int64_t i) const { return data[i * step]; }
};

template <class Rule, class Bits>
void SortLine(Rule, Line<const Bits> from, int64_t length, bool descending, int64_t kept,
              std::vector<Entry<Bits>>& entries, std::vector<Entry<Bits>>& spare, Line<Bits> values,
              Line<int64_t> positions) {
  entries.resize(static_cast<size_t>(length));
  for (int64_t j = 0; j < length; ++j) {
    const Bits key = Rule::KeyOf(from[j]);
    entries[static_cast<size_t>(j)] = {descending ? static_cast<Bits>(~key) : key, static_cast<uint32_t>(j)};
  }
  Order(entries, spare, kept);
  for (int64_t j = 0; j < kept; ++j) {
    const int64_t position = entries[static_cast<size_t>(j)].position();
    values[j] = from[position];
    positions[j] = position;
  }
}

// Where lines along dimension `dim` of a tensor begin and how their elements follow.
struct LinesAlong {
  const TensorRef t;
  const int32_t dim;
  int64_t step() const { return t.ndim() == 0 ? 0 : t.stride(dim); }
  int64_t Begin(int64_t line) const {
    int64_t offset = 0;
    for (int32_t d = t.ndim() - 1; d >= 0; --d) {
      if (d == dim) continue;
      offset += line % t.size(d) * t.stride(d);
      line /= t.size(d);
    }
    return offset;
  }
  template <class T>
  Line<T> At(int64_t line) const {
    return {t.data<T>() + Begin(line), step()};
  }
};

void SortLines(const MicaCall* call, MicaTensor* self, int64_t dim, bool descending, int64_t kept,
               MicaTensor* values, MicaTensor* indices) {
  const TensorRef in(self);
  const int64_t length = LengthAlong(in, dim);
  if (length >= UINT32_MAX) throw plugin::NotImplemented();
  const auto along = static_cast<int32_t>(dim < 0 ? dim + in.ndim() : dim);
  const LinesAlong from{in, along}, sorted{values, along}, places{indices, along};
  std::atomic<bool> no_memory{false};
  VisitOrdered(in.dtype(), [&](auto rule) {
    using Bits = typename decltype(rule)::Bits;
    const int64_t lines = in.numel() / std::max<int64_t>(length, 1);
    ParallelSteps(lines, std::max<int64_t>(1, kIndexGrain / 8 / std::max<int64_t>(length, 1)), 1,
                  ThreadsOf(call), [&](int64_t begin, int64_t end) {
                    try {
                      std::vector<Entry<Bits>> entries, spare;
                      for (int64_t line = begin; line < end; ++line)
                        SortLine(rule, from.At<const Bits>(line), length, descending, kept, entries, spare,
                                 sorted.At<Bits>(line), places.At<int64_t>(line));
                    } catch (const std::bad_alloc&) {
                      no_memory = true;
                    }
                  });
  });
  if (no_memory) throw std::bad_alloc();
}

}  // namespace

void SortStable(const MicaCall* call, MicaTensor* self, MicaOptInt, int64_t dim, int32_t descending,
                MicaTensor* values, MicaTensor* indices) {
  SortLines(call, self, dim, descending != 0, LengthAlong(self, dim), values, indices);
}

void TopK(const MicaCall* call, MicaTensor* self, int64_t k, int64_t dim, int32_t largest, int32_t,
          MicaTensor* values, MicaTensor* indices) {
  SortLines(call, self, dim, largest != 0, k, values, indices);
}

void RegisterSorting(plugin::Registrar& r) {
  r.Kernel<&SortStable>("sort.values_stable");
  r.Kernel<&TopK>("topk.values");
}

}  // namespace mica::cpu
