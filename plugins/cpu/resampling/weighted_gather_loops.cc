// The loops of weighted_gather.cc, compiled for each instruction set: float32 by vector
// gathers, float64 element by element.
#include <cstdint>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mica/plugins/cpu/resampling/weighted_gather_loops.cc"
#include <hwy/foreach_target.h>
// After foreach_target, which includes this file once for each instruction set.
#include <hwy/highway.h>

#include "mica/plugins/cpu/resampling/weighted_gather_loops.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

// The element at `at`, 0 for -1.
template <class T>
HWY_INLINE T Tap(const T* x, int32_t at, T weight) {
  return at < 0 ? T(0) : weight * x[at];
}
// The same for a vector; places are loaded without a branch, the first one for -1.
HWY_INLINE hn::Vec<D> Taps(const float* x, const int32_t* at, const float* weight) {
  const D d;
  const hn::RebindToSigned<D> di;
  const auto place = hn::LoadU(di, at);
  const auto none = hn::RebindMask(d, hn::Lt(place, hn::Zero(di)));
  const auto value = hn::GatherIndex(d, x, hn::Max(place, hn::Zero(di)));
  return hn::IfThenZeroElse(none, hn::Mul(hn::LoadU(d, weight), value));
}

// Calls `vector(i)` for whole vectors of floats and answers where the rest begins.
template <class F>
HWY_INLINE int64_t Vectors(int64_t n, F vector) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) vector(i);
  return i;
}

template <class T>
void Gather(const T* x, const int32_t* at, const T* w, int64_t taps, int64_t stride, T* y, int64_t n) {
  int64_t i = 0;
  if constexpr (std::is_same_v<T, float>)
    i = Vectors(n, [&](int64_t first) {
      auto sum = Taps(x, at + first, w + first);
      for (int64_t k = 1; k < taps; ++k)
        sum = hn::Add(sum, Taps(x, at + k * stride + first, w + k * stride + first));
      hn::StoreU(sum, D(), y + first);
    });
  for (; i < n; ++i) {
    T sum = 0;
    for (int64_t k = 0; k < taps; ++k) sum += Tap(x, at[k * stride + i], w[k * stride + i]);
    y[i] = sum;
  }
}

template <class T>
void Weights(const T* x, const int32_t* at, const T* g, T* w, int64_t n) {
  int64_t i = 0;
  if constexpr (std::is_same_v<T, float>)
    i = Vectors(n, [&](int64_t first) {
      hn::StoreU(hn::Add(hn::LoadU(D(), w + first), Taps(x, at + first, g + first)), D(), w + first);
    });
  for (; i < n; ++i) w[i] += Tap(x, at[i], g[i]);
}

template <class T>
const GatherLoops<T>* Table() {
  static const GatherLoops<T> loops = {Gather<T>, Weights<T>};
  return &loops;
}
const GatherLoops<float>* GatherF32() { return Table<float>(); }
const GatherLoops<double>* GatherF64() { return Table<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace mica::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {

HWY_EXPORT(GatherF32);
HWY_EXPORT(GatherF64);
const GatherLoops<float>& GatherLoopsOf(float) {
  static const GatherLoops<float>& best = *HWY_DYNAMIC_DISPATCH(GatherF32)();
  return best;
}
const GatherLoops<double>& GatherLoopsOf(double) {
  static const GatherLoops<double>& best = *HWY_DYNAMIC_DISPATCH(GatherF64)();
  return best;
}

}  // namespace mica::cpu
#endif
