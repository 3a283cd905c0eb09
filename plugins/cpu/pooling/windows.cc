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

PlaneWindows GivenWindows(const plugin::TensorRef& in, const plugin::TensorRef& out, int32_t spatial,
                          MicaIntSpan kernel_size, MicaIntSpan stride, MicaIntSpan padding,
                          MicaIntSpan dilation) {
  PlaneWindows w;
  std::vector<Window>* sides[] = {&w.layers, &w.rows, &w.columns};
  int64_t* steps[] = {&w.layer_step, &w.row_step, &w.column_step};
  for (int32_t d = 0; d < spatial; ++d) {
    const int32_t side = 3 - spatial + d, at = d - spatial;
    const int64_t kernel = At(kernel_size, d, 1), space = At(dilation, d, 1);
    *sides[side] =
        PoolWindows(in.size(at), out.size(at), kernel, At(stride, d, kernel), At(padding, d, 0), space);
    *steps[side] = space;
  }
  return w;
}

PlaneWindows DividingWindows(const plugin::TensorRef& in, const plugin::TensorRef& out, int32_t spatial) {
  PlaneWindows w;
  if (spatial == 3) w.layers = AdaptiveWindows(in.size(-3), out.size(-3));
  w.rows = AdaptiveWindows(in.size(-2), out.size(-2));
  w.columns = AdaptiveWindows(in.size(-1), out.size(-1));
  return w;
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
