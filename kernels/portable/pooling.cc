// Gradients of pooling: of the largest element and of the mean of windows.
//
// Inputs have two or three spatial dimensions; the leading ones only count planes. An
// index counts in the flattened plane of the input, as in torch.
#include <array>

#include "kernels/portable/lanes.h"
#include "kernels/portable/windows.h"
#include "mica/kernels/portable_declarations.h"

namespace mica::portable {
namespace {

// Every step-th place of [start, end) along one dimension.
struct Range {
  int64_t start, end, step;
};

// The planes of a pooling, `in` the larger ones, `out` one place for each window. Of two
// dimensions they are three of which the first is 1.
struct Planes {
  int64_t count = 1, in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  Planes(const Tensor& large, const Tensor& small, int64_t spatial) {
    const int64_t n = large.ndim();
    for (int64_t d = 0; d + spatial < n; ++d) count *= large.sizes()[d];
    for (int64_t d = 0; d < spatial; ++d) {
      in[3 - spatial + d] = large.sizes()[n - spatial + d];
      out[3 - spatial + d] = small.sizes()[n - spatial + d];
    }
  }
  int64_t area() const { return in[0] * in[1] * in[2]; }
  // Calls f(plane, place of the window in each dimension, place in output).
  template <typename F>
  void ForEach(F&& f) const {
    size_t place = 0;
    for (int64_t p = 0; p < count; ++p)
      for (int64_t z = 0; z < out[0]; ++z)
        for (int64_t y = 0; y < out[1]; ++y)
          for (int64_t x = 0; x < out[2]; ++x) f(p, std::array<int64_t, 3>{z, y, x}, place++);
  }
};

// A window of a mean and what its sum is divided by.
struct MeanWindow {
  Range sides[3];
  double divisor;
};
template <typename F>
void ForEachIn(const MeanWindow& w, const Planes& planes, F&& f) {
  for (int64_t k = w.sides[0].start; k < w.sides[0].end; ++k)
    for (int64_t i = w.sides[1].start; i < w.sides[1].end; ++i)
      for (int64_t j = w.sides[2].start; j < w.sides[2].end; ++j)
        f((k * planes.in[1] + i) * planes.in[2] + j);
}

template <typename F>
void MeanBackward(const Tensor& grad_output, const Tensor& out, int64_t spatial, F&& window) {
  const Planes planes(out, grad_output, spatial);
  VisitLane(LaneOf(out.dtype()), [&]<typename T>() {
    const std::vector<T> grad = ToLanes<T>(grad_output);
    std::vector<T> result(static_cast<size_t>(out.numel()), T(0));
    planes.ForEach([&](int64_t p, const std::array<int64_t, 3>& at, size_t place) {
      const MeanWindow w = window(at, planes);
      ForEachIn(w, planes, [&](int64_t i) {
        result[static_cast<size_t>(p * planes.area() + i)] += grad[place] / static_cast<T>(w.divisor);
      });
    });
    FromLanes(result, out);
  });
}

// The windows of avg_pool2d and 3d. One that reaches beyond the padding (ceil_mode) ends
// with it, for the count of its elements too.
auto AverageWindows(int64_t spatial, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                    bool count_include_pad, std::optional<int64_t> divisor_override) {
  return [=](const std::array<int64_t, 3>& at, const Planes& planes) {
    int64_t padded = 1, inside = 1;
    MeanWindow w{{{0, 1, 1}, {0, 1, 1}, {0, 1, 1}}, 1};
    for (int64_t d = 0; d < spatial; ++d) {
      const int64_t side = 3 - spatial + d, size = planes.in[side];
      const int64_t kernel = ListAt(kernel_size, d, 1), pad = ListAt(padding, d, 0);
      const int64_t start = at[static_cast<size_t>(side)] * ListAt(stride, d, kernel) - pad;
      const int64_t end = std::min(start + kernel, size + pad);
      Range& r = w.sides[side];
      r = {std::max<int64_t>(start, 0), std::min(end, size), 1};
      padded *= end - start;
      inside *= r.end - r.start;
    }
    w.divisor = static_cast<double>(divisor_override    ? *divisor_override
                                    : count_include_pad ? padded
                                                        : inside);
    return w;
  };
}

// Of an adaptive pooling: nearly equal parts, which may overlap.
MeanWindow AdaptiveWindow(const std::array<int64_t, 3>& at, const Planes& planes) {
  MeanWindow w{{}, 1};
  for (size_t d = 0; d < 3; ++d) {
    const int64_t size = planes.in[d], outs = planes.out[d];
    w.sides[d] = {at[d] * size / outs, ((at[d] + 1) * size + outs - 1) / outs, 1};
    w.divisor *= static_cast<double>(w.sides[d].end - w.sides[d].start);
  }
  return w;
}

void MaxBackward(const Tensor& grad_output, const Tensor& self, const Tensor& indices, const Tensor& out,
                 int64_t spatial) {
  const Planes planes(self, grad_output, spatial);
  const std::vector<int64_t> where = CheckedIndices(indices, planes.area(), self.ndim() - 1, false);
  VisitLane(LaneOf(out.dtype()), [&]<typename T>() {
    const std::vector<T> grad = ToLanes<T>(grad_output);
    std::vector<T> result(static_cast<size_t>(out.numel()), T(0));
    planes.ForEach([&](int64_t p, const std::array<int64_t, 3>&, size_t place) {
      result[static_cast<size_t>(p * planes.area() + where[place])] += grad[place];
    });
    FromLanes(result, out);
  });
}

}  // namespace

void max_pool2d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntSpan, IntSpan,
                                      IntSpan, IntSpan, bool, const Tensor& indices, const Tensor& out) {
  MaxBackward(grad_output, self, indices, out, 2);
}
void avg_pool2d_backward(const Tensor& grad_output, const Tensor&, IntSpan kernel_size, IntSpan stride,
                         IntSpan padding, bool, bool count_include_pad,
                         std::optional<int64_t> divisor_override, const Tensor& out) {
  MeanBackward(grad_output, out, 2,
               AverageWindows(2, kernel_size, stride, padding, count_include_pad, divisor_override));
}
void _adaptive_avg_pool2d_backward(const Tensor& grad_output, const Tensor&, const Tensor& out) {
  MeanBackward(grad_output, out, 2, AdaptiveWindow);
}

void max_pool3d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntSpan, IntSpan,
                                      IntSpan, IntSpan, bool, const Tensor& indices, const Tensor& out) {
  MaxBackward(grad_output, self, indices, out, 3);
}
void avg_pool3d_backward(const Tensor& grad_output, const Tensor&, IntSpan kernel_size, IntSpan stride,
                         IntSpan padding, bool, bool count_include_pad,
                         std::optional<int64_t> divisor_override, const Tensor& out) {
  MeanBackward(grad_output, out, 3,
               AverageWindows(3, kernel_size, stride, padding, count_include_pad, divisor_override));
}
void _adaptive_avg_pool3d_backward(const Tensor& grad_output, const Tensor&, const Tensor& out) {
  MeanBackward(grad_output, out, 3, AdaptiveWindow);
}

}  // namespace mica::portable
