// The interpolation points are 0, 1/sqrt 2, -1/sqrt 2, sqrt 2, -sqrt 2 and infinity: the
// error is half of that with the paper's 0, 1, -1, 2, -2. B, G and A name the matrices
// of the paper, and each function below multiplies by one of them.
#include "plugins/cpu/convolution/winograd_transforms.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/convolution/winograd_transforms.cc"
#include <hwy/foreach_target.h>
// After foreach_target, which includes this file once for each instruction set.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mica::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, 8>;
using V = hn::Vec<D>;

HWY_INLINE V Times(V v, float factor) { return hn::Mul(v, hn::Set(D(), factor)); }
HWY_INLINE V PlusTimes(V sum, V v, float factor) { return hn::MulAdd(v, hn::Set(D(), factor), sum); }

constexpr float kRoot = 1.41421356F, kHalfRoot = 0.70710678F;

// B^T: 6 inputs to 6.
struct OfInput {
  static constexpr int kIn = 6, kOut = 6;
  static HWY_INLINE void Run(const V* d, V* t) {
    const V even = PlusTimes(d[4], d[2], -2), odd = Times(PlusTimes(d[3], d[1], -2), kHalfRoot);
    const V even2 = PlusTimes(d[4], d[2], -0.5F), odd2 = Times(PlusTimes(d[3], d[1], -0.5F), kRoot);
    t[0] = PlusTimes(hn::Add(d[4], d[0]), d[2], -2.5F);
    t[1] = hn::Add(even, odd);
    t[2] = hn::Sub(even, odd);
    t[3] = hn::Add(even2, odd2);
    t[4] = hn::Sub(even2, odd2);
    t[5] = PlusTimes(hn::Add(d[5], d[1]), d[3], -2.5F);
  }
};

// G: 3 weights to 6.
struct OfKernel {
  static constexpr int kIn = 3, kOut = 6;
  static HWY_INLINE void Run(const V* g, V* t) {
    const V even = PlusTimes(Times(g[2], -1.0F / 3), g[0], -2.0F / 3), odd = Times(g[1], -kRoot / 3);
    const V even2 = PlusTimes(Times(g[2], 1.0F / 3), g[0], 1.0F / 6), odd2 = Times(g[1], kRoot / 6);
    t[0] = g[0];
    t[1] = hn::Add(even, odd);
    t[2] = hn::Sub(even, odd);
    t[3] = hn::Add(even2, odd2);
    t[4] = hn::Sub(even2, odd2);
    t[5] = g[2];
  }
};

// G of F(3, 4): 4 gradients to 6.
struct OfGradient {
  static constexpr int kIn = 4, kOut = 6;
  static HWY_INLINE void Run(const V* g, V* t) {
    const V even = PlusTimes(Times(g[2], -1.0F / 3), g[0], -2.0F / 3);
    const V odd = PlusTimes(Times(g[3], -kRoot / 6), g[1], -kRoot / 3);
    const V even2 = PlusTimes(Times(g[2], 1.0F / 3), g[0], 1.0F / 6);
    const V odd2 = PlusTimes(Times(g[3], kRoot / 3), g[1], kRoot / 6);
    t[0] = g[0];
    t[1] = hn::Add(even, odd);
    t[2] = hn::Sub(even, odd);
    t[3] = hn::Add(even2, odd2);
    t[4] = hn::Sub(even2, odd2);
    t[5] = g[3];
  }
};

// A^T: 6 products to 4 results.
struct ToOutput {
  static constexpr int kIn = 6, kOut = 4;
  static HWY_INLINE void Run(const V* m, V* y) {
    const V sum = hn::Add(m[1], m[2]), difference = hn::Sub(m[1], m[2]);
    const V sum2 = hn::Add(m[3], m[4]), difference2 = hn::Sub(m[3], m[4]);
    y[0] = hn::Add(hn::Add(m[0], sum), sum2);
    y[1] = PlusTimes(Times(difference, kHalfRoot), difference2, kRoot);
    y[2] = PlusTimes(Times(sum, 0.5F), sum2, 2);
    y[3] = PlusTimes(PlusTimes(m[5], difference, kHalfRoot / 2), difference2, 2 * kRoot);
  }
};

// A^T of F(3, 4): 6 products to 3.
struct ToWeight {
  static constexpr int kIn = 6, kOut = 3;
  static HWY_INLINE void Run(const V* m, V* y) {
    const V sum = hn::Add(m[1], m[2]), sum2 = hn::Add(m[3], m[4]);
    y[0] = hn::Add(hn::Add(m[0], sum), sum2);
    y[1] = PlusTimes(Times(hn::Sub(m[1], m[2]), kHalfRoot), hn::Sub(m[3], m[4]), kRoot);
    y[2] = PlusTimes(PlusTimes(m[5], sum, 0.5F), sum2, 2);
  }
};

// Columns first, then rows: `load(y, x)` gives the pixels, `store(y, v)` takes rows.
template <class T, class Load, class Store>
HWY_INLINE void Both(Load load, Store store) {
  V half[T::kOut][T::kIn];
  for (int x = 0; x < T::kIn; ++x) {
    V column[T::kIn], done[T::kOut];
    for (int y = 0; y < T::kIn; ++y) column[y] = load(y, x);
    T::Run(column, done);
    for (int y = 0; y < T::kOut; ++y) half[y][x] = done[y];
  }
  for (int y = 0; y < T::kOut; ++y) {
    V row[T::kOut];
    T::Run(half[y], row);
    store(y, row);
  }
}

template <class T>
void ToPlanes(const float* tile, int64_t row, int64_t pixel, int64_t channels, float* planes, int64_t plane) {
  const D d;
  for (int64_t c = 0; c < channels; c += static_cast<int64_t>(hn::Lanes(d))) {
    Both<T>([&](int y, int x) { return hn::LoadU(d, tile + y * row + x * pixel + c); },
            [&](int y, const V* values) {
              for (int x = 0; x < 6; ++x) hn::StoreU(values[x], d, planes + (y * 6 + x) * plane + c);
            });
  }
}

void Input(const float* tile, int64_t row, int64_t channels, float* planes, int64_t plane) {
  ToPlanes<OfInput>(tile, row, channels, channels, planes, plane);
}
void Gradient(const float* tile, int64_t row, int64_t channels, float* planes, int64_t plane) {
  ToPlanes<OfGradient>(tile, row, channels, channels, planes, plane);
}
void Kernel(const float* weights, int64_t channels, float* planes, int64_t plane) {
  ToPlanes<OfKernel>(weights, 3 * channels, channels, channels, planes, plane);
}

void Output(const float* planes, int64_t plane, int64_t channels, const float* bias, float* tile) {
  const D d;
  for (int64_t c = 0; c < channels; c += static_cast<int64_t>(hn::Lanes(d))) {
    const V add = bias ? hn::LoadU(d, bias + c) : hn::Zero(d);
    Both<ToOutput>([&](int y, int x) { return hn::LoadU(d, planes + (y * 6 + x) * plane + c); },
                   [&](int y, const V* v) {
                     hn::StoreInterleaved4(hn::Add(v[0], add), hn::Add(v[1], add), hn::Add(v[2], add),
                                           hn::Add(v[3], add), d, tile + (y * channels + c) * 4);
                   });
  }
}

void Weight(const float* planes, int64_t plane, int64_t channels, float* weights) {
  const D d;
  for (int64_t c = 0; c < channels; c += static_cast<int64_t>(hn::Lanes(d))) {
    Both<ToWeight>([&](int y, int x) { return hn::LoadU(d, planes + (y * 6 + x) * plane + c); },
                   [&](int y, const V* v) {
                     for (int x = 0; x < 3; ++x) hn::StoreU(v[x], d, weights + (y * 3 + x) * channels + c);
                   });
  }
}

const WinogradTransforms* Transforms() {
  static const WinogradTransforms transforms = {&Input, &Gradient, &Kernel, &Output, &Weight};
  return &transforms;
}

}  // namespace HWY_NAMESPACE
}  // namespace mica::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {

HWY_EXPORT(Transforms);
const WinogradTransforms& BestWinogradTransforms() {
  static const WinogradTransforms& best = *HWY_DYNAMIC_DISPATCH(Transforms)();
  return best;
}

}  // namespace mica::cpu
#endif
