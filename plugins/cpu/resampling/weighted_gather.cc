// Weighted sums of elements from any place of a plane, as grid_sample takes them:
//
//   out[n, c, l] = sum over k of weights[n, k, l] * self[n, c, indices[n, k, l]]
//
// and the two other maps that a product of three has. Places go block by block, so that
// their indices and weights stay in cache while the channels pass.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "mica/plugins/cpu/contraction/dense.h"
#include "mica/plugins/cpu/engine/threads.h"
#include "mica/plugins/cpu/resampling/resampling.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

constexpr int64_t kBlock = 512;

int32_t TapsDtype(const TensorRef& t) {
  if (t.dtype() == MICA_F64) return MICA_F64;
  if (t.dtype() == MICA_F16 || t.dtype() == MICA_BF16 || t.dtype() == MICA_F32) return MICA_F32;
  throw plugin::NotImplemented();
}

struct Shape {
  int64_t batch, channels, places, taps, length;
  int64_t blocks() const { return (length + kBlock - 1) / kBlock; }
};

void CheckPlaces(const int64_t* at, int64_t n, int64_t places) {
  if (places == 0 || places > INT32_MAX) throw plugin::NotImplemented();  // element 0 is loaded
  for (int64_t i = 0; i < n; ++i)
    MICA_PLUGIN_CHECK(at[i] >= -1 && at[i] < places, MICA_ERROR_INDEX,
                      "Index (" + std::to_string(at[i]) + ") of `indices` is out of range for (" +
                          std::to_string(places) + ") places.");
}

// Calls f(sample, first place, number of places) for blocks of places, in parallel.
template <class F>
void ForBlocks(const Shape& s, int32_t threads, F f) {
  const int64_t work = kBlock * s.taps * s.channels;
  ParallelSteps(s.batch * s.blocks(), 16384 / (work + 1) + 1, 1, threads, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t l = b % s.blocks() * kBlock;
      f(b / s.blocks(), l, std::min(kBlock, s.length - l));
    }
  });
}

// A block's taps, those of a place side by side: a scalar load each beats vector gathers
// on the machines measured (2 to 5 ns for 4 taps on AMD EPYC; vector gathers 12).
template <class T>
class Taps {
 public:
  Taps(const Shape& s, const int64_t* indices, const T* weights, int64_t count)
      : taps_(s.taps),
        memory_(s.taps * count * static_cast<int64_t>(sizeof(int32_t) + sizeof(T))),
        weights_(memory_.data<T>()),
        places_(reinterpret_cast<int32_t*>(weights_ + s.taps * count)) {
    for (int64_t k = 0; k < s.taps; ++k)
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = indices[k * s.length + i];
        whole_ &= at >= 0;
        places_[i * taps_ + k] = static_cast<int32_t>(std::max<int64_t>(at, 0));
        weights_[i * taps_ + k] = at < 0 ? T(0) : weights[k * s.length + i];
      }
  }
  // Whether the first element may stand for none: 0 times it is 0.
  bool SkipsNothing(const T* x) const { return whole_ || std::isfinite(x[0]); }

  void Sum(const T* x, T* y, int64_t count) const {
    switch (taps_) {
      case 1:
        return SumOf<1>(x, y, count);
      case 4:
        return SumOf<4>(x, y, count);
      case 8:
        return SumOf<8>(x, y, count);
      default:
        return SumOf<0>(x, y, count);
    }
  }

 private:
  template <int kTaps>
  void SumOf(const T* x, T* y, int64_t count) const {
    const int64_t taps = kTaps ? kTaps : taps_;
    const int32_t* at = places_;
    const T* w = weights_;
    for (int64_t i = 0; i < count; ++i, at += taps, w += taps) {
      T sum = w[0] * x[at[0]];
      for (int64_t k = 1; k < taps; ++k) sum += w[k] * x[at[k]];
      y[i] = sum;
    }
  }

  int64_t taps_;
  Temporary memory_;
  T* weights_;
  int32_t* places_;
  bool whole_ = true;
};

template <class T>
void Gather(const Shape& s, const T* self, const int64_t* indices, const T* weights, T* out,
            int32_t threads) {
  ForBlocks(s, threads, [&](int64_t n, int64_t l, int64_t count) {
    const int64_t first = n * s.taps * s.length + l;
    const Taps<T> taps(s, indices + first, weights + first, count);
    for (int64_t c = 0; c < s.channels; ++c) {
      const T* x = self + (n * s.channels + c) * s.places;
      T* y = out + (n * s.channels + c) * s.length + l;
      if (taps.SkipsNothing(x)) {
        taps.Sum(x, y, count);
        continue;
      }
      std::memset(y, 0, static_cast<size_t>(count) * sizeof(T));
      for (int64_t k = 0; k < s.taps; ++k)
        for (int64_t i = 0; i < count; ++i) {
          const int64_t tap = first + k * s.length + i;
          if (indices[tap] >= 0) y[i] += weights[tap] * x[indices[tap]];
        }
    }
  });
}

template <class T>
void Scatter(const Shape& s, const T* grad, const int64_t* indices, const T* weights, T* out,
             int32_t threads) {
  const int64_t work = s.places + s.taps * s.length;
  ParallelSteps(s.batch * s.channels, 16384 / (work + 1) + 1, 1, threads, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      T* x = out + p * s.places;
      std::memset(x, 0, static_cast<size_t>(s.places) * sizeof(T));
      const int64_t taps = p / s.channels * s.taps * s.length;
      for (int64_t k = 0; k < s.taps; ++k) {
        const int64_t* at = indices + taps + k * s.length;
        const T* w = weights + taps + k * s.length;
        const T* g = grad + p * s.length;
        for (int64_t i = 0; i < s.length; ++i)
          if (at[i] >= 0) x[at[i]] += w[i] * g[i];
      }
    }
  });
}

template <class T>
void Weights(const Shape& s, const T* grad, const T* self, const int64_t* indices, T* out, int32_t threads) {
  ForBlocks(s, threads, [&](int64_t n, int64_t l, int64_t count) {
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
  const Shape s{x.size(0), x.size(1), x.size(2), at.size(1), at.size(2)};
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
  const Shape s{g.size(0), g.size(1), count, at.size(1), at.size(2)};
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
  const Shape s{x.size(0), x.size(1), x.size(2), at.size(1), at.size(2)};
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
