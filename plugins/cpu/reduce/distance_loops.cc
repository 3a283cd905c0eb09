// The norms of differences of rows, compiled for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/reduce/distance_loops.cc"
#include "hwy/foreach_target.h"
//
#include <hwy/highway.h>

#include <cmath>

#include "plugins/cpu/reduce/distances.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What a difference adds to a sum that starts at 0, and the distance from the sum.
struct Manhattan {
  template <class V>
  static HWY_INLINE V Add(V sum, V d) {
    return hn::Add(sum, hn::Abs(d));
  }
  template <class T>
  static T Finish(T sum) {
    return sum;
  }
};
struct Euclidean {
  template <class V>
  static HWY_INLINE V Add(V sum, V d) {
    return hn::Add(sum, hn::Mul(d, d));
  }
  template <class T>
  static T Finish(T sum) {
    return std::sqrt(sum);
  }
};
// A NaN is not at most anything, and stays.
struct Chebyshev {
  template <class V>
  static HWY_INLINE V Add(V most, V d) {
    const V size = hn::Abs(d);
    return hn::IfThenElse(hn::Or(hn::Gt(size, most), hn::IsNaN(size)), size, most);
  }
  template <class T>
  static T Finish(T most) {
    return most;
  }
};

// The lanes of `parts` as one, by N's own rule: differences from 0 for those that add.
template <class N, class T>
T Together(const T* parts, size_t count) {
  T sum = 0;
  for (size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<N, Chebyshev>)
      sum = parts[i] > sum || std::isnan(parts[i]) ? parts[i] : sum;
    else
      sum += parts[i];
  }
  return N::Finish(sum);
}

template <class T, class N>
void Distances(const T* x, const T* rows, int64_t count, int64_t width, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T parts[2 * HWY_MAX_BYTES / sizeof(T)];
  HWY_ALIGN T rest[2 * HWY_MAX_BYTES / sizeof(T)] = {};
  for (int64_t j = 0; j < count; ++j, rows += width) {
    auto even = hn::Zero(d), odd = hn::Zero(d);
    int64_t i = 0;
    for (; i + 2 * lanes <= width; i += 2 * lanes) {
      even = N::Add(even, hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, rows + i)));
      odd = N::Add(odd, hn::Sub(hn::LoadU(d, x + i + lanes), hn::LoadU(d, rows + i + lanes)));
    }
    if (i < width) {
      for (int64_t k = i; k < width; ++k) rest[k - i] = x[k] - rows[k];
      even = N::Add(even, hn::Load(d, rest));
      odd = N::Add(odd, hn::Load(d, rest + lanes));
    }
    hn::Store(even, d, parts);
    hn::Store(odd, d, parts + lanes);
    out[j] = Together<N>(parts, static_cast<size_t>(2 * lanes));
  }
}

template <class T>
DistanceLoop<T> Choose(double p) {
  if (p == 1) return Distances<T, Manhattan>;
  if (p == 2) return Distances<T, Euclidean>;
  return std::isinf(p) ? Distances<T, Chebyshev> : nullptr;
}
DistanceLoop<float> ChooseFloat(double p) { return Choose<float>(p); }
DistanceLoop<double> ChooseDouble(double p) { return Choose<double>(p); }

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(ChooseFloat);
HWY_EXPORT(ChooseDouble);
template <>
DistanceLoop<float> DistanceLoopOf<float>(double p) {
  return HWY_DYNAMIC_DISPATCH(ChooseFloat)(p);
}
template <>
DistanceLoop<double> DistanceLoopOf<double>(double p) {
  return HWY_DYNAMIC_DISPATCH(ChooseDouble)(p);
}
}  // namespace mica::cpu
#endif
