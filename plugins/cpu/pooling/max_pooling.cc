// Maxima over windows, their indices, and the gradient that follows the indices.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/engine/copy.h"
#include "plugins/cpu/engine/pointwise.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/pooling/channels.h"
#include "plugins/cpu/pooling/each_plane.h"
#include "plugins/cpu/pooling/pooling.h"
#include "plugins/cpu/pooling/windows.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

// False once the call is to end.
template <class T>
bool MaxOfWindow(const PlaneView<T>& in, const Planes& plane, const PlaneWindows& w, const Window& layer,
                 const Window& row, const Window& column, T* out, int64_t* index, Patience& patience) {
  // A wide dilation may leave a window in the padding alone: minus infinity, at 0.
  const bool any = layer.begin < layer.end && row.begin < row.end && column.begin < column.end;
  int64_t best = any ? (layer.begin * plane.height + row.begin) * plane.width + column.begin : 0;
  T most = any ? in.at(layer.begin, row.begin, column.begin) : -std::numeric_limits<T>::infinity();
  for (int64_t z = layer.begin; z < layer.end; z += w.layer_step)
    for (int64_t y = row.begin; y < row.end; y += w.row_step) {
      const int64_t line = (z * plane.height + y) * plane.width;
      for (int64_t x = column.begin; x < column.end; x += w.column_step) {
        const T value = in.at(z, y, x);
        if (value > most || std::isnan(value)) {
          most = value;
          best = line + x;
        }
      }
      if (patience.Ends(column.end - column.begin)) return false;
    }
  *out = most;
  *index = best;
  return true;
}

// Windows that are alike by vectors, where columns lie side by side.
template <class T>
void MaxOfPlane(const PlaneView<T>& in, const Planes& plane, const PlaneWindows& w, T* out, int64_t* indices,
                Patience& patience) {
  AlikeWindows alike = FindAlike(w);
  if (in.column != 1 || plane.area() >= INT32_MAX) alike.last = alike.first;
  const auto lanes = static_cast<int64_t>(alike.last - alike.first);
  const int64_t distance[] = {in.layer * w.layer_step, in.row * w.row_step, 1};
  for (const Window& layer : w.layers)
    for (const Window& row : w.rows) {
      const bool any = lanes > 0 && layer.begin < layer.end && row.begin < row.end;
      for (size_t x = 0; x < w.columns.size(); ++x, ++out, ++indices) {
        if (!any || x != alike.first) {
          if (!MaxOfWindow(in, plane, w, layer, row, w.columns[x], out, indices, patience)) return;
          continue;
        }
        const T* from = &in.at(layer.begin, row.begin, w.columns[x].begin);
        Taps taps = TapsOver(w, plane.height, plane.width, layer, row, w.columns[x], distance);
        const int64_t place = taps.first;
        if (!InParts(lanes, taps, patience, [&](int64_t first, int64_t n) {
              taps.first = place + first * alike.step;
              WindowLoopsOf<T>().largest[alike.step](from + first * alike.step, taps, n, out + first,
                                                     indices + first);
            }))
          return;
        x += static_cast<size_t>(lanes - 1);
        out += lanes - 1;
        indices += lanes - 1;
      }
    }
}

template <class T>
void MaxPlanes(const PlaneReader& input, const Planes& in, const PlaneWindows& w, const PlaneWriter& output,
               const PlaneWriter& indices, int32_t threads) {
  const int64_t made = w.made();
  EachPlane(in.count, PlaneGrain(in.area() + 4 * made), input.scratch_bytes(),
            output.scratch_bytes() + indices.scratch_bytes(), threads,
            [&](int64_t p, char* read, char* written, Patience& patience) {
              const PlaneView<T> from = input.Read<T>(p, read);
              char* places = written + output.scratch_bytes();
              T* to = output.Begin<T>(p, written);
              int64_t* at = indices.Begin<int64_t>(p, places);
              MaxOfPlane(from, in, w, to, at, patience);
              output.End(p, written);
              indices.End(p, places);
            });
}

// The float dtype that has all integers of `dtype`; throws NotImplemented for those that have none.
int32_t ExactFloat(int32_t dtype) {
  if (!IsInteger(dtype) || DtypeSize(dtype) == 8) throw plugin::NotImplemented();
  return DtypeSize(dtype) == 4 ? MICA_F64 : MICA_F32;
}

bool IsEmpty(const std::vector<Window>& windows) {
  return std::any_of(windows.begin(), windows.end(), [](const Window& w) { return w.begin >= w.end; });
}

void RunMax(const MicaCall* call, MicaTensor* self, int32_t spatial, const PlaneWindows& windows,
            MicaTensor* out, MicaTensor* indices);

// Integers as the floats that they are. A window in the padding alone is the portable kernel's: minus
// infinity is no integer.
void RunMaxOfIntegers(const MicaCall* call, MicaTensor* self, int32_t spatial, const PlaneWindows& windows,
                      MicaTensor* out, MicaTensor* indices) {
  const int32_t wide = ExactFloat(DtypeOf(self));
  if (IsEmpty(windows.layers) || IsEmpty(windows.rows) || IsEmpty(windows.columns))
    throw plugin::NotImplemented();
  const auto made = [wide](const MicaTensor* like) {
    return plugin::OwnedTensor::Empty(like->dl.shape, like->dl.ndim, wide, MicaDevice{0, 0});
  };
  const plugin::OwnedTensor from = made(self), most = made(out);
  CopyInto(call, from.get(), self, 0);
  RunMax(call, from.get(), spatial, windows, most.get(), indices);
  CopyInto(call, out, most.get(), 0);
}

void RunMax(const MicaCall* call, MicaTensor* self, int32_t spatial, const PlaneWindows& windows,
            MicaTensor* out, MicaTensor* indices) {
  if (IsInteger(DtypeOf(self))) return RunMaxOfIntegers(call, self, spatial, windows, out, indices);
  const int32_t dtype = PoolingDtype(self), threads = ThreadsOf(call);
  if (MaxOfChannels(self, spatial, windows, out, indices, threads)) return;
  (dtype == MICA_F32 ? MaxPlanes<float>
                     : MaxPlanes<double>)(PlaneReader(self, spatial, dtype), Planes(self, spatial), windows,
                                          PlaneWriter(out, spatial, dtype),
                                          PlaneWriter(indices, spatial, MICA_I64), threads);
}

template <class T>
void Distribute(const DenseInput& grad, const DenseInput& indices, const Planes& out, const Planes& in,
                const PlaneWriter& result, int32_t threads) {
  EachPlane(in.count, PlaneGrain(in.area() + 2 * out.area()), 0, result.scratch_bytes(), threads,
            [&](int64_t p, char*, char* written, Patience& patience) {
              const T* from = grad.data<T>() + p * out.area();
              const int64_t* at = indices.data<int64_t>() + p * out.area();
              T* to = result.Begin<T>(p, written);
              std::memset(to, 0, static_cast<size_t>(in.area()) * sizeof(T));
              for (int64_t first = 0; first < out.area(); first += kWindowPatience) {
                const int64_t n = std::min(kWindowPatience, out.area() - first);
                for (int64_t i = first; i < first + n; ++i) to[at[i]] += from[i];
                if (patience.Ends(n)) return;
              }
              result.End(p, written);
            });
}

}  // namespace

template <int32_t kSpatial>
void MaxPool(const MicaCall* call, MicaTensor* self, MicaIntSpan kernel_size, MicaIntSpan stride,
             MicaIntSpan padding, MicaIntSpan dilation, int32_t, MicaTensor* out, MicaTensor* indices) {
  RunMax(call, self, kSpatial, GivenWindows(self, out, kSpatial, kernel_size, stride, padding, dilation), out,
         indices);
}

template <int32_t kSpatial>
void AdaptiveMaxPool(const MicaCall* call, MicaTensor* self, MicaIntSpan, MicaTensor* out,
                     MicaTensor* indices) {
  RunMax(call, self, kSpatial, DividingWindows(self, out, kSpatial), out, indices);
}

template <int32_t kSpatial>
void MaxPoolBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor*, MicaIntSpan, MicaIntSpan,
                     MicaIntSpan, MicaIntSpan, int32_t, MicaTensor* indices, MicaTensor* grad_input) {
  const int32_t dtype = PoolingDtype(grad_output), threads = ThreadsOf(call);
  const Planes out(grad_output, kSpatial), in(grad_input, kSpatial);
  if (DistributeOverChannels(grad_output, indices, kSpatial, grad_input, threads)) return;
  const DenseInput grad(grad_output, dtype, threads), places(indices, MICA_I64, threads);
  const PlaneWriter result(grad_input, kSpatial, dtype);
  CheckPlaces(places.data<int64_t>(), out.count * out.area(), in.area());
  (dtype == MICA_F32 ? Distribute<float> : Distribute<double>)(grad, places, out, in, result, threads);
}

// For the unit tests.
template decltype(MaxPool<2>) MaxPool<2>;
template decltype(MaxPool<3>) MaxPool<3>;
template decltype(MaxPoolBackward<2>) MaxPoolBackward<2>;
template decltype(MaxPoolBackward<3>) MaxPoolBackward<3>;
template decltype(AdaptiveMaxPool<2>) AdaptiveMaxPool<2>;
template decltype(AdaptiveMaxPool<3>) AdaptiveMaxPool<3>;

void RegisterMaxPooling(plugin::Registrar& r) {
  r.Kernel<&MaxPool<2>>("max_pool2d_with_indices.out");
  r.Kernel<&MaxPool<3>>("max_pool3d_with_indices.out");
  r.Kernel<&MaxPoolBackward<2>>("max_pool2d_with_indices_backward.grad_input");
  r.Kernel<&MaxPoolBackward<3>>("max_pool3d_with_indices_backward.grad_input");
  r.Kernel<&AdaptiveMaxPool<2>>("adaptive_max_pool2d.out");
  r.Kernel<&AdaptiveMaxPool<3>>("adaptive_max_pool3d.out");
}

}  // namespace mica::cpu
