// The norms of differences of rows, and their gradients, compiled for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/reduce/distance_loops.cc"
#include "hwy/foreach_target.h"
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "plugins/cpu/reduce/distances.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sums begin anew after so many terms, which bounds the rounding of long ones.
constexpr int64_t kTerms = 64;

// 1, -1, or 0 for a difference of 0 and NaN.
template <class V>
HWY_INLINE V SignOf(V d) {
  const hn::DFromV<V> tag;
  return hn::IfThenElseZero(hn::Gt(hn::Abs(d), hn::Zero(tag)), hn::CopySign(hn::Set(tag, 1), d));
}

// What a difference adds to a sum that starts at 0, how two sums become one, and the distance from the sum.
struct Adding {
  template <class V>
  static HWY_INLINE V Join(V a, V b) {
    return hn::Add(a, b);
  }
  template <class V>
  static HWY_INLINE V Finish(V sum) {
    return sum;
  }
};
struct Hamming : Adding {
  template <class V>
  static HWY_INLINE V Add(V sum, V d) {
    const hn::DFromV<V> tag;
    return hn::Add(sum, hn::IfThenZeroElse(hn::Eq(d, hn::Zero(tag)), hn::Set(tag, 1)));
  }
};
struct Manhattan : Adding {
  template <class V>
  static HWY_INLINE V Add(V sum, V d) {
    return hn::Add(sum, hn::Abs(d));
  }
  // What a difference adds to the gradient, of weight w at distance r.
  template <class V>
  static HWY_INLINE V AddGradient(V sum, V d, V w, V) {
    return hn::MulAdd(SignOf(d), w, sum);
  }
};
struct Euclidean : Adding {
  template <class V>
  static HWY_INLINE V Add(V sum, V d) {
    return hn::Add(sum, hn::Mul(d, d));
  }
  template <class V>
  static HWY_INLINE V AddGradient(V sum, V d, V w, V) {
    return hn::MulAdd(d, w, sum);
  }
  template <class V>
  static HWY_INLINE V Finish(V sum) {
    return hn::Sqrt(sum);
  }
};
// A NaN is not at most anything, and stays.
struct Chebyshev : Adding {
  template <class V>
  static HWY_INLINE V Join(V most, V size) {
    return hn::IfThenElse(hn::Or(hn::Gt(size, most), hn::IsNaN(size)), size, most);
  }
  template <class V>
  static HWY_INLINE V Add(V most, V d) {
    return Join(most, hn::Abs(d));
  }
  template <class V>
  static HWY_INLINE V AddGradient(V sum, V d, V w, V r) {
    return hn::MulAdd(hn::IfThenElseZero(hn::Eq(hn::Abs(d), r), SignOf(d)), w, sum);
  }
};

template <class T, class N>
void Distances(const T* x, const T* tile, int64_t width, T* out) {
  const hn::ScalableTag<T> d;
  constexpr size_t kLanes = hn::MaxLanes(d), kVectors = kDistanceTile<T> / kLanes;
  hn::Vec<decltype(d)> total[kVectors];
  for (auto& part : total) part = hn::Zero(d);
  for (int64_t first = 0; first < width; first += kTerms) {
    hn::Vec<decltype(d)> sum[kVectors];
    for (auto& part : sum) part = hn::Zero(d);
    for (int64_t i = first, end = std::min(first + kTerms, width); i < end; ++i) {
      const auto at = hn::Set(d, x[i]);
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v)
        sum[v] = N::Add(sum[v], hn::Sub(at, hn::Load(d, tile + i * kDistanceTile<T> + v * kLanes)));
    }
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) total[v] = N::Join(total[v], sum[v]);
  }
  HWY_UNROLL(8)
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(N::Finish(total[v]), d, out + v * kLanes);
}

// kVectors vectors of the gradient.
template <class T, class N, size_t kVectors>
HWY_INLINE void Columns(const T* x, const T* rows, const T* weights, const T* distances, int64_t count,
                        int64_t width, T* out) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  V at[kVectors], total[kVectors];
  for (size_t v = 0; v < kVectors; ++v) {
    at[v] = hn::LoadU(d, x + v * lanes);
    total[v] = hn::Zero(d);
  }
  for (int64_t first = 0; first < count; first += kTerms) {
    V sum[kVectors];
    for (V& part : sum) part = hn::Zero(d);
    for (int64_t j = first, end = std::min(first + kTerms, count); j < end; ++j) {
      const V w = hn::Set(d, weights[j]), r = hn::Set(d, distances[j]);
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v)
        sum[v] = N::AddGradient(sum[v], hn::Sub(at[v], hn::LoadU(d, rows + j * width + v * lanes)), w, r);
    }
    for (size_t v = 0; v < kVectors; ++v) total[v] = hn::Add(total[v], sum[v]);
  }
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(total[v], d, out + v * lanes);
}

// The last vectors lie over those before them where the width is no multiple of their lanes.
template <class T, class N>
void Gradient(const T* x, const T* rows, const T* weights, const T* distances, int64_t count, int64_t width,
              T* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  int64_t i = 0;
  for (; i + 4 * lanes <= width; i += 4 * lanes)
    Columns<T, N, 4>(x + i, rows + i, weights, distances, count, width, out + i);
  for (; i < width; i += lanes) {
    i = std::min(i, width - lanes);
    Columns<T, N, 1>(x + i, rows + i, weights, distances, count, width, out + i);
  }
}

template <class T>
DistanceLoop<T> Choose(double p) {
  if (p == 0) return Distances<T, Hamming>;
  if (p == 1) return Distances<T, Manhattan>;
  if (p == 2) return Distances<T, Euclidean>;
  return std::isinf(p) ? Distances<T, Chebyshev> : nullptr;
}
DistanceLoop<float> ChooseFloat(double p) { return Choose<float>(p); }
DistanceLoop<double> ChooseDouble(double p) { return Choose<double>(p); }

template <class T>
DistanceGradientLoop<T> ChooseGradient(double p) {
  if (p == 1) return Gradient<T, Manhattan>;
  if (p == 2) return Gradient<T, Euclidean>;
  return std::isinf(p) ? Gradient<T, Chebyshev> : nullptr;
}
DistanceGradientLoop<float> ChooseGradientFloat(double p) { return ChooseGradient<float>(p); }
DistanceGradientLoop<double> ChooseGradientDouble(double p) { return ChooseGradient<double>(p); }

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(ChooseFloat);
HWY_EXPORT(ChooseDouble);
HWY_EXPORT(ChooseGradientFloat);
HWY_EXPORT(ChooseGradientDouble);
template <>
DistanceLoop<float> DistanceLoopOf<float>(double p) {
  return HWY_DYNAMIC_DISPATCH(ChooseFloat)(p);
}
template <>
DistanceLoop<double> DistanceLoopOf<double>(double p) {
  return HWY_DYNAMIC_DISPATCH(ChooseDouble)(p);
}
template <>
DistanceGradientLoop<float> DistanceGradientLoopOf<float>(double p) {
  return HWY_DYNAMIC_DISPATCH(ChooseGradientFloat)(p);
}
template <>
DistanceGradientLoop<double> DistanceGradientLoopOf<double>(double p) {
  return HWY_DYNAMIC_DISPATCH(ChooseGradientDouble)(p);
}
}  // namespace mica::cpu
#endif
