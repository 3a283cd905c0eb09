// Lines of elements become pairs of key and position, and those are sorted: long lines
// by counting digits of eight bits (a stable radix sort, 4 passes for 32-bit keys), short
// ones by comparison, a pair being one 64-bit number where the key is short. topk selects
// first, and sorts what it selected.
#include "plugins/cpu/sorting/sorting.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "plugins/cpu/engine/copy.h"
#include "plugins/cpu/sorting/lines.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

// Under this a comparison sort is faster than counting.
constexpr int64_t kShort = 256;

// Sorts by key, equal keys in their order or, if there is none yet, by position; `spare` is room of
// the same size.
template <bool kByPosition, class Key>
void RadixSort(std::vector<Entry<Key>>& entries, std::vector<Entry<Key>>& spare) {
  constexpr size_t kPlaces = kByPosition ? sizeof(uint32_t) : 0, kDigits = kPlaces + sizeof(Key);
  const auto digit_of = [](const Entry<Key>& e, size_t digit) {
    if (digit < kPlaces) return static_cast<size_t>(e.position() >> (digit * 8) & 255);
    return static_cast<size_t>(e.key() >> ((digit - kPlaces) * 8) & 255);
  };
  std::vector<uint32_t> counts(kDigits * 256);
  const auto n = static_cast<int64_t>(entries.size());
  InPieces(n, [&](int64_t begin, int64_t end) {
    for (const Entry<Key>* e = entries.data() + begin; e < entries.data() + end; ++e)
      for (size_t digit = 0; digit < kDigits; ++digit) ++counts[digit * 256 + digit_of(*e, digit)];
  });
  spare.resize(entries.size());
  for (size_t digit = 0; digit < kDigits; ++digit) {
    uint32_t* count = counts.data() + digit * 256;
    // A digit that all share moves nothing.
    if (count[digit_of(entries[0], digit)] == entries.size()) continue;
    uint32_t before = 0;
    for (size_t i = 0; i < 256; ++i) before += std::exchange(count[i], before);
    InPieces(n, [&](int64_t begin, int64_t end) {
      for (const Entry<Key>* e = entries.data() + begin; e < entries.data() + end; ++e)
        spare[count[digit_of(*e, digit)]++] = *e;
    });
    entries.swap(spare);
  }
}

template <bool kByPosition, class Key>
void Order(std::vector<Entry<Key>>& entries, std::vector<Entry<Key>>& spare) {
  if (static_cast<int64_t>(entries.size()) <= kShort) {
    std::sort(entries.begin(), entries.end());
  } else {
    RadixSort<kByPosition>(entries, spare);
  }
}

// Up to so many least entries are kept in order from the first on.
constexpr int64_t kFew = 16;
// Keys are looked at so many at a time.
constexpr int64_t kGlance = 16;

// The few least entries in order: those among the first keys, and then each below the greatest
// of them, moved to its place from behind. A glance of keys that are all greater costs a few
// vector instructions. A line that falls is read from behind, where its least keys are.
template <class Rule, class Bits>
void SelectFew(Rule, Line<const Bits> from, int64_t length, Bits flip, int64_t kept, Entry<Bits>* first) {
  int64_t n = 0;
  const auto insert = [&](Bits key, int64_t position) {
    const Entry<Bits> entry{key, static_cast<uint32_t>(position)};
    int64_t at = n < kept ? n++ : kept - 1;
    for (; at > 0 && entry < first[at - 1]; --at) first[at] = first[at - 1];
    first[at] = entry;
  };
  const auto key_at = [&](int64_t j) { return static_cast<Bits>(Rule::KeyOf(from[j]) ^ flip); };
  const bool falls = key_at(length - 1) < key_at(0);
  const auto greatest = [&] { return static_cast<Bits>(first[kept - 1].key()); };
  Bits keys[kGlance];
  const auto glance = [&](int64_t done) {
    const int64_t count = std::min(kGlance, length - done);
    const int64_t begin = falls ? length - done - count : done;
    if (from.step == 1 && count == kGlance)
      for (int64_t i = 0; i < kGlance; ++i) keys[i] = Rule::KeyOf(from.data[begin + i]) ^ flip;
    else
      for (int64_t i = 0; i < count; ++i) keys[i] = key_at(begin + i);
    if (n == kept && count == kGlance) {
      const Bits most = greatest();
      Bits any = 0;
      for (int64_t i = 0; i < kGlance; ++i) any |= static_cast<Bits>(keys[i] <= most);
      if (!any) return;
    }
    if (falls) {  // of equal keys the earlier comes first
      for (int64_t i = count - 1; i >= 0; --i)
        if (n < kept || keys[i] <= greatest()) insert(keys[i], begin + i);
    } else {
      for (int64_t i = 0; i < count; ++i)
        if (n < kept || keys[i] < greatest()) insert(keys[i], begin + i);
    }
  };
  InPieces(length, [&](int64_t from, int64_t to) {
    for (int64_t done = from; done < to; done += kGlance) glance(done);
  });
}

// The `kept` least entries in order. Once there are as many, only those below the greatest of
// them are looked at again; a few more are gathered before they are thinned out.
template <class Bits, class KeyAt>
void Select(KeyAt key_at, int64_t length, int64_t kept, std::vector<Entry<Bits>>& entries,
            std::vector<Entry<Bits>>& spare) {
  const int64_t room = std::min(length, std::max<int64_t>(2 * kept, kShort));
  entries.resize(static_cast<size_t>(room));
  const auto first = entries.begin();
  int64_t n = 0;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  InPieces(length, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      const Bits key = key_at(j);
      // Of equal keys the earlier comes first, so that this one stays out.
      if (limit != std::numeric_limits<uint64_t>::max() && key >= limit) continue;
      first[n++] = {key, static_cast<uint32_t>(j)};
      if (n < room) continue;
      std::nth_element(first, first + kept - 1, first + n);
      limit = first[kept - 1].key();
      n = kept;
    }
  });
  if (n > kept) std::nth_element(first, first + kept - 1, first + n);
  entries.resize(static_cast<size_t>(kept));
  Order<true>(entries, spare);
}

template <class Rule, class Bits>
void SortLine(Rule rule, Line<const Bits> from, int64_t length, bool descending, int64_t kept,
              std::vector<Entry<Bits>>& entries, std::vector<Entry<Bits>>& spare, Line<Bits> values,
              Line<int64_t> positions) {
  const Bits flip = descending ? std::numeric_limits<Bits>::max() : Bits{0};
  const auto key_at = [&](int64_t j) { return static_cast<Bits>(Rule::KeyOf(from[j]) ^ flip); };
  if (kept * 4 <= length && kept <= kFew) {
    entries.resize(static_cast<size_t>(kept));
    if (kept > 0) SelectFew(rule, from, length, flip, kept, entries.data());
  } else if (kept * 4 <= length) {
    Select(key_at, length, kept, entries, spare);
  } else {
    entries.resize(static_cast<size_t>(length));
    InPieces(length, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j)
        entries[static_cast<size_t>(j)] = {key_at(j), static_cast<uint32_t>(j)};
    });
    Order<false>(entries, spare);
  }
  InPieces(kept, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      const int64_t position = entries[static_cast<size_t>(j)].position();
      values[j] = from[position];
      positions[j] = position;
    }
  });
}

// Of lines that are one number each, expanded: the first `kept` of them, in their order.
void FirstOfLines(const TensorRef& in, int32_t along, int64_t kept, const TensorRef& values,
                  const TensorRef& indices, int32_t threads) {
  std::vector<int64_t> order(static_cast<size_t>(kept));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::vector<int64_t> only_along(static_cast<size_t>(in.ndim()));
  only_along[static_cast<size_t>(along)] = 1;
  CopyStrided(in.itemsize(), in.ndim(), values.sizes(), in.data<void>(), in.strides(), values.data<void>(),
              values.strides(), threads);
  CopyStrided(sizeof(int64_t), in.ndim(), values.sizes(), order.data(), only_along.data(),
              indices.data<void>(), indices.strides(), threads);
}

void SortLines(const MicaCall* call, MicaTensor* self, int64_t dim, bool descending, int64_t kept,
               MicaTensor* values, MicaTensor* indices) {
  const TensorRef in(self);
  const auto along = static_cast<int32_t>(dim < 0 ? dim + in.ndim() : dim);
  constexpr int32_t kMostDims = 24;  // of CopyStrided
  if (in.ndim() > 0 && in.ndim() <= kMostDims && kept > 0 && in.stride(along) == 0)
    return FirstOfLines(in, along, kept, values, indices, ThreadsOf(call));
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
