// The loops of weighted_gather.cc, compiled for each instruction set: the compiler makes
// vector gathers of them where there are some.
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mica/plugins/cpu/resampling/weighted_gather_loops.cc"
#include <hwy/foreach_target.h>
// After foreach_target, which includes this file once for each instruction set.
#include <hwy/highway.h>

#include "mica/plugins/cpu/resampling/weighted_gather_loops.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu {
namespace HWY_NAMESPACE {

// The element at `at`, 0 for -1; loads always, so that no branch stands in the loop.
template <class T>
HWY_INLINE T Tap(const T* x, int32_t at, T weight) {
  const T value = weight * x[at & ~(at >> 31)];
  return at < 0 ? T(0) : value;
}

template <class T>
void Gather(const T* x, const int32_t* at, const T* w, int64_t taps, int64_t stride, T* y, int64_t n) {
  int64_t k = 0;
  if (taps % 4 != 0) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = Tap(x, at[i], w[i]);
    for (k = 1; k < taps % 4; ++k)
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) y[i] += Tap(x, at[k * stride + i], w[k * stride + i]);
  }
  for (; k < taps; k += 4) {
    const int32_t *a0 = at + k * stride, *a1 = a0 + stride, *a2 = a1 + stride, *a3 = a2 + stride;
    const T *w0 = w + k * stride, *w1 = w0 + stride, *w2 = w1 + stride, *w3 = w2 + stride;
    if (k == 0) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i)
        y[i] = Tap(x, a0[i], w0[i]) + Tap(x, a1[i], w1[i]) + Tap(x, a2[i], w2[i]) + Tap(x, a3[i], w3[i]);
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i)
        y[i] += Tap(x, a0[i], w0[i]) + Tap(x, a1[i], w1[i]) + Tap(x, a2[i], w2[i]) + Tap(x, a3[i], w3[i]);
    }
  }
}

template <class T>
void Weights(const T* x, const int32_t* at, const T* g, T* w, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) w[i] += Tap(x, at[i], g[i]);
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
