// Elements read by index: gather, index_select, embedding, advanced indexing, masks.
#include <algorithm>

#include "kernels/portable/indexing.h"
#include "mica/kernels/portable_declarations.h"
#include "tensor/shape.h"

namespace mica::portable {
namespace {

// out[i] = self at byte offset from[i], in row-major order of out.
void CopyFrom(const Tensor& self, const std::vector<int64_t>& from, const Tensor& out) {
  const std::vector<int64_t> to = AllOffsets(out);
  VisitSize(out.itemsize(), [&]<typename T>() {
    for (size_t i = 0; i < to.size(); ++i)
      *reinterpret_cast<T*>(out.data_as<char>() + to[i]) =
          *reinterpret_cast<const T*>(self.data_as<char>() + from[i]);
  });
}

std::vector<bool> MaskValues(const Tensor& mask, IntSpan shape) {
  std::vector<int64_t> at(static_cast<size_t>(CheckedNumel(shape)));
  Offsets(shape, BroadcastStrides(mask, shape), mask.itemsize())
      .Next(at.data(), static_cast<int64_t>(at.size()));
  std::vector<bool> out(at.size());
  for (size_t i = 0; i < at.size(); ++i)
    out[i] = *reinterpret_cast<const uint8_t*>(mask.data_as<char>() + at[i]) != 0;
  return out;
}

}  // namespace

void _index(const Tensor& self, TensorSpan indices, const Tensor& out) {
  CopyFrom(self, Select(self, indices).offsets, out);
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  MICA_CHECK(mask.dtype() == DType::kBool,
             "masked_select: expected BoolTensor for mask, but `mask` has the dtype (", Name(mask.dtype()),
             ").");
  const Dims shape = BroadcastShapes(self.sizes(), mask.sizes(), "self", "mask");
  const std::vector<bool> chosen = MaskValues(mask, shape);
  std::vector<int64_t> at(chosen.size()), from;
  Offsets(shape, BroadcastStrides(self, shape), self.itemsize())
      .Next(at.data(), static_cast<int64_t>(at.size()));
  for (size_t i = 0; i < at.size(); ++i)
    if (chosen[i]) from.push_back(at[i]);
  Tensor out = EmptyTensor({static_cast<int64_t>(from.size())}, self.dtype(), self.device());
  CopyFrom(self, from, out);
  return out;
}

void masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source, const Tensor& out) {
  const std::vector<bool> chosen = MaskValues(mask, out.sizes());
  const std::vector<int64_t> to = AllOffsets(out), from = AllOffsets(source);
  // Before anything is written: out may be self.
  MICA_CHECK(std::count(chosen.begin(), chosen.end(), true) <= static_cast<int64_t>(from.size()),
             "Number of elements of source < number of ones in mask: `source` has (", from.size(), ").");
  copy_(out, self, false);
  size_t next = 0;
  VisitSize(out.itemsize(), [&]<typename T>() {
    for (size_t i = 0; i < to.size(); ++i) {
      if (!chosen[i]) continue;
      *reinterpret_cast<T*>(out.data_as<char>() + to[i]) =
          *reinterpret_cast<const T*>(source.data_as<char>() + from[next++]);
    }
  });
}

Tensor nonzero(const Tensor& self) {
  const int64_t ndim = self.ndim();
  std::vector<Complex> values = ToLanes<Complex>(self);
  std::vector<int64_t> found;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != Complex(0)) found.push_back(static_cast<int64_t>(i));
  const auto count = static_cast<int64_t>(found.size());
  // As torch: stored column by column.
  Tensor out = EmptyStrided({count, ndim}, {1, std::max<int64_t>(count, 1)}, DType::kI64, self.device());
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = found[static_cast<size_t>(i)];
    for (int64_t d = ndim - 1; d >= 0; --d) {
      out.data_as<int64_t>()[d * count + i] = rest % self.sizes()[d];
      rest /= self.sizes()[d];
    }
  }
  return out;
}

}  // namespace mica::portable
