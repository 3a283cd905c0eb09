// Weighted sums of elements from any place of a plane, as grid_sample takes them:
//
//   out[n, c, l] = sum over k of weights[n, k, l] * self[n, c, indices[n, k, l]]
//
// and the two other maps that a product of three has. Places go block by block, so that
// their indices and weights stay in cache while the channels pass.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "mica/plugins/cpu/contraction/dense.h"
#include "mica/plugins/cpu/engine/threads.h"
#include "mica/plugins/cpu/resampling/resampling.h"
#include "mica/plugins/cpu/resampling/weighted_gather_loops.h"

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
  if (places == 0 || places > INT32_MAX) throw plugin::NotImplemented();  // loops load element 0
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

// A block's indices in 32 bits, tap after tap kBlock apart.
void Narrow(const Shape& s, const int64_t* indices, int64_t count, int32_t* narrow) {
  for (int64_t k = 0; k < s.taps; ++k)
    for (int64_t i = 0; i < count; ++i)
      narrow[k * kBlock + i] = static_cast<int32_t>(indices[k * s.length + i]);
}

template <class T>
void Gather(const Shape& s, const T* self, const int64_t* indices, const T* weights, T* out,
            int32_t threads) {
  const GatherLoops<T>& loops = GatherLoopsOf(T());
  ForBlocks(s, threads, [&](int64_t n, int64_t l, int64_t count) {
    const int64_t taps = n * s.taps * s.length + l;
    const Temporary memory(s.taps * kBlock * static_cast<int64_t>(sizeof(int32_t) + sizeof(T)));
    T* by = memory.data<T>();
    auto* at = reinterpret_cast<int32_t*>(by + s.taps * kBlock);
    Narrow(s, indices + taps, count, at);
    for (int64_t k = 0; k < s.taps; ++k) std::copy_n(weights + taps + k * s.length, count, by + k * kBlock);
    for (int64_t c = 0; c < s.channels; ++c)
      loops.gather(self + (n * s.channels + c) * s.places, at, by, s.taps, kBlock,
                   out + (n * s.channels + c) * s.length + l, count);
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
  const GatherLoops<T>& loops = GatherLoopsOf(T());
  ForBlocks(s, threads, [&](int64_t n, int64_t l, int64_t count) {
    const int64_t taps = n * s.taps * s.length + l;
    const Temporary at(s.taps * kBlock * 4);
    Narrow(s, indices + taps, count, at.data<int32_t>());
    for (int64_t k = 0; k < s.taps; ++k) {
      T* w = out + taps + k * s.length;
      std::memset(w, 0, static_cast<size_t>(count) * sizeof(T));
      for (int64_t c = 0; c < s.channels; ++c)
        loops.weights(self + (n * s.channels + c) * s.places, at.data<int32_t>() + k * kBlock,
                      grad + (n * s.channels + c) * s.length + l, w, count);
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
