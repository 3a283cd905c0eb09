// What the pooling kernels share: planes and the windows over them.
//
// A tensor of (batch,) channels, (depth,) height, width is a row of planes (planes.h); kernels
// run over planes in parallel (each_plane.h) and over windows inside one.
#ifndef MICA_PLUGINS_CPU_POOLING_WINDOWS_H_
#define MICA_PLUGINS_CPU_POOLING_WINDOWS_H_

#include <cstdint>
#include <vector>

#include <mica/plugin.h>
#include "plugins/cpu/pooling/window_loops.h"

namespace mica::cpu {

// The part [begin, end) of one dimension that a window covers, `step` apart, and its
// length with the padding that it reaches into.
struct Window {
  int64_t begin, end, with_padding;
};

// Windows over a dimension of size `in`; padding is never read.
std::vector<Window> PoolWindows(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding,
                                int64_t dilation);
// Windows that divide the dimension into `out` parts, as even as they come.
std::vector<Window> AdaptiveWindows(int64_t in, int64_t out);

// Element d of a list that may hold one number for all dimensions, or none.
inline int64_t At(MicaIntSpan span, int32_t d, int64_t otherwise) {
  return span.size == 0 ? otherwise : span.size == 1 ? span.data[0] : span.data[d];
}

// The last two or three dimensions as three, the first of them 1 where there are two.
struct Planes {
  int64_t count = 1, depth = 1, height, width;
  Planes(const plugin::TensorRef& t, int32_t spatial) : height(t.size(-2)), width(t.size(-1)) {
    if (spatial == 3) depth = t.size(-3);
    for (int32_t d = 0; d < t.ndim() - spatial; ++d) count *= t.size(d);
  }
  int64_t area() const { return depth * height * width; }
};

// The windows of each dimension of the planes, and how far apart a window's elements are.
struct PlaneWindows {
  std::vector<Window> layers = {{0, 1, 1}}, rows, columns;
  int64_t layer_step = 1, row_step = 1, column_step = 1;
  int64_t made() const { return static_cast<int64_t>(layers.size() * rows.size() * columns.size()); }
};

// Windows that are averaged.
struct AverageWindows : PlaneWindows {
  bool count_padding = false;
  int64_t divisor = 0;  // 0: the number of elements
  template <class T>
  T Divisor(const Window& layer, const Window& row, const Window& column) const {
    if (divisor) return static_cast<T>(divisor);
    const auto count = [this](const Window& side) {
      return count_padding ? side.with_padding : side.end - side.begin;
    };
    return static_cast<T>(count(layer) * count(row) * count(column));
  }
};

// How many elements of one dimension a window has.
inline int64_t CountTaps(const Window& w, int64_t step) {
  return w.end > w.begin ? (w.end - w.begin + step - 1) / step : 0;
}
// The elements of a window of planes of height x width; `distance` is that of the window's layers
// and rows, and of the planes' columns.
Taps TapsOver(const PlaneWindows& w, int64_t height, int64_t width, const Window& layer, const Window& row,
              const Window& column, const int64_t* distance);

// The windows [first, last) of a row that are alike and `step` (1 or 2) columns apart, so that
// vectors of windows can be taken; none: first == last.
struct AlikeWindows {
  size_t first, last;
  int64_t step;
};
AlikeWindows FindAlike(const PlaneWindows& w);

PlaneWindows GivenWindows(const plugin::TensorRef& in, const plugin::TensorRef& out, int32_t spatial,
                          MicaIntSpan kernel_size, MicaIntSpan stride, MicaIntSpan padding,
                          MicaIntSpan dilation);
PlaneWindows DividingWindows(const plugin::TensorRef& in, const plugin::TensorRef& out, int32_t spatial);

// Throws where one of n indices is none of a plane; they come from the caller, who may have
// made them up.
void CheckPlaces(const int64_t* indices, int64_t n, int64_t area);

// The dtype that pooling computes `t` in: float32 for half types; throws
// NotImplemented for what is not floating.
int32_t PoolingDtype(const plugin::TensorRef& t);

// Planes that make a second thread worth waking, when each costs `work` steps.
inline int64_t PlaneGrain(int64_t work) { return work >= 16384 ? 1 : 16384 / (work + 1) + 1; }

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_POOLING_WINDOWS_H_
