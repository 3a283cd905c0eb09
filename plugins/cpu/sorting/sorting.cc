// Lines of elements become pairs of key and position, and those are sorted: long lines
// by counting digits of eight bits (a stable radix sort, 4 passes for 32-bit keys), short
// ones by comparison, a pair being one 64-bit number where the key is short. topk selects
// first, and sorts what it selected.
#include "mica/plugins/cpu/sorting/sorting.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "mica/plugins/cpu/sorting/lines.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

// Under this a comparison sort is faster than counting.
constexpr int64_t kShort = 256;

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

template <class Key>
void Order(std::vector<Entry<Key>>& entries, std::vector<Entry<Key>>& spare) {
  if (static_cast<int64_t>(entries.size()) <= kShort) {
    std::sort(entries.begin(), entries.end());
  } else {
    RadixSort(entries, spare);
  }
}

// The `kept` least entries in order. Once there are as many, only those below the greatest of
// them are looked at again; a few more are gathered before they are thinned out.
template <class Bits, class KeyAt>
void Select(KeyAt key_at, int64_t length, int64_t kept, std::vector<Entry<Bits>>& entries) {
  const int64_t room = std::min(length, std::max<int64_t>(2 * kept, kShort));
  entries.resize(static_cast<size_t>(room));
  const auto first = entries.begin();
  int64_t n = 0;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  for (int64_t j = 0; j < length; ++j) {
    const Bits key = key_at(j);
    // Of equal keys the earlier comes first, so that this one stays out.
    if (limit != std::numeric_limits<uint64_t>::max() && key >= limit) continue;
    first[n++] = {key, static_cast<uint32_t>(j)};
    if (n < room) continue;
    std::nth_element(first, first + kept - 1, first + n);
    limit = first[kept - 1].key();
    n = kept;
  }
  if (n > kept) std::nth_element(first, first + kept - 1, first + n);
  std::sort(first, first + kept);
}

template <class Rule, class Bits>
void SortLine(Rule, Line<const Bits> from, int64_t length, bool descending, int64_t kept,
              std::vector<Entry<Bits>>& entries, std::vector<Entry<Bits>>& spare, Line<Bits> values,
              Line<int64_t> positions) {
  const auto key_at = [&](int64_t j) {
    const Bits key = Rule::KeyOf(from[j]);
    return descending ? static_cast<Bits>(~key) : key;
  };
  if (kept * 4 <= length) {
    if (kept > 0) Select(key_at, length, kept, entries);
  } else {
    entries.resize(static_cast<size_t>(length));
    for (int64_t j = 0; j < length; ++j)
      entries[static_cast<size_t>(j)] = {key_at(j), static_cast<uint32_t>(j)};
    Order(entries, spare);
  }
  for (int64_t j = 0; j < kept; ++j) {
    const int64_t position = entries[static_cast<size_t>(j)].position();
    values[j] = from[position];
    positions[j] = position;
  }
}

void SortLines(const MicaCall* call, MicaTensor* self, int64_t dim, bool descending, int64_t kept,
               MicaTensor* values, MicaTensor* indices) {
  const TensorRef in(self);
  const auto along = static_cast<int32_t>(dim < 0 ? dim + in.ndim() : dim);
  const LinesAlong from{in, along}, sorted{values, along}, places{indices, along};
  ForEachLines(call, in, dim, [&](auto rule, int64_t begin, int64_t end) {
    using Bits = typename decltype(rule)::Bits;
    std::vector<Entry<Bits>> entries, spare;
    for (int64_t line = begin; line < end; ++line)
      SortLine(rule, from.At<const Bits>(line), LengthAlong(in, dim), descending, kept, entries, spare,
               sorted.At<Bits>(line), places.At<int64_t>(line));
  });
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
