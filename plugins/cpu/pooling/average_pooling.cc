// Averages over windows, given and adaptive, and their gradients.
#include <cstring>

#include "mica/plugins/cpu/contraction/dense.h"
#include "mica/plugins/cpu/engine/threads.h"
#include "mica/plugins/cpu/pooling/pooling.h"
#include "mica/plugins/cpu/pooling/windows.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

struct AverageWindows {
  std::vector<Window> rows, columns;
  bool count_padding = false;
  int64_t divisor = 0;  // 0: the number of elements
  int64_t made() const { return static_cast<int64_t>(rows.size() * columns.size()); }
};

template <class T>
T Divisor(const AverageWindows& w, const Window& row, const Window& column) {
  if (w.divisor) return static_cast<T>(w.divisor);
  return static_cast<T>(w.count_padding ? row.with_padding * column.with_padding
                                        : (row.end - row.begin) * (column.end - column.begin));
}

template <class T>
void AveragePlane(const T* in, int64_t width, const AverageWindows& w, T* out) {
  for (const Window& row : w.rows)
    for (const Window& column : w.columns) {
      T sum = 0;
      for (int64_t y = row.begin; y < row.end; ++y)
        for (int64_t x = column.begin; x < column.end; ++x) sum += in[y * width + x];
      // A window that lies in the padding alone has no elements and averages to 0.
      *out++ = row.begin < row.end && column.begin < column.end ? sum / Divisor<T>(w, row, column) : T(0);
    }
}

template <class T>
void SpreadPlane(const T* grad, const AverageWindows& w, T* to, int64_t width) {
  for (const Window& row : w.rows)
    for (const Window& column : w.columns) {
      const T share = *grad++ / Divisor<T>(w, row, column);
      for (int64_t y = row.begin; y < row.end; ++y)
        for (int64_t x = column.begin; x < column.end; ++x) to[y * width + x] += share;
    }
}

// `small` has one element a window, `large` holds the planes; one of them is written.
template <class T>
void Average(const DenseInput& large, const Planes& planes, const AverageWindows& w, DenseOutput& small,
             int32_t threads) {
  ParallelSteps(
      planes.count, PlaneGrain(planes.area() + w.made()), 1, threads, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p)
          AveragePlane(large.data<T>() + p * planes.area(), planes.width, w, small.data<T>() + p * w.made());
      });
}
template <class T>
void Spread(const DenseInput& small, const Planes& planes, const AverageWindows& w, DenseOutput& large,
            int32_t threads) {
  ParallelSteps(planes.count, PlaneGrain(planes.area() + w.made()), 1, threads,
                [&](int64_t begin, int64_t end) {
                  for (int64_t p = begin; p < end; ++p) {
                    T* to = large.data<T>() + p * planes.area();
                    std::memset(to, 0, static_cast<size_t>(planes.area()) * sizeof(T));
                    SpreadPlane(small.data<T>() + p * w.made(), w, to, planes.width);
                  }
                });
}

void RunAverage(const MicaCall* call, MicaTensor* self, const AverageWindows& w, MicaTensor* out) {
  const int32_t dtype = PoolingDtype(self), threads = ThreadsOf(call);
  const DenseInput in(self, dtype, threads);
  DenseOutput result(out, dtype, threads);
  (dtype == MICA_F32 ? Average<float> : Average<double>)(in, Planes(self), w, result, threads);
  result.Finish();
}

void RunSpread(const MicaCall* call, MicaTensor* grad_output, const AverageWindows& w,
               MicaTensor* grad_input) {
  const int32_t dtype = PoolingDtype(grad_output), threads = ThreadsOf(call);
  const DenseInput grad(grad_output, dtype, threads);
  DenseOutput result(grad_input, dtype, threads);
  (dtype == MICA_F32 ? Spread<float> : Spread<double>)(grad, Planes(grad_input), w, result, threads);
  result.Finish();
}

AverageWindows GivenWindows(const TensorRef& in, const TensorRef& out, MicaIntSpan kernel_size,
                            MicaIntSpan stride, MicaIntSpan padding, int32_t count_include_pad,
                            MicaOptInt divisor_override) {
  AverageWindows w;
  std::vector<Window>* sides[] = {&w.rows, &w.columns};
  for (int32_t d = 0; d < 2; ++d) {
    const int64_t kernel = At(kernel_size, d, 1);
    *sides[d] =
        PoolWindows(in.size(d - 2), out.size(d - 2), kernel, At(stride, d, kernel), At(padding, d, 0), 1);
  }
  w.count_padding = count_include_pad != 0;
  w.divisor = divisor_override.has ? divisor_override.value : 0;
  return w;
}

AverageWindows DividingWindows(const TensorRef& in, const TensorRef& out) {
  return {AdaptiveWindows(in.size(-2), out.size(-2)), AdaptiveWindows(in.size(-1), out.size(-1))};
}

}  // namespace

void AvgPool2d(const MicaCall* call, MicaTensor* self, MicaIntSpan kernel_size, MicaIntSpan stride,
               MicaIntSpan padding, int32_t, int32_t count_include_pad, MicaOptInt divisor_override,
               MicaTensor* out) {
  RunAverage(call, self,
             GivenWindows(self, out, kernel_size, stride, padding, count_include_pad, divisor_override), out);
}

void AvgPool2dBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor*, MicaIntSpan kernel_size,
                       MicaIntSpan stride, MicaIntSpan padding, int32_t, int32_t count_include_pad,
                       MicaOptInt divisor_override, MicaTensor* grad_input) {
  RunSpread(call, grad_output,
            GivenWindows(grad_input, grad_output, kernel_size, stride, padding, count_include_pad,
                         divisor_override),
            grad_input);
}

void AdaptiveAvgPool2d(const MicaCall* call, MicaTensor* self, MicaIntSpan, MicaTensor* out) {
  RunAverage(call, self, DividingWindows(self, out), out);
}

void AdaptiveAvgPool2dBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor*, MicaTensor* out) {
  RunSpread(call, grad_output, DividingWindows(out, grad_output), out);
}

}  // namespace mica::cpu
