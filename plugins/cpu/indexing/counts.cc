// bincount of int64 without weights.
//
// Small numbers are counted at once, in four tables in turn, so that an element need not wait
// for the count of an equal one before it; the tables' last entry gives the result's size.
#include <algorithm>
#include <cstring>
#include <vector>

#include "mica/plugins/cpu/indexing/indexing.h"

namespace mica::cpu {
namespace {

constexpr int64_t kSmall = 1 << 12;
constexpr int kTables = 4;

// How often each number below `bound` occurs.
std::vector<int64_t> CountSmall(const int64_t* x, int64_t n, int64_t bound) {
  std::vector<int64_t> counts(static_cast<size_t>(bound * kTables), 0);
  int64_t* tables = counts.data();
  int64_t i = 0;
  for (; i + kTables <= n; i += kTables)
    for (int t = 0; t < kTables; ++t) ++tables[t * bound + x[i + t]];
  for (; i < n; ++i) ++tables[x[i]];
  for (int64_t k = 0; k < bound; ++k)
    for (int t = 1; t < kTables; ++t) tables[k] += tables[t * bound + k];
  counts.resize(static_cast<size_t>(bound));
  return counts;
}

}  // namespace

MicaTensor* Bincount(const MicaCall*, MicaTensor* self, MicaTensor* weights, int64_t minlength) {
  const plugin::TensorRef in(self);
  const int64_t n = in.numel();
  if (weights != nullptr || in.dtype() != MICA_I64 || in.ndim() != 1 || !in.contiguous() || n == 0 ||
      minlength < 0)
    throw plugin::NotImplemented();
  const auto* x = in.data<int64_t>();
  int64_t bits = 0;  // below twice the greatest; negative if any is
  for (int64_t i = 0; i < n; ++i) bits |= x[i];
  const bool small = bits >= 0 && bits < kSmall;
  std::vector<int64_t> found;
  int64_t greatest;
  if (small) {
    found = CountSmall(x, n, bits + 1);
    greatest = bits;
    while (found[static_cast<size_t>(greatest)] == 0) --greatest;
  } else {
    greatest = *std::max_element(x, x + n);
  }
  // The portable kernel says what is wrong with a negative number, or too large a one.
  if (bits < 0 || greatest >= INT64_MAX / 8) throw plugin::NotImplemented();
  const int64_t size[] = {std::max(greatest + 1, minlength)};
  plugin::OwnedTensor result = plugin::OwnedTensor::Empty(size, 1, MICA_I64, MicaDevice{0, 0});
  auto* counts = plugin::TensorRef(result.get()).data<int64_t>();
  std::memset(counts, 0, static_cast<size_t>(size[0]) * sizeof(int64_t));
  if (small) {
    std::copy_n(found.begin(), greatest + 1, counts);
  } else {
    for (int64_t i = 0; i < n; ++i) ++counts[x[i]];
  }
  return result.release();
}

}  // namespace mica::cpu
