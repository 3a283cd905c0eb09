// bincount of int64 without weights, and one_hot.
//
// Small numbers are counted at once, in four tables in turn, so that an element need not wait
// for the count of an equal one before it; the tables' last entry gives the result's size.
#include <algorithm>
#include <cstring>
#include <vector>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/indexing/indexing.h"
#include "plugins/cpu/indexing/indices.h"

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

MicaTensor* OneHot(const MicaCall* call, MicaTensor* self, int64_t num_classes) {
  constexpr int64_t kRows = 64;
  const plugin::TensorRef in(self);
  const int64_t n = in.numel();
  // What is wrong with the call is for the composition to say.
  if (in.dtype() != MICA_I64 || n == 0) throw plugin::NotImplemented();
  const DenseInput dense(self, MICA_I64, ThreadsOf(call));
  const auto* x = dense.data<int64_t>();
  int64_t least = x[0], most = x[0];
  for (int64_t i = 0; i < n; ++i) {
    least = std::min(least, x[i]);
    most = std::max(most, x[i]);
  }
  const int64_t count = num_classes == -1 ? most + 1 : num_classes;
  if (least < 0 || most >= count || most == INT64_MAX) throw plugin::NotImplemented();
  std::vector<int64_t> sizes(in.sizes(), in.sizes() + in.ndim());
  sizes.push_back(count);
  plugin::OwnedTensor result =
      plugin::OwnedTensor::Empty(sizes.data(), in.ndim() + 1, MICA_I64, MicaDevice{0, 0});
  auto* out = plugin::TensorRef(result.get()).data<int64_t>();
  const int64_t grain = std::max<int64_t>(1, kIndexGrain / count);
  ParallelSteps(n, grain, 1, ThreadsOf(call), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kRows) {
      const int64_t rows = std::min(kRows, end - i);
      std::memset(out + i * count, 0, static_cast<size_t>(rows * count) * sizeof(int64_t));
      for (int64_t r = i; r < i + rows; ++r) out[r * count + x[r]] = 1;
    }
  });
  return result.release();
}

}  // namespace mica::cpu
