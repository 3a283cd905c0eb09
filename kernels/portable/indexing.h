// Advanced indexing as offsets: what `x[i, :, j]` reads or writes.
#pragma once

#include <vector>

#include "kernels/portable/lanes.h"

namespace mica::portable {

// The elements of `self[indices]`: the result's shape, and their byte offsets into
// `self` in row-major order of it. The broadcast index dimensions stand where the
// first index stood if all indices are adjacent, else in front (NumPy's and
// torch's rule). Indices are integer tensors (bool ones were turned into integers
// before) or undefined. Throws kIndex.
struct Selection {
  Dims shape;
  std::vector<int64_t> offsets;
};
Selection Select(const Tensor& self, TensorSpan indices);

}  // namespace mica::portable
