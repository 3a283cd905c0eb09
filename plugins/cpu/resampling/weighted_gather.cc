// Weighted sums of elements from any place of a plane, as grid_sample takes them:
//
//   out[n, c, l] = sum over k of weights[n, k, l] * self[n, c, indices[n, k, l]]
//
// and the two other maps that a product of three has.
#include <cstring>
#include <string>

#include "plugins/cpu/resampling/resampling.h"
#include "plugins/cpu/resampling/taps.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

// Elements between two questions for a Ctrl-C.
constexpr int64_t kPatience = int64_t{1} << 20;

int32_t TapsDtype(const TensorRef& t) {
  if (t.dtype() == MICA_F64) return MICA_F64;
  if (t.dtype() == MICA_F16 || t.dtype() == MICA_BF16 || t.dtype() == MICA_F32) return MICA_F32;
  throw plugin::NotImplemented();
}

void CheckPlaces(const int64_t* at, int64_t n, int64_t places) {
  if (places == 0 || places > INT32_MAX) throw plugin::NotImplemented();  // element 0 is loaded
  for (int64_t i = 0; i < n; ++i)
    MICA_PLUGIN_CHECK(at[i] >= -1 && at[i] < places, MICA_ERROR_INDEX,
                      "Index (" + std::to_string(at[i]) + ") of `indices` is out of range for (" +
                          std::to_string(places) + ") places.");
}

template <class T>
void Gather(const TapShape& s, const T* self, const int64_t* indices, const T* weights, T* out,
            int32_t threads) {
  GatherTaps(s, self, out, threads, [&](int64_t n, int64_t l, int64_t, auto use) {
    const int64_t first = n * s.taps * s.length + l;
    use(TapList<T, int64_t>{indices + first, weights + first, s.length});
  });
}

template <class T>
void Scatter(const TapShape& s, const T* grad, const int64_t* indices, const T* weights, T* out,
             int32_t threads) {
  const int64_t work = s.places + s.taps * s.length;
  ParallelSteps(s.batch * s.channels, 16384 / (work + 1) + 1, 1, threads, [&](int64_t begin, int64_t end) {
    Patience patience(kPatience);
    for (int64_t p = begin; p < end; ++p) {
      T* x = out + p * s.places;
      std::memset(x, 0, static_cast<size_t>(s.places) * sizeof(T));
      const int64_t taps = p / s.channels * s.taps * s.length;
      for (int64_t k = 0; k < s.taps; ++k) {
        const int64_t* at = indices + taps + k * s.length;
        const T* w = weights + taps + k * s.length;
        const T* g = grad + p * s.length;
        for (int64_t first = 0; first < s.length; first += kPatience) {
          const int64_t last = std::min(s.length, first + kPatience);
          for (int64_t i = first; i < last; ++i)
            if (at[i] >= 0) x[at[i]] += w[i] * g[i];
          if (patience.Ends(last - first)) return;
        }
      }
    }
  });
}

template <class T>
void Weights(const TapShape& s, const T* grad, const T* self, const int64_t* indices, T* out,
             int32_t threads) {
  ForTapBlocks(s, threads, [&](int64_t n, int64_t l, int64_t count) {
    const int64_t first = n * s.taps * s.length + l;
    for (int64_t k = 0; k < s.taps; ++k) {
      const int64_t* at = indices + first + k * s.length;
      T* w = out + first + k * s.length;
      std::memset(w, 0, static_cast<size_t>(count) * sizeof(T));
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* x = self + (n * s.channels + c) * s.places;
        const T* g = grad + (n * s.channels + c) * s.length + l;
        for (int64_t i = 0; i < count; ++i) w[i] += at[i] < 0 ? T(0) : g[i] * x[at[i]];
      }
    }
  });
}

}  // namespace

void WeightedGather(const MicaCall* call, MicaTensor* self, MicaTensor* indices, MicaTensor* weights,
                    MicaTensor* out) {
  const TensorRef x(self), at(indices);
  const int32_t dtype = TapsDtype(x), threads = ThreadsOf(call);
  const TapShape s{x.size(0), x.size(1), x.size(2), at.size(1), at.size(2)};
  const DenseInput data(self, dtype, threads), places(indices, MICA_I64, threads),
      by(weights, dtype, threads);
  DenseOutput result(out, dtype, threads);
  CheckPlaces(places.data<int64_t>(), at.numel(), s.places);
  if (dtype == MICA_F32)
    Gather(s, data.data<float>(), places.data<int64_t>(), by.data<float>(), result.data<float>(), threads);
  else
    Gather(s, data.data<double>(), places.data<int64_t>(), by.data<double>(), result.data<double>(), threads);
  result.Finish();
}

void WeightedScatter(const MicaCall* call, MicaTensor* grad, MicaTensor* indices, MicaTensor* weights,
                     int64_t count, MicaTensor* out) {
  const TensorRef g(grad), at(indices);
  const int32_t dtype = TapsDtype(g), threads = ThreadsOf(call);
  const TapShape s{g.size(0), g.size(1), count, at.size(1), at.size(2)};
  const DenseInput data(grad, dtype, threads), places(indices, MICA_I64, threads),
      by(weights, dtype, threads);
  DenseOutput result(out, dtype, threads);
  CheckPlaces(places.data<int64_t>(), at.numel(), s.places);
  if (dtype == MICA_F32)
    Scatter(s, data.data<float>(), places.data<int64_t>(), by.data<float>(), result.data<float>(), threads);
  else
    Scatter(s, data.data<double>(), places.data<int64_t>(), by.data<double>(), result.data<double>(),
            threads);
  result.Finish();
}

void WeightedGatherWeights(const MicaCall* call, MicaTensor* grad, MicaTensor* self, MicaTensor* indices,
                           MicaTensor* out) {
  const TensorRef x(self), at(indices);
  const int32_t dtype = TapsDtype(x), threads = ThreadsOf(call);
  const TapShape s{x.size(0), x.size(1), x.size(2), at.size(1), at.size(2)};
  const DenseInput g(grad, dtype, threads), data(self, dtype, threads), places(indices, MICA_I64, threads);
  DenseOutput result(out, dtype, threads);
  CheckPlaces(places.data<int64_t>(), at.numel(), s.places);
  if (dtype == MICA_F32)
    Weights(s, g.data<float>(), data.data<float>(), places.data<int64_t>(), result.data<float>(), threads);
  else
    Weights(s, g.data<double>(), data.data<double>(), places.data<int64_t>(), result.data<double>(), threads);
  result.Finish();
}

}  // namespace mica::cpu
