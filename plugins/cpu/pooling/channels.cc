#include "plugins/cpu/pooling/channels.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <new>

#include "plugins/cpu/engine/lanes/lanes.h"
#include "plugins/cpu/engine/scratch.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/pooling/each_plane.h"
#include "plugins/cpu/pooling/window_loops.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

// Channels that are brought to a gradient at a time: a line of memory, and work for threads.
constexpr int64_t kChannelsAtOnce = 64;

// A tensor of (batch,) channels and one to three spatial dimensions; distances count elements.
struct Images {
  const TensorRef t;
  int64_t batch = 1, batch_distance = 0, channels, side_by_side;
  int64_t size[3] = {1, 1, 1}, distance[3] = {0, 0, 0};
  Images(const TensorRef& tensor, int32_t spatial) : t(tensor) {
    const int32_t c = t.ndim() - spatial - 1;
    channels = c < 0 ? 0 : t.size(c);
    side_by_side = channels > 1 && t.stride(c) == 1;
    if (c > 0) {
      batch = t.size(0);
      batch_distance = t.stride(0);
    }
    for (int32_t d = 0; d < spatial; ++d) {
      size[3 - spatial + d] = t.size(d - spatial);
      distance[3 - spatial + d] = t.stride(d - spatial);
    }
  }
  // Pixels follow each other as the plane's elements are numbered.
  bool numbered() const {
    return (size[1] == 1 || distance[1] == size[2] * distance[2]) &&
           (size[0] == 1 || distance[0] == size[1] * distance[1]);
  }
  int64_t Offset(int64_t image, int64_t z, int64_t y) const {
    return image * batch_distance + z * distance[0] + y * distance[1];
  }
};

// What a row of windows reads: from its first layer and row on, in steps of the window's.
template <class T>
struct Source {
  const T* data;
  int64_t distance[3];
};

// The taps of a window over images whose rows are read at `distance`.
Taps TapsOf(const PlaneWindows& w, const Images& images, const Window& layer, const Window& row,
            const Window& column, const int64_t* distance) {
  return TapsOver(w, images.size[1], images.size[2], layer, row, column, distance);
}
bool IsEmpty(const Taps& taps) { return taps.all() == 0; }

// Brings the rows that a row of windows reads to float32, one after the other.
class Widener {
 public:
  Widener(const Images& images, const PlaneWindows& w)
      : images_(images), w_(w), cast_(DirectCast(images.t.dtype(), MICA_F32)) {
    int64_t layers = 0, rows = 0;
    for (const Window& layer : w.layers) layers = std::max(layers, CountTaps(layer, w.layer_step));
    for (const Window& row : w.rows) rows = std::max(rows, CountTaps(row, w.row_step));
    floats_ = (layers * rows * images.size[2] * images.channels + 15) / 16 * 16;
  }
  int64_t floats() const { return floats_; }
  Source<float> Widen(int64_t image, const Window& layer, const Window& row, float* to) const {
    const int64_t width = images_.size[2], channels = images_.channels, rows = CountTaps(row, w_.row_step);
    const Source<float> source = {to, {rows * width * channels, width * channels, channels}};
    for (int64_t z = layer.begin; z < layer.end; z += w_.layer_step)
      for (int64_t y = row.begin; y < row.end; y += w_.row_step) {
        const auto* from = images_.t.data<uint16_t>() + images_.Offset(image, z, y);
        for (int64_t x = 0; x < width; ++x, to += channels)
          cast_(to, from + x * images_.distance[2], nullptr, nullptr, channels);
      }
    return source;
  }

 private:
  const Images& images_;
  const PlaneWindows& w_;
  const Primitive cast_;
  int64_t floats_;
};

// Calls f(taps, from, layer, row, column, to, i, x) for all windows; x counts the windows of a row,
// i the rows, and `to` takes the channels.
template <class T, class F>
void ForEachWindow(const Images& in, const PlaneWindows& w, const Images& out, int32_t threads, F f) {
  const bool narrow = in.t.itemsize() != sizeof(T);
  const Widener widener(in, w);
  const Primitive cast = narrow ? DirectCast(MICA_F32, out.t.dtype()) : nullptr;
  const auto rows = static_cast<int64_t>(w.rows.size()), layers = static_cast<int64_t>(w.layers.size());
  const int64_t work =
      out.size[2] * out.channels + in.t.numel() / std::max<int64_t>(1, rows * layers * in.batch);
  std::atomic<bool> no_memory{false};
  ParallelSteps(in.batch * layers * rows, PlaneGrain(work), 1, threads, [&](int64_t begin, int64_t end) {
    char* scratch = narrow ? Scratch((widener.floats() + out.channels) * 4) : nullptr;
    if (narrow && scratch == nullptr) {
      no_memory = true;
      return;
    }
    Patience patience(kWindowPatience);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / rows / layers, z = i / rows % layers, y = i % rows;
      const Window &layer = w.layers[static_cast<size_t>(z)], &row = w.rows[static_cast<size_t>(y)];
      Source<T> from = {in.t.data<T>() + in.Offset(image, layer.begin, row.begin),
                        {in.distance[0] * w.layer_step, in.distance[1] * w.row_step, in.distance[2]}};
      if constexpr (sizeof(T) == 4)
        if (narrow) from = widener.Widen(image, layer, row, reinterpret_cast<float*>(scratch));
      int64_t offset = out.Offset(image, z, y);
      for (const Window& column : w.columns) {
        T* to = narrow ? reinterpret_cast<T*>(scratch) + widener.floats() : out.t.data<T>() + offset;
        const Taps taps = TapsOf(w, in, layer, row, column, from.distance);
        f(taps, from.data + column.begin * from.distance[2], layer, row, column, to, i,
          &column - w.columns.data());
        if (patience.Ends(taps.all() * out.channels)) return;
        if (narrow) cast(out.t.data<uint16_t>() + offset, to, nullptr, nullptr, out.channels);
        offset += out.distance[2];
      }
    }
  });
  if (no_memory) throw std::bad_alloc();
}

template <class T>
void Maxima(const Images& in, const PlaneWindows& w, const Images& out, const Images& indices,
            int32_t threads) {
  const WindowLoops<T>& loops = WindowLoopsOf<T>();
  const auto rows = static_cast<int64_t>(w.rows.size()), layers = static_cast<int64_t>(w.layers.size());
  ForEachWindow<T>(in, w, out, threads,
                   [&](const Taps& taps, const T* from, const Window&, const Window&, const Window&, T* to,
                       int64_t i, int64_t x) {
                     int64_t* places = indices.t.data<int64_t>() + x * indices.distance[2] +
                                       indices.Offset(i / rows / layers, i / rows % layers, i % rows);
                     if (!IsEmpty(taps)) return loops.largest[0](from, taps, in.channels, to, places);
                     std::fill_n(to, in.channels, -std::numeric_limits<T>::infinity());
                     std::fill_n(places, in.channels, 0);
                   });
}

template <class T>
void Means(const Images& in, const AverageWindows& w, const Images& out, int32_t threads) {
  const WindowLoops<T>& loops = WindowLoopsOf<T>();
  ForEachWindow<T>(in, w, out, threads,
                   [&](const Taps& taps, const T* from, const Window& layer, const Window& row,
                       const Window& column, T* to, int64_t, int64_t) {
                     if (!IsEmpty(taps))
                       return loops.mean[0](from, taps, in.channels, w.Divisor<T>(layer, row, column), to);
                     std::fill_n(to, in.channels, T(0));
                   });
}

// Calls f(image, first channel, channels, patience) for parts of the channels of all images of `large`,
// zeroed before.
template <class T, class F>
void ForEachPart(const Images& large, int32_t threads, F f) {
  const int64_t parts = (large.channels + kChannelsAtOnce - 1) / kChannelsAtOnce;
  const int64_t pixels = large.size[0] * large.size[1] * large.size[2];
  ParallelSteps(large.batch * parts, PlaneGrain(pixels * kChannelsAtOnce), 1, threads,
                [&](int64_t begin, int64_t end) {
                  Patience patience(kWindowPatience);
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t image = i / parts, c = i % parts * kChannelsAtOnce;
                    const int64_t n = std::min(kChannelsAtOnce, large.channels - c);
                    T* to = large.t.data<T>() + large.Offset(image, 0, 0) + c;
                    for (int64_t p = 0; p < pixels; ++p)
                      std::memset(to + p * large.distance[2], 0, static_cast<size_t>(n) * sizeof(T));
                    f(image, c, n, to, patience);
                  }
                });
}

template <class T>
void Shares(const Images& small, const AverageWindows& w, const Images& large, int32_t threads) {
  const WindowLoops<T>& loops = WindowLoopsOf<T>();
  ForEachPart<T>(large, threads, [&](int64_t image, int64_t c, int64_t n, T* to, Patience& patience) {
    for (size_t z = 0; z < w.layers.size(); ++z)
      for (size_t y = 0; y < w.rows.size(); ++y) {
        const Window &layer = w.layers[z], &row = w.rows[y];
        const T* grad =
            small.t.data<T>() + c + small.Offset(image, static_cast<int64_t>(z), static_cast<int64_t>(y));
        for (const Window& column : w.columns) {
          const Taps taps = TapsOf(w, large, layer, row, column, large.distance);
          if (!IsEmpty(taps))
            loops.spread(to + taps.first * large.distance[2], taps, n, w.Divisor<T>(layer, row, column),
                         grad);
          grad += small.distance[2];
          if (patience.Ends(taps.all() * n)) return;
        }
      }
  });
}

template <class T>
void Scatter(const Images& grad, const Images& indices, const Images& large, int32_t threads) {
  ForEachPart<T>(large, threads, [&](int64_t image, int64_t c, int64_t n, T* to, Patience& patience) {
    for (int64_t z = 0; z < grad.size[0]; ++z)
      for (int64_t y = 0; y < grad.size[1]; ++y) {
        const T* from = grad.t.data<T>() + grad.Offset(image, z, y) + c;
        const int64_t* at = indices.t.data<int64_t>() + indices.Offset(image, z, y) + c;
        for (int64_t x = 0; x < grad.size[2]; ++x, from += grad.distance[2], at += indices.distance[2])
          for (int64_t k = 0; k < n; ++k) to[at[k] * large.distance[2] + k] += from[k];
        if (patience.Ends(n * grad.size[2])) return;
      }
  });
}

bool IsHalf(int32_t dtype) { return dtype == MICA_F16 || dtype == MICA_BF16; }

}  // namespace

bool MaxOfChannels(const TensorRef& in, int32_t spatial, const PlaneWindows& w, const TensorRef& out,
                   const TensorRef& indices, int32_t threads) {
  const Images from(in, spatial), to(out, spatial), at(indices, spatial);
  const bool small = from.size[0] * from.size[1] * from.size[2] < INT32_MAX;
  if (!from.side_by_side || !to.side_by_side || !at.side_by_side || !small || out.dtype() != in.dtype())
    return false;
  (in.dtype() == MICA_F64 ? Maxima<double> : Maxima<float>)(from, w, to, at, threads);
  return true;
}

bool AverageOfChannels(const TensorRef& in, int32_t spatial, const AverageWindows& w, const TensorRef& out,
                       int32_t threads) {
  const Images from(in, spatial), to(out, spatial);
  if (!from.side_by_side || !to.side_by_side || out.dtype() != in.dtype()) return false;
  (in.dtype() == MICA_F64 ? Means<double> : Means<float>)(from, w, to, threads);
  return true;
}

bool SpreadOverChannels(const TensorRef& small, int32_t spatial, const AverageWindows& w,
                        const TensorRef& large, int32_t threads) {
  const Images from(small, spatial), to(large, spatial);
  if (!from.side_by_side || !to.side_by_side || !to.numbered() || small.dtype() != large.dtype() ||
      IsHalf(small.dtype()))
    return false;
  (small.dtype() == MICA_F64 ? Shares<double> : Shares<float>)(from, w, to, threads);
  return true;
}

bool DistributeOverChannels(const TensorRef& grad, const TensorRef& indices, int32_t spatial,
                            const TensorRef& large, int32_t threads) {
  const Images from(grad, spatial), at(indices, spatial), to(large, spatial);
  if (!from.side_by_side || !at.side_by_side || !to.side_by_side || !to.numbered() ||
      grad.dtype() != large.dtype() || indices.dtype() != MICA_I64 || IsHalf(grad.dtype()))
    return false;
  for (int64_t p = 0; p < at.batch * at.size[0] * at.size[1] * at.size[2]; ++p) {
    const int64_t row = p / at.size[2];
    CheckPlaces(at.t.data<int64_t>() + p % at.size[2] * at.distance[2] +
                    at.Offset(row / at.size[1] / at.size[0], row / at.size[1] % at.size[0], row % at.size[1]),
                at.channels, to.size[0] * to.size[1] * to.size[2]);
  }
  (grad.dtype() == MICA_F64 ? Scatter<double> : Scatter<float>)(from, at, to, threads);
  return true;
}

}  // namespace mica::cpu
