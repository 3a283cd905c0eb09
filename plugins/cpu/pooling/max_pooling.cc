// Maxima over windows, their indices, and the gradient that follows the indices.
#include <hwy/highway.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "mica/plugins/cpu/contraction/dense.h"
#include "mica/plugins/cpu/engine/threads.h"
#include "mica/plugins/cpu/pooling/each_plane.h"
#include "mica/plugins/cpu/pooling/pooling.h"
#include "mica/plugins/cpu/pooling/windows.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;
namespace hn = hwy::HWY_NAMESPACE;

struct MaxWindows : PlaneWindows {
  bool pairs = false;  // 2 x 2 windows, 2 apart, without padding, of a plane of two dimensions
};

template <class T>
void MaxOfWindow(const PlaneView<T>& in, const Planes& plane, const MaxWindows& w, const Window& layer,
                 const Window& row, const Window& column, T* out, int64_t* index) {
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
    }
  *out = most;
  *index = best;
}

template <class T>
void MaxOfPlane(const PlaneView<T>& in, const Planes& plane, const MaxWindows& w, T* out, int64_t* indices) {
  for (const Window& layer : w.layers)
    for (const Window& row : w.rows)
      for (const Window& column : w.columns) MaxOfWindow(in, plane, w, layer, row, column, out++, indices++);
}

// The window that most networks use. Four windows at a time: rows of images are often
// no wider, and 64-bit indices fill four registers' halves anyway. Columns lie side by side.
void MaxOfPairs(const PlaneView<float>& in, const Planes& plane, const MaxWindows& w, float* out,
                int64_t* indices) {
  const int64_t width = plane.width;
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<int32_t, 4> di;
  const hn::FixedTag<int64_t, 2> dl;
  const auto columns = static_cast<int64_t>(w.columns.size());
  const auto twice = hn::ShiftLeft<1>(hn::Iota(di, 0));
  for (const Window& row : w.rows) {
    const float* upper = in.data + row.begin * in.row;
    const float* lower = upper + in.row;
    int64_t x = 0;
    for (; x + 4 <= columns; x += 4) {
      hn::Vec<decltype(d)> a, b, c, e;
      hn::LoadInterleaved2(d, upper + 2 * x, a, b);
      hn::LoadInterleaved2(d, lower + 2 * x, c, e);
      auto most = a;
      auto offset = hn::Zero(di);
      const auto consider = [&](auto value, int32_t at) {
        const auto wins = hn::Or(hn::Gt(value, most), hn::IsNaN(value));
        most = hn::IfThenElse(wins, value, most);
        offset = hn::IfThenElse(hn::RebindMask(di, wins), hn::Set(di, at), offset);
      };
      consider(b, 1);
      consider(c, static_cast<int32_t>(width));
      consider(e, static_cast<int32_t>(width + 1));
      hn::StoreU(most, d, out + x);
      const auto base = hn::Set(dl, row.begin * width + 2 * x);
      const auto at = hn::Add(offset, twice);
      hn::StoreU(hn::Add(base, hn::PromoteTo(dl, hn::LowerHalf(at))), dl, indices + x);
      hn::StoreU(hn::Add(base, hn::PromoteTo(dl, hn::UpperHalf(hn::Half<decltype(di)>(), at))), dl,
                 indices + x + 2);
    }
    for (; x < columns; ++x)
      MaxOfWindow(in, plane, w, w.layers[0], row, w.columns[static_cast<size_t>(x)], out + x, indices + x);
    out += columns;
    indices += columns;
  }
}

template <class T>
void MaxPlanes(const PlaneReader& input, const Planes& in, const MaxWindows& w, const PlaneWriter& output,
               const PlaneWriter& indices, int32_t threads) {
  const int64_t made = w.made();
  EachPlane(in.count, PlaneGrain(in.area() + 4 * made), input.scratch_bytes(),
            output.scratch_bytes() + indices.scratch_bytes(), threads,
            [&](int64_t p, char* read, char* written) {
              const PlaneView<T> from = input.Read<T>(p, read);
              char* places = written + output.scratch_bytes();
              T* to = output.Begin<T>(p, written);
              int64_t* at = indices.Begin<int64_t>(p, places);
              bool done = false;
              if constexpr (std::is_same_v<T, float>) {
                done = w.pairs && from.column == 1;
                if (done) MaxOfPairs(from, in, w, to, at);
              }
              if (!done) MaxOfPlane(from, in, w, to, at);
              output.End(p, written);
              indices.End(p, places);
            });
}

void RunMax(const MicaCall* call, MicaTensor* self, int32_t spatial, const MaxWindows& windows,
            MicaTensor* out, MicaTensor* indices) {
  const int32_t dtype = PoolingDtype(self), threads = ThreadsOf(call);
  (dtype == MICA_F32 ? MaxPlanes<float>
                     : MaxPlanes<double>)(PlaneReader(self, spatial, dtype), Planes(self, spatial), windows,
                                          PlaneWriter(out, spatial, dtype),
                                          PlaneWriter(indices, spatial, MICA_I64), threads);
}

template <class T>
void Distribute(const DenseInput& grad, const DenseInput& indices, const Planes& out, const Planes& in,
                const PlaneWriter& result, int32_t threads) {
  EachPlane(in.count, PlaneGrain(in.area() + 2 * out.area()), 0, result.scratch_bytes(), threads,
            [&](int64_t p, char*, char* written) {
              const T* from = grad.data<T>() + p * out.area();
              const int64_t* at = indices.data<int64_t>() + p * out.area();
              T* to = result.Begin<T>(p, written);
              std::memset(to, 0, static_cast<size_t>(in.area()) * sizeof(T));
              for (int64_t i = 0; i < out.area(); ++i) to[at[i]] += from[i];
              result.End(p, written);
            });
}

// The indices come from the caller, who may have made them up.
void CheckIndices(const DenseInput& indices, int64_t n, int64_t area) {
  bool inside = true;
  for (int64_t i = 0; i < n; ++i)
    inside &= static_cast<uint64_t>(indices.data<int64_t>()[i]) < static_cast<uint64_t>(area);
  MICA_PLUGIN_CHECK(
      inside, MICA_ERROR_INDEX,
      "An element of `indices` is outside the plane of (" + std::to_string(area) + ") elements.");
}

}  // namespace

template <int32_t kSpatial>
void MaxPool(const MicaCall* call, MicaTensor* self, MicaIntSpan kernel_size, MicaIntSpan stride,
             MicaIntSpan padding, MicaIntSpan dilation, int32_t, MicaTensor* out, MicaTensor* indices) {
  const TensorRef in(self), o(out);
  MaxWindows w{GivenWindows(in, o, kSpatial, kernel_size, stride, padding, dilation)};
  w.pairs = kSpatial == 2 && in.size(-2) * in.size(-1) < INT32_MAX;
  for (int32_t d = 0; d < 2 && w.pairs; ++d) {
    const int64_t kernel = At(kernel_size, d, 1);
    w.pairs = kernel == 2 && At(stride, d, kernel) == 2 && At(padding, d, 0) == 0 &&
              At(dilation, d, 1) == 1 && 2 * o.size(d - 2) <= in.size(d - 2);
  }
  RunMax(call, self, kSpatial, w, out, indices);
}

template <int32_t kSpatial>
void AdaptiveMaxPool(const MicaCall* call, MicaTensor* self, MicaIntSpan, MicaTensor* out,
                     MicaTensor* indices) {
  RunMax(call, self, kSpatial, {DividingWindows(self, out, kSpatial)}, out, indices);
}

template <int32_t kSpatial>
void MaxPoolBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor*, MicaIntSpan, MicaIntSpan,
                     MicaIntSpan, MicaIntSpan, int32_t, MicaTensor* indices, MicaTensor* grad_input) {
  const int32_t dtype = PoolingDtype(grad_output), threads = ThreadsOf(call);
  const DenseInput grad(grad_output, dtype, threads), places(indices, MICA_I64, threads);
  const PlaneWriter result(grad_input, kSpatial, dtype);
  const Planes out(grad_output, kSpatial), in(grad_input, kSpatial);
  CheckIndices(places, out.count * out.area(), in.area());
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
