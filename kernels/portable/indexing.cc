#include "kernels/portable/indexing.h"

#include "tensor/shape.h"

namespace mica::portable {

Selection Select(const Tensor& self, TensorSpan indices) {
  Dims index_shape;
  int64_t first = -1, last = -1, count = 0;
  for (int64_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) continue;
    index_shape = count ? BroadcastShapes(index_shape, indices[d].sizes(), "an index", "another index")
                        : ToDims(indices[d].sizes());
    if (first < 0) first = d;
    last = d;
    ++count;
  }
  const bool adjacent = count == 0 || last - first + 1 == count;
  // For each position of the broadcast indices, the offset that they add.
  const int64_t positions = CheckedNumel(index_shape);
  std::vector<int64_t> indexed(static_cast<size_t>(positions), 0);
  Dims before_sizes, before_strides, after_sizes, after_strides;
  for (int64_t d = 0; d < self.ndim(); ++d) {
    if (d < indices.size() && indices[d].defined()) {
      const Tensor& index = indices[d];
      std::vector<int64_t> offsets(static_cast<size_t>(positions)), values(static_cast<size_t>(positions));
      Offsets(index_shape, BroadcastStrides(index, index_shape), index.itemsize())
          .Next(offsets.data(), positions);
      LoadLanes(Lane::kI64, index.dtype(), index.data_as<char>(), offsets.data(), positions, values.data());
      for (int64_t i = 0; i < positions; ++i)
        indexed[static_cast<size_t>(i)] +=
            CheckedIndex(values[static_cast<size_t>(i)], self.sizes()[d], d, true) * self.strides()[d] *
            self.itemsize();
    } else {
      const bool before = adjacent && d < first;
      (before ? before_sizes : after_sizes).push_back(self.sizes()[d]);
      (before ? before_strides : after_strides).push_back(self.strides()[d]);
    }
  }
  const auto all = [&](const Dims& sizes, const Dims& strides) {
    std::vector<int64_t> out(static_cast<size_t>(CheckedNumel(sizes)));
    Offsets(sizes, strides, self.itemsize()).Next(out.data(), static_cast<int64_t>(out.size()));
    return out;
  };
  const std::vector<int64_t> before = all(before_sizes, before_strides),
                             after = all(after_sizes, after_strides);
  Selection result{before_sizes, {}};
  result.shape.insert(result.shape.end(), index_shape.begin(), index_shape.end());
  result.shape.insert(result.shape.end(), after_sizes.begin(), after_sizes.end());
  result.offsets.reserve(before.size() * indexed.size() * after.size());
  for (int64_t b : before)
    for (int64_t i : indexed)
      for (int64_t a : after) result.offsets.push_back(b + i + a);
  return result;
}

}  // namespace mica::portable
