// The index space of a kernel: dimensions, and where each operand lies in them.
//
// Dimensions of size 1 go, neighbours that every operand walks as one are merged,
// and, where order does not matter, dimensions are sorted by the first operand's
// strides. What is left is few: 1 for dense operands, 2 or 3 for a broadcast.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <mica/plugin.h>

namespace mica {
namespace kit {

struct Operand {
  void* data;
  int32_t dtype;
  std::vector<int64_t> strides;  // in elements, one for each dimension
};

struct Space {
  std::vector<int64_t> sizes;
  std::vector<Operand> operands;

  int64_t Count() const {
    int64_t n = 1;
    for (const int64_t size : sizes) n *= size;
    return n;
  }
  // A tensor that is broadcast to the sizes.
  void Add(const MicaTensor* tensor);
  // One dimension for tensors of one shape that lie densely in the same order; false, and nothing is
  // done, where they do not. As Simplify would find, at a fraction of its cost.
  bool AddDense(const MicaTensor* const* tensors, size_t count);
  void Simplify(bool may_sort);
  // Whether every index and offset fits 31 bits.
  bool IsSmall() const;
};

inline int32_t DtypeOf(const MicaTensor* tensor) { return plugin::TensorRef(tensor).dtype(); }

inline bool Space::AddDense(const MicaTensor* const* tensors, size_t count) {
  const plugin::TensorRef first(tensors[0]);
  for (size_t k = 0; k < count; ++k) {
    const plugin::TensorRef t(tensors[k]);
    if (!t.contiguous() || t.ndim() != first.ndim()) return false;
    for (int d = 0; d < t.ndim(); ++d)
      if (t.size(d) != first.size(d)) return false;
  }
  const int64_t n = first.numel();
  if (n == 1) return false;
  sizes.assign(1, n);
  operands.reserve(count);
  for (size_t k = 0; k < count; ++k)
    operands.push_back(
        {tensors[k]->dl.data, plugin::TensorRef(tensors[k]).dtype(), std::vector<int64_t>(1, 1)});
  return true;
}

inline void Space::Add(const MicaTensor* tensor) {
  Operand operand{tensor->dl.data, DtypeOf(tensor), std::vector<int64_t>(sizes.size(), 0)};
  const auto own = static_cast<size_t>(tensor->dl.ndim);
  for (size_t d = 0; d < own && d < sizes.size(); ++d) {
    const size_t from = own - 1 - d;
    if (tensor->dl.shape[from] != 1) operand.strides[sizes.size() - 1 - d] = tensor->dl.strides[from];
  }
  operands.push_back(std::move(operand));
}

inline void Space::Simplify(bool may_sort) {
  if (sizes.empty() || (sizes.size() == 1 && sizes[0] != 1)) return;
  std::vector<size_t> order;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1) order.push_back(d);
  const auto first = [&](size_t d) { return operands.empty() ? 0 : operands[0].strides[d]; };
  if (may_sort)
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return first(a) > first(b); });
  std::vector<int64_t> merged;
  std::vector<std::vector<int64_t>> strides(operands.size());
  for (const size_t d : order) {
    bool joins = !merged.empty();
    for (size_t k = 0; k < operands.size() && joins; ++k)
      joins = strides[k].back() == operands[k].strides[d] * sizes[d];
    for (size_t k = 0; k < operands.size(); ++k) {
      if (joins) strides[k].pop_back();
      strides[k].push_back(operands[k].strides[d]);
    }
    if (joins)
      merged.back() *= sizes[d];
    else
      merged.push_back(sizes[d]);
  }
  sizes = std::move(merged);
  for (size_t k = 0; k < operands.size(); ++k) operands[k].strides = std::move(strides[k]);
}

inline bool Space::IsSmall() const {
  constexpr int64_t kLimit = (int64_t{1} << 31) - 1;
  if (Count() > kLimit) return false;
  for (const Operand& operand : operands) {
    int64_t last = 0;
    for (size_t d = 0; d < sizes.size(); ++d) last += operand.strides[d] * (sizes[d] - 1);
    if (last > kLimit) return false;
  }
  return true;
}

}  // namespace kit
}  // namespace mica
