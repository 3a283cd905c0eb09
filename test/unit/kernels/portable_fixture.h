// Tensors from lists and back, for the tests of the portable kernels.
#pragma once

#include <vector>

#include "kernels/portable/lanes.h"
#include "mica/kernels/portable_declarations.h"
#include "test/support/mica_test.h"

namespace mica::testing {

using Numbers = std::vector<double>;
using Integers = std::vector<int64_t>;

inline Tensor Of(IntSpan sizes, const Numbers& values, DType dtype = DType::kF64) {
  const Tensor t = EmptyTensor(sizes, dtype, Device{});
  REQUIRE(t.numel() == static_cast<int64_t>(values.size()));
  portable::FromLanes(values, t);
  return t;
}
inline Tensor Vector(const Numbers& values, DType dtype = DType::kF64) {
  return Of({static_cast<int64_t>(values.size())}, values, dtype);
}
inline Tensor Empty(IntSpan sizes, DType dtype = DType::kF64) { return EmptyTensor(sizes, dtype, Device{}); }
inline Tensor Indices(IntSpan sizes, const Integers& values) {
  const Tensor t = EmptyTensor(sizes, DType::kI64, Device{});
  portable::FromLanes(values, t);
  return t;
}
inline Numbers Values(const Tensor& t) { return portable::ToLanes<double>(t); }
inline Integers Ints(const Tensor& t) { return portable::ToLanes<int64_t>(t); }
// The matrix seen with its two last dimensions exchanged: another memory order.
inline Tensor Transposed(const Tensor& t) {
  Dims sizes = ToDims(t.sizes()), strides = ToDims(t.strides());
  const size_t n = sizes.size();
  std::swap(sizes[n - 1], sizes[n - 2]);
  std::swap(strides[n - 1], strides[n - 2]);
  return MakeView(t, sizes, strides, t.storage_offset() * t.itemsize());
}
inline void RequireNear(const Tensor& t, const Numbers& expected) {
  const Numbers got = Values(t);
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i);
    REQUIRE(got[i] == Approx(expected[i]).margin(1e-12));
  }
}

}  // namespace mica::testing
