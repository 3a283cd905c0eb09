// The order in which random fills draw: that of memory, as torch's.
#pragma once

#include <algorithm>
#include <numeric>

#include "tensor/tensor.h"

namespace mica::portable {

// The dimensions from the one of the largest stride to that of the smallest.
inline Dims MemoryOrder(const Tensor& t) {
  Dims order(static_cast<size_t>(t.ndim()));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return t.strides()[a] > t.strides()[b]; });
  return order;
}

inline Tensor Permuted(const Tensor& t, const Dims& order) {
  Dims sizes, strides;
  for (const int64_t d : order) {
    sizes.push_back(t.sizes()[d]);
    strides.push_back(t.strides()[d]);
  }
  return MakeViewAs(t, sizes, strides, t.storage_offset() * t.itemsize(), t.dtype(), true);
}

}  // namespace mica::portable
