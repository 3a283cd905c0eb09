// Averages over windows, given and adaptive, and their gradients.
#include <cstring>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/pooling/channels.h"
#include "plugins/cpu/pooling/each_plane.h"
#include "plugins/cpu/pooling/pooling.h"
#include "plugins/cpu/pooling/windows.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

// Calls f(layer, row, column) for the elements of a window; false once the call is to end. A large window
// asks at each of its rows, of others every sixteenth.
template <class F>
bool ForEachIn(const Window& layer, const Window& row, const Window& column, size_t number,
               Patience& patience, F&& f) {
  const int64_t width = column.end - column.begin, area = (row.end - row.begin) * width;
  const bool asks = area > kWindowPatience / 16;
  for (int64_t z = layer.begin; z < layer.end; ++z)
    for (int64_t y = row.begin; y < row.end; ++y) {
      for (int64_t x = column.begin; x < column.end; ++x) f(z, y, x);
      if (asks && patience.Ends(width)) return false;
    }
  return asks || number % 16 != 15 || !patience.Ends(16 * (layer.end - layer.begin) * area);
}

template <class T>
void AveragePlane(const PlaneView<T>& in, const AverageWindows& w, T* out, Patience& patience) {
  AlikeWindows alike = FindAlike(w);
  if (in.column != 1) alike.last = alike.first;
  const auto lanes = static_cast<int64_t>(alike.last - alike.first);
  const int64_t distance[] = {in.layer, in.row, 1};
  for (const Window& layer : w.layers)
    for (const Window& row : w.rows)
      for (size_t x = 0; x < w.columns.size(); ++x) {
        const Window& column = w.columns[x];
        if (lanes > 0 && x == alike.first && layer.begin < layer.end && row.begin < row.end) {
          // Windows that are alike by vectors; the numbers of elements are not asked for.
          const T* from = &in.at(layer.begin, row.begin, column.begin);
          const Taps taps = TapsOver(w, 0, 0, layer, row, column, distance);
          const T divisor = w.Divisor<T>(layer, row, column);
          if (!InParts(lanes, taps, patience, [&](int64_t first, int64_t n) {
                WindowLoopsOf<T>().mean[alike.step](from + first * alike.step, taps, n, divisor, out + first);
              }))
            return;
          out += lanes;
          x += static_cast<size_t>(lanes - 1);
          continue;
        }
        T sum = 0;
        if (!ForEachIn(layer, row, column, x, patience,
                       [&](int64_t z, int64_t y, int64_t x) { sum += in.at(z, y, x); }))
          return;
        // A window that lies in the padding alone has no elements and averages to 0.
        const bool any = layer.begin < layer.end && row.begin < row.end && column.begin < column.end;
        *out++ = any ? sum / w.Divisor<T>(layer, row, column) : T(0);
      }
}

template <class T>
void SpreadPlane(const T* grad, const AverageWindows& w, T* to, const Planes& plane, Patience& patience) {
  for (const Window& layer : w.layers)
    for (const Window& row : w.rows)
      for (size_t number = 0; number < w.columns.size(); ++number) {
        const Window& column = w.columns[number];
        const T share = *grad++ / w.Divisor<T>(layer, row, column);
        if (!ForEachIn(layer, row, column, number, patience, [&](int64_t z, int64_t y, int64_t x) {
              to[(z * plane.height + y) * plane.width + x] += share;
            }))
          return;
      }
}

template <class T>
void Average(const PlaneReader& in, const Planes& planes, const AverageWindows& w, const PlaneWriter& out,
             int32_t threads) {
  EachPlane(planes.count, PlaneGrain(planes.area() + w.made()), in.scratch_bytes(), out.scratch_bytes(),
            threads, [&](int64_t p, char* read, char* written, Patience& patience) {
              AveragePlane(in.Read<T>(p, read), w, out.Begin<T>(p, written), patience);
              out.End(p, written);
            });
}
// `small` has one element a window, `large` holds the planes and is written.
template <class T>
void Spread(const DenseInput& small, const Planes& planes, const AverageWindows& w, const PlaneWriter& large,
            int32_t threads) {
  EachPlane(planes.count, PlaneGrain(planes.area() + w.made()), 0, large.scratch_bytes(), threads,
            [&](int64_t p, char*, char* written, Patience& patience) {
              T* to = large.Begin<T>(p, written);
              std::memset(to, 0, static_cast<size_t>(planes.area()) * sizeof(T));
              SpreadPlane(small.data<T>() + p * w.made(), w, to, planes, patience);
              large.End(p, written);
            });
}

void RunAverage(const MicaCall* call, MicaTensor* self, int32_t spatial, const AverageWindows& w,
                MicaTensor* out) {
  const int32_t dtype = PoolingDtype(self), threads = ThreadsOf(call);
  if (AverageOfChannels(self, spatial, w, out, threads)) return;
  (dtype == MICA_F32 ? Average<float> : Average<double>)(PlaneReader(self, spatial, dtype),
                                                         Planes(self, spatial), w,
                                                         PlaneWriter(out, spatial, dtype), threads);
}

void RunSpread(const MicaCall* call, MicaTensor* grad_output, int32_t spatial, const AverageWindows& w,
               MicaTensor* grad_input) {
  const int32_t dtype = PoolingDtype(grad_output), threads = ThreadsOf(call);
  if (SpreadOverChannels(grad_output, spatial, w, grad_input, threads)) return;
  const DenseInput grad(grad_output, dtype, threads);
  (dtype == MICA_F32 ? Spread<float> : Spread<double>)(grad, Planes(grad_input, spatial), w,
                                                       PlaneWriter(grad_input, spatial, dtype), threads);
}

template <int32_t kSpatial>
AverageWindows WindowsOf(const TensorRef& in, const TensorRef& out, MicaIntSpan kernel_size,
                         MicaIntSpan stride, MicaIntSpan padding, int32_t count_include_pad,
                         MicaOptInt divisor_override) {
  return {GivenWindows(in, out, kSpatial, kernel_size, stride, padding, MicaIntSpan{nullptr, 0}),
          count_include_pad != 0, divisor_override.has ? divisor_override.value : 0};
}

}  // namespace

template <int32_t kSpatial>
void AvgPool(const MicaCall* call, MicaTensor* self, MicaIntSpan kernel_size, MicaIntSpan stride,
             MicaIntSpan padding, int32_t, int32_t count_include_pad, MicaOptInt divisor_override,
             MicaTensor* out) {
  RunAverage(
      call, self, kSpatial,
      WindowsOf<kSpatial>(self, out, kernel_size, stride, padding, count_include_pad, divisor_override), out);
}

template <int32_t kSpatial>
void AvgPoolBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor*, MicaIntSpan kernel_size,
                     MicaIntSpan stride, MicaIntSpan padding, int32_t, int32_t count_include_pad,
                     MicaOptInt divisor_override, MicaTensor* grad_input) {
  RunSpread(call, grad_output, kSpatial,
            WindowsOf<kSpatial>(grad_input, grad_output, kernel_size, stride, padding, count_include_pad,
                                divisor_override),
            grad_input);
}

template <int32_t kSpatial>
void AdaptiveAvgPool(const MicaCall* call, MicaTensor* self, MicaIntSpan, MicaTensor* out) {
  RunAverage(call, self, kSpatial, {DividingWindows(self, out, kSpatial)}, out);
}

template <int32_t kSpatial>
void AdaptiveAvgPoolBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor*, MicaTensor* out) {
  RunSpread(call, grad_output, kSpatial, {DividingWindows(out, grad_output, kSpatial)}, out);
}

// For the unit tests.
template decltype(AvgPool<2>) AvgPool<2>;
template decltype(AvgPool<3>) AvgPool<3>;
template decltype(AvgPoolBackward<2>) AvgPoolBackward<2>;
template decltype(AvgPoolBackward<3>) AvgPoolBackward<3>;
template decltype(AdaptiveAvgPool<2>) AdaptiveAvgPool<2>;
template decltype(AdaptiveAvgPool<3>) AdaptiveAvgPool<3>;
template decltype(AdaptiveAvgPoolBackward<2>) AdaptiveAvgPoolBackward<2>;
template decltype(AdaptiveAvgPoolBackward<3>) AdaptiveAvgPoolBackward<3>;

void RegisterAveragePooling(plugin::Registrar& r) {
  r.Kernel<&AvgPool<2>>("avg_pool2d.out");
  r.Kernel<&AvgPool<3>>("avg_pool3d.out");
  r.Kernel<&AvgPoolBackward<2>>("avg_pool2d_backward.grad_input");
  r.Kernel<&AvgPoolBackward<3>>("avg_pool3d_backward.grad_input");
  r.Kernel<&AdaptiveAvgPool<2>>("_adaptive_avg_pool2d.out");
  r.Kernel<&AdaptiveAvgPool<3>>("_adaptive_avg_pool3d.out");
  r.Kernel<&AdaptiveAvgPoolBackward<2>>("_adaptive_avg_pool2d_backward.out");
  r.Kernel<&AdaptiveAvgPoolBackward<3>>("_adaptive_avg_pool3d_backward.out");
}

}  // namespace mica::cpu
