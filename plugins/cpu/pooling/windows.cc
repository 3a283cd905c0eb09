#include "plugins/cpu/pooling/windows.h"

#include <algorithm>
#include <string>

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

Taps TapsOver(const PlaneWindows& w, int64_t height, int64_t width, const Window& layer, const Window& row,
              const Window& column, const int64_t* distance) {
  const int64_t area = height * width;
  return {{CountTaps(layer, w.layer_step), CountTaps(row, w.row_step), CountTaps(column, w.column_step)},
          {distance[0], distance[1], distance[2] * w.column_step},
          layer.begin * area + row.begin * width + column.begin,
          {w.layer_step * area, w.row_step * width, w.column_step}};
}

AlikeWindows FindAlike(const PlaneWindows& w) {
  const std::vector<Window>& all = w.columns;
  int64_t most = 0;
  for (const Window& column : all) most = std::max(most, CountTaps(column, w.column_step));
  size_t first = 0;
  while (first < all.size() && CountTaps(all[first], w.column_step) < most) ++first;
  if (first + 1 >= all.size()) return {0, 0, 1};
  const int64_t step = all[first + 1].begin - all[first].begin;
  // One column alone has no neighbour to be loaded with.
  if (step < 1 || step > 2 || most < step) return {0, 0, 1};
  const int64_t length = all[first].end - all[first].begin;
  size_t last = first + 1;
  while (last < all.size() && all[last].begin == all[last - 1].begin + step &&
         all[last].end - all[last].begin == length)
    ++last;
  return {first, last, step};
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

void CheckPlaces(const int64_t* indices, int64_t n, int64_t area) {
  bool inside = true;
  for (int64_t i = 0; i < n; ++i) inside &= static_cast<uint64_t>(indices[i]) < static_cast<uint64_t>(area);
  MICA_PLUGIN_CHECK(
      inside, MICA_ERROR_INDEX,
      "An element of `indices` is outside the plane of (" + std::to_string(area) + ") elements.");
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
