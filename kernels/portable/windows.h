// Windows over the spatial dimensions of an image, as a table.
//
// Convolution, im2col and col2im pair each position of a window grid and each
// position inside the kernel with an element of the image. The table says which:
// position * stride - padding + tap * dilation, or -1 in the padding.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/span.h"

namespace mica::portable {

// A value of an int[] argument; one number stands for all dimensions.
inline int64_t ListAt(IntSpan list, int64_t i, int64_t otherwise) {
  return list.empty() ? otherwise : list.size() == 1 ? list[0] : list[i];
}

struct WindowTable {
  int64_t image = 1;        // elements of one plane of the image
  int64_t positions = 1;    // windows
  int64_t taps = 1;         // elements of the kernel
  std::vector<int64_t> at;  // [positions, taps]: place in the plane, or -1

  WindowTable(IntSpan image_sizes, IntSpan grid, IntSpan kernel, IntSpan stride, IntSpan padding,
              IntSpan dilation);
};

}  // namespace mica::portable
