// bincount of int64 without weights.
#include <algorithm>
#include <cstring>

#include "mica/plugins/cpu/indexing/indexing.h"

namespace mica::cpu {

MicaTensor* Bincount(const MicaCall*, MicaTensor* self, MicaTensor* weights, int64_t minlength) {
  const plugin::TensorRef in(self);
  const int64_t n = in.numel();
  if (weights != nullptr || in.dtype() != MICA_I64 || in.ndim() != 1 || !in.contiguous() || n == 0 ||
      minlength < 0)
    throw plugin::NotImplemented();
  const auto* x = in.data<int64_t>();
  const auto [least, greatest] = std::minmax_element(x, x + n);
  // The portable kernel says what is wrong with a negative number, or too large a one.
  if (*least < 0 || *greatest >= INT64_MAX / 8) throw plugin::NotImplemented();
  const int64_t size[] = {std::max(*greatest + 1, minlength)};
  plugin::OwnedTensor result = plugin::OwnedTensor::Empty(size, 1, MICA_I64, MicaDevice{0, 0});
  auto* counts = plugin::TensorRef(result.get()).data<int64_t>();
  std::memset(counts, 0, static_cast<size_t>(size[0]) * sizeof(int64_t));
  for (int64_t i = 0; i < n; ++i) ++counts[x[i]];
  return result.release();
}

}  // namespace mica::cpu
