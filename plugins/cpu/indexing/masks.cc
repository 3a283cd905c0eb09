// Elements chosen by a condition: masked_select and nonzero. Both count first, so that
// the result is made once with its size.
#include <algorithm>
#include <string>
#include <vector>

#include "mica/plugins/cpu/indexing/indexing.h"
#include "mica/plugins/cpu/indexing/indices.h"

namespace mica::cpu {
namespace {

using plugin::OwnedTensor;
using plugin::TensorRef;

constexpr MicaDevice kCpu{0, 0};

// `bits` of an element as 0 or 1: -0 is zero too where `floating`.
template <class T>
bool IsSet(T element, bool floating) {
  if constexpr (std::is_same_v<T, Wide>) {  // complex128
    return ((element.parts[0] | element.parts[1]) << 1) != 0;
  } else {
    return floating ? static_cast<T>(element << 1) != 0 : element != 0;
  }
}

bool IsSet64(uint64_t element, int32_t dtype) {
  if (dtype != MICA_C64) return IsSet(element, dtype == MICA_F64);
  return (element & 0x7fffffff7fffffff) != 0;
}

}  // namespace

MicaTensor* Nonzero(const MicaCall*, MicaTensor* self) {
  const TensorRef in(self);
  const int32_t dtype = in.dtype();
  const DenseInput dense(self, dtype, 1);
  const int64_t n = in.numel();
  const bool floating = dtype >= MICA_F16 && dtype <= MICA_F64;
  if (dtype > MICA_C128) throw plugin::NotImplemented();  // float8
  std::vector<int64_t> found;
  VisitSize(in.itemsize(), [&](auto unit) {
    using T = decltype(unit);
    const T* from = dense.data<T>();
    for (int64_t i = 0; i < n; ++i) {
      bool set;
      if constexpr (std::is_same_v<T, uint64_t>)
        set = IsSet64(from[i], dtype);
      else
        set = IsSet(from[i], floating);
      if (set) found.push_back(i);
    }
  });
  const auto count = static_cast<int64_t>(found.size());
  const int64_t ndim = in.ndim();
  // As torch: stored column by column.
  const int64_t columns[] = {ndim, count};
  const OwnedTensor stored = OwnedTensor::Empty(columns, 2, MICA_I64, kCpu);
  auto* to = TensorRef(stored.get()).data<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = found[static_cast<size_t>(i)];
    for (int64_t d = ndim - 1; d >= 0; --d) {
      const int64_t size = in.size(static_cast<int>(d));
      to[d * count + i] = rest % size;
      rest /= size;
    }
  }
  const int64_t sizes[] = {count, ndim}, strides[] = {1, std::max<int64_t>(count, 1)};
  const MicaTensorResult result =
      plugin::Host()->tensor_as_strided(stored.get(), {sizes, 2}, {strides, 2}, 0);
  plugin::Check(result.status);
  return result.value;
}

MicaTensor* MaskedSelect(const MicaCall*, MicaTensor* self, MicaTensor* mask) {
  const TensorRef in(self), m(mask);
  bool same = m.dtype() == MICA_BOOL && in.ndim() == m.ndim();
  for (int32_t d = 0; same && d < in.ndim(); ++d) same = in.size(d) == m.size(d);
  if (!same) throw plugin::NotImplemented();  // broadcasts, and errors
  const DenseInput elements(self, in.dtype(), 1), chosen(mask, MICA_BOOL, 1);
  const auto* choose = chosen.data<uint8_t>();
  const int64_t n = in.numel();
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += choose[i];
  OwnedTensor out = OwnedTensor::Empty(&count, 1, in.dtype(), kCpu);
  VisitSize(in.itemsize(), [&](auto unit) {
    using T = decltype(unit);
    const T* from = elements.data<T>();
    T* to = TensorRef(out.get()).data<T>();
    for (int64_t i = 0; i < n; ++i)
      if (choose[i]) *to++ = from[i];
  });
  return out.release();
}

}  // namespace mica::cpu
