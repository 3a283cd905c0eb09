// Pooling of planes: largest element and mean of windows, and their gradients.
//
// Inputs have 3 or 4 dimensions; the leading ones only count planes. As in torch
// NaN wins over every number (the last NaN of a window gives the index), and an
// index counts in the flattened plane of the input.
#include <cmath>
#include <limits>

#include "mica/kernels/portable/lanes.h"
#include "mica/kernels/portable/windows.h"
#include "mica/kernels/portable_declarations.h"

namespace mica::portable {
namespace {

// Every step-th place of [start, end) along one dimension.
struct Range {
  int64_t start, end, step;
};

// The planes of a pooling: `in` the larger ones, `out` one place for each window.
struct Planes {
  int64_t count, height, width, out_height, out_width;
  Planes(const Tensor& in, const Tensor& out) {
    const int64_t n = in.ndim();
    height = in.sizes()[n - 2];
    width = in.sizes()[n - 1];
    out_height = out.sizes()[n - 2];
    out_width = out.sizes()[n - 1];
    count = 1;
    for (int64_t d = 0; d + 2 < n; ++d) count *= in.sizes()[d];
  }
  int64_t area() const { return height * width; }
  // Calls f(plane, row of output, column of output, place in output).
  template <typename F>
  void ForEach(F&& f) const {
    size_t place = 0;
    for (int64_t p = 0; p < count; ++p)
      for (int64_t y = 0; y < out_height; ++y)
        for (int64_t x = 0; x < out_width; ++x) f(p, y, x, place++);
  }
};

// The part of an adaptive pooling: `outs` nearly equal parts, which may overlap.
Range AdaptiveRange(int64_t at, int64_t size, int64_t outs) {
  return {at * size / outs, ((at + 1) * size + outs - 1) / outs, 1};
}

// A window of a mean and what its sum is divided by.
struct MeanWindow {
  Range rows, columns;
  double divisor;
};
template <typename F>
void ForEachIn(const MeanWindow& w, int64_t width, F&& f) {
  for (int64_t i = w.rows.start; i < w.rows.end; ++i)
    for (int64_t j = w.columns.start; j < w.columns.end; ++j) f(i * width + j);
}

template <typename F>
void MeanBackward(const Tensor& grad_output, const Tensor& out, F&& window) {
  const Planes planes(out, grad_output);
  VisitLane(LaneOf(out.dtype()), [&]<typename T>() {
    const std::vector<T> grad = ToLanes<T>(grad_output);
    std::vector<T> result(static_cast<size_t>(out.numel()), T(0));
    planes.ForEach([&](int64_t p, int64_t y, int64_t x, size_t place) {
      const MeanWindow w = window(y, x, planes);
      ForEachIn(w, planes.width, [&](int64_t at) {
        result[static_cast<size_t>(p * planes.area() + at)] += grad[place] / static_cast<T>(w.divisor);
      });
    });
    FromLanes(result, out);
  });
}

// The windows of avg_pool2d. One that reaches beyond the padding (ceil_mode) ends
// with it, for the count of its elements too.
auto AverageWindows(IntSpan kernel_size, IntSpan stride, IntSpan padding, bool count_include_pad,
                    std::optional<int64_t> divisor_override) {
  return [=](int64_t y, int64_t x, const Planes& planes) {
    int64_t padded = 1, inside = 1;
    const auto range = [&](int64_t d, int64_t at, int64_t size) {
      const int64_t kernel = ListAt(kernel_size, d, 1), pad = ListAt(padding, d, 0);
      const int64_t start = at * ListAt(stride, d, kernel) - pad, end = std::min(start + kernel, size + pad);
      const Range r{std::max<int64_t>(start, 0), std::min(end, size), 1};
      padded *= end - start;
      inside *= r.end - r.start;
      return r;
    };
    const Range rows = range(0, y, planes.height), columns = range(1, x, planes.width);
    return MeanWindow{rows, columns,
                      static_cast<double>(divisor_override    ? *divisor_override
                                          : count_include_pad ? padded
                                                              : inside)};
  };
}
MeanWindow AdaptiveWindow(int64_t y, int64_t x, const Planes& planes) {
  const Range r = AdaptiveRange(y, planes.height, planes.out_height),
              c = AdaptiveRange(x, planes.width, planes.out_width);
  return {r, c, static_cast<double>((r.end - r.start) * (c.end - c.start))};
}

}  // namespace

void max_pool2d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntSpan, IntSpan,
                                      IntSpan, IntSpan, bool, const Tensor& indices, const Tensor& out) {
  const Planes planes(self, grad_output);
  const std::vector<int64_t> where = CheckedIndices(indices, planes.area(), self.ndim() - 1, false);
  VisitLane(LaneOf(out.dtype()), [&]<typename T>() {
    const std::vector<T> grad = ToLanes<T>(grad_output);
    std::vector<T> result(static_cast<size_t>(out.numel()), T(0));
    planes.ForEach([&](int64_t p, int64_t, int64_t, size_t place) {
      result[static_cast<size_t>(p * planes.area() + where[place])] += grad[place];
    });
    FromLanes(result, out);
  });
}

void avg_pool2d_backward(const Tensor& grad_output, const Tensor&, IntSpan kernel_size, IntSpan stride,
                         IntSpan padding, bool, bool count_include_pad,
                         std::optional<int64_t> divisor_override, const Tensor& out) {
  MeanBackward(grad_output, out,
               AverageWindows(kernel_size, stride, padding, count_include_pad, divisor_override));
}

void _adaptive_avg_pool2d_backward(const Tensor& grad_output, const Tensor&, const Tensor& out) {
  MeanBackward(grad_output, out, AdaptiveWindow);
}

}  // namespace mica::portable
