// Sums of weighted elements of a plane: what _weighted_gather and grid_sample share.
//
//   out[n, c, l] = sum over k of weight of tap k of place l * self[n, c, index of tap k]
//
// Places go block by block, so that their indices and weights stay in cache while the channels
// pass; where the taps come from is the caller's: memory, or coordinates computed for the block.
#ifndef MICA_PLUGINS_CPU_RESAMPLING_TAPS_H_
#define MICA_PLUGINS_CPU_RESAMPLING_TAPS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {

inline constexpr int64_t kTapBlock = 512;

struct TapShape {
  int64_t batch, channels, places, taps, length;
  int64_t blocks() const { return (length + kTapBlock - 1) / kTapBlock; }
};

// Calls f(sample, first place, number of places) for blocks of places, in parallel.
template <class F>
void ForTapBlocks(const TapShape& s, int32_t threads, F f) {
  const int64_t work = kTapBlock * s.taps * s.channels;
  ParallelSteps(s.batch * s.blocks(), 16384 / (work + 1) + 1, 1, threads, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t l = b % s.blocks() * kTapBlock;
      f(b / s.blocks(), l, std::min(kTapBlock, s.length - l));
    }
  });
}

// Tap k of place i of a block stands at [k * apart + i]; index -1 stands for none.
template <class T, class I>
struct TapList {
  const I* indices;
  const T* weights;
  int64_t apart;
};

// A block's taps where none is missing: what has index -1 takes element 0 times 0. A scalar load
// each beats vector gathers on the machines measured (2 to 5 ns for 4 taps on AMD EPYC; vector
// gathers 12).
template <class T>
class Taps {
 public:
  template <class I>
  Taps(const TapList<T, I>& list, int64_t taps, int64_t count)
      : taps_(taps),
        count_(count),
        memory_(taps * count * static_cast<int64_t>(sizeof(int32_t) + sizeof(T))),
        weights_(memory_.data<T>()),
        places_(reinterpret_cast<int32_t*>(weights_ + taps * count)) {
    // Without branches, which taps at random would miss.
    I least = 0;
    for (int64_t k = 0; k < taps; ++k) {
      const I* __restrict at = list.indices + k * list.apart;
      const T* __restrict from = list.weights + k * list.apart;
      int32_t* __restrict places = places_ + k * count;
      T* __restrict weights = weights_ + k * count;
      for (int64_t i = 0; i < count; ++i) {
        const I index = at[i];
        least |= index;
        places[i] = static_cast<int32_t>(index & ~(index >> (sizeof(I) * 8 - 1)));
        weights[i] = from[i];
      }
      for (int64_t i = 0; i < count; ++i) {
        const T weight = weights[i];
        weights[i] = at[i] < 0 ? T(0) : weight;
      }
    }
    whole_ = least >= 0;
  }
  // Whether the first element may stand for none: 0 times it is 0.
  bool SkipsNothing(const T* x) const { return whole_ || std::isfinite(x[0]); }

  void Sum(const T* x, T* y) const {
    switch (taps_) {
      case 1:
        return SumOf<1>(x, y);
      case 4:
        return SumOf<4>(x, y);
      case 8:
        return SumOf<8>(x, y);
      default:
        return SumOf<0>(x, y);
    }
  }

 private:
  template <int kTaps>
  void SumOf(const T* x, T* y) const {
    const int64_t taps = kTaps ? kTaps : taps_;
    const int32_t* at = places_;
    const T* w = weights_;
    for (int64_t i = 0; i < count_; ++i, ++at, ++w) {
      T sum = w[0] * x[at[0]];
      for (int64_t k = 1; k < taps; ++k) sum += w[k * count_] * x[at[k * count_]];
      y[i] = sum;
    }
  }

  int64_t taps_, count_;
  Temporary memory_;
  T* weights_;
  int32_t* places_;
  bool whole_;
};

// with_taps(n, l, count, use) calls use(list) with those of `count` places of sample n from l on.
template <class T, class WithTaps>
void GatherTaps(const TapShape& s, const T* self, T* out, int32_t threads, WithTaps with_taps) {
  ForTapBlocks(s, threads, [&](int64_t n, int64_t l, int64_t count) {
    with_taps(n, l, count, [&](const auto& list) {
      const Taps<T> taps(list, s.taps, count);
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* x = self + (n * s.channels + c) * s.places;
        T* y = out + (n * s.channels + c) * s.length + l;
        if (taps.SkipsNothing(x)) {
          taps.Sum(x, y);
          continue;
        }
        std::memset(y, 0, static_cast<size_t>(count) * sizeof(T));
        for (int64_t k = 0; k < s.taps; ++k)
          for (int64_t i = 0; i < count; ++i) {
            const auto at = list.indices[k * list.apart + i];
            if (at >= 0) y[i] += list.weights[k * list.apart + i] * x[at];
          }
      }
    });
  });
}

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_RESAMPLING_TAPS_H_
