// The element of a rank, found without sorting its line: in a long one the leading bits of the
// keys are counted, and only the elements that share those of the rank's are looked at again.
#include <algorithm>
#include <utility>
#include <vector>

#include "plugins/cpu/sorting/lines.h"
#include "plugins/cpu/sorting/sorting.h"

namespace mica::cpu {
namespace {

using plugin::OwnedTensor;
using plugin::TensorRef;

// Under this a line is partitioned whole.
constexpr int64_t kLong = 4096;

// Entry `rank` of the sorted line.
template <class Rule, class Bits>
Entry<Bits> Ranked(Rule, Line<const Bits> from, int64_t length, int64_t rank,
                   std::vector<Entry<Bits>>& entries) {
  constexpr int kDigit = sizeof(Bits) == 1 ? 8 : 12, kShift = static_cast<int>(sizeof(Bits)) * 8 - kDigit;
  const bool all = length < kLong;
  int64_t digit = 0;
  if (!all) {
    std::vector<uint32_t> counts(size_t{1} << kDigit);
    InPieces(length, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) ++counts[static_cast<size_t>(Rule::KeyOf(from[j]) >> kShift)];
    });
    for (; rank >= counts[static_cast<size_t>(digit)]; ++digit) rank -= counts[static_cast<size_t>(digit)];
  }
  entries.clear();
  InPieces(length, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      const Bits key = Rule::KeyOf(from[j]);
      if (all || key >> kShift == static_cast<Bits>(digit))
        entries.emplace_back(key, static_cast<uint32_t>(j));
    }
  });
  std::nth_element(entries.begin(), entries.begin() + rank, entries.end());
  return entries[static_cast<size_t>(rank)];
}

}  // namespace

void KthValue(const MicaCall* call, MicaTensor* self, int64_t k, int64_t dim, int32_t keepdim,
              MicaValue* results) {
  const TensorRef in(self);
  const auto along = static_cast<int32_t>(dim < 0 ? dim + in.ndim() : dim);
  // What is wrong with the call is for the composition to say.
  if (in.ndim() == 0 || along < 0 || along >= in.ndim() || k < 1 || k > in.size(along))
    throw plugin::NotImplemented();
  std::vector<int64_t> sizes(in.sizes(), in.sizes() + in.ndim());
  if (keepdim)
    sizes[static_cast<size_t>(along)] = 1;
  else
    sizes.erase(sizes.begin() + along);
  const auto made = [&](int32_t dtype) {
    return OwnedTensor::Empty(sizes.data(), static_cast<int64_t>(sizes.size()), dtype, MicaDevice{0, 0});
  };
  OwnedTensor values = made(in.dtype()), indices = made(MICA_I64);
  const LinesAlong from{in, along};
  ForEachLines(call, in, along, [&](auto rule, int64_t begin, int64_t end) {
    using Bits = typename decltype(rule)::Bits;
    std::vector<Entry<Bits>> entries;
    for (int64_t line = begin; line < end; ++line) {
      const auto elements = from.At<const Bits>(line);
      const int64_t position = Ranked(rule, elements, in.size(along), k - 1, entries).position();
      TensorRef(values.get()).data<Bits>()[line] = elements[position];
      TensorRef(indices.get()).data<int64_t>()[line] = position;
    }
  });
  for (int r = 0; r < 2; ++r) {
    results[r] = {};
    results[r].tag = MICA_VALUE_TENSOR;
    results[r].u.tensor = (r == 0 ? values : indices).release();
  }
}

void RegisterSelection(plugin::Registrar& r) { r.Kernel<&KthValue>("kthvalue"); }

}  // namespace mica::cpu
