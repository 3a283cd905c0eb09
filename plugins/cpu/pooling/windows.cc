#include "mica/plugins/cpu/pooling/windows.h"

#include <algorithm>

namespace mica::cpu {

std::vector<Window> PoolWindows(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding,
                                int64_t dilation) {
  std::vector<Window> windows(static_cast<size_t>(out));
  for (int64_t o = 0; o < out; ++o) {
    const int64_t first = o * stride - padding;
    const int64_t past = first + (kernel - 1) * dilation + 1;
    // The first position inside, still on the window's grid.
    const int64_t begin = first >= 0 ? first : first + (-first + dilation - 1) / dilation * dilation;
    windows[static_cast<size_t>(o)] = {begin, std::min(past, in), std::min(past, in + padding) - first};
  }
  return windows;
}

std::vector<Window> AdaptiveWindows(int64_t in, int64_t out) {
  std::vector<Window> windows(static_cast<size_t>(out));
  for (int64_t o = 0; o < out; ++o) {
    const int64_t begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
    windows[static_cast<size_t>(o)] = {begin, end, end - begin};
  }
  return windows;
}

int32_t PoolingDtype(const plugin::TensorRef& t) {
  switch (t.dtype()) {
    case MICA_F16:
    case MICA_BF16:
    case MICA_F32:
      return MICA_F32;
    case MICA_F64:
      return MICA_F64;
    default:
      throw plugin::NotImplemented();
  }
}

}  // namespace mica::cpu
