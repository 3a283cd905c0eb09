// Lines of elements become pairs of key and position, and those are sorted: long lines
// by counting digits of eight bits (a stable radix sort, 4 passes for 32-bit keys), short
// ones by comparison, a pair being one 64-bit number where the key is short. topk selects
// first, and sorts what it selected.
#include "mica/plugins/cpu/sorting/sorting.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "mica/plugins/cpu/contraction/dense.h"
#include "mica/plugins/cpu/engine/threads.h"
#include "mica/plugins/cpu/indexing/indices.h"
#include "mica/plugins/cpu/sorting/keys.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

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

// One line of around.size elements, around.inner apart, as are the results.
template <class Rule, class Bits>
void SortLine(Rule, const Bits* from, const Around& around, bool descending, int64_t kept,
              std::vector<Entry<Bits>>& entries, std::vector<Entry<Bits>>& spare, Bits* values,
              int64_t* positions) {
  entries.resize(static_cast<size_t>(around.size));
  for (int64_t j = 0; j < around.size; ++j) {
    const Bits key = Rule::KeyOf(from[j * around.inner]);
    entries[static_cast<size_t>(j)] = {descending ? static_cast<Bits>(~key) : key, static_cast<uint32_t>(j)};
  }
  Order(entries, spare, kept);
  for (int64_t j = 0; j < kept; ++j) {
    const int64_t position = entries[static_cast<size_t>(j)].position();
    values[j * around.inner] = from[position * around.inner];
    positions[j * around.inner] = position;
  }
}

void SortLines(const MicaCall* call, MicaTensor* self, int64_t dim, bool descending, int64_t kept,
               MicaTensor* values, MicaTensor* indices) {
  const TensorRef in(self);
  const int32_t threads = ThreadsOf(call);
  const Around around(in, dim);
  if (around.size >= UINT32_MAX) throw plugin::NotImplemented();
  const DenseInput dense(self, in.dtype(), threads);
  DenseOutput sorted(values, in.dtype(), threads), places(indices, MICA_I64, threads);
  std::atomic<bool> no_memory{false};
  VisitOrdered(in.dtype(), [&](auto rule) {
    using Bits = typename decltype(rule)::Bits;
    const int64_t lines = around.outer * around.inner;
    ParallelSteps(lines, std::max<int64_t>(1, kIndexGrain / 8 / std::max<int64_t>(around.size, 1)), 1,
                  threads, [&](int64_t begin, int64_t end) {
                    try {
                      std::vector<Entry<Bits>> entries, spare;
                      for (int64_t line = begin; line < end; ++line) {
                        const int64_t o = line / around.inner, i = line % around.inner,
                                      to = o * kept * around.inner + i;
                        SortLine(rule, dense.data<Bits>() + o * around.size * around.inner + i, around,
                                 descending, kept, entries, spare, sorted.data<Bits>() + to,
                                 places.data<int64_t>() + to);
                      }
                    } catch (const std::bad_alloc&) {
                      no_memory = true;
                    }
                  });
  });
  if (no_memory) throw std::bad_alloc();
  sorted.Finish();
  places.Finish();
}

}  // namespace

void SortStable(const MicaCall* call, MicaTensor* self, MicaOptInt, int64_t dim, int32_t descending,
                MicaTensor* values, MicaTensor* indices) {
  SortLines(call, self, dim, descending != 0, Around(self, dim).size, values, indices);
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
