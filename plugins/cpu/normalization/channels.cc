// Sums are written in vectors; the loops that only map are plain ones, which the compiler
// turns into vectors of whichever instruction set foreach_target selects.
#include "plugins/cpu/normalization/channels.h"

#include <algorithm>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/normalization/channels.cc"
#include <hwy/foreach_target.h>
// After foreach_target, which includes this file once for each instruction set.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mica::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kTile = 64;
constexpr int64_t kSteps = 16;  // of two vectors, before a sum in lanes goes to double

constexpr int64_t kAddends = 32;  // of a sum in double, before it is one addend of the next

// A sum in double of what vectors of T add up to, in three levels.
template <class T>
struct DoubleSum {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  using Half = hn::Half<D>;
  using Wide = hn::ScalableTag<double>;
  hn::Vec<Wide> total, upper, top;
  int64_t addends = 0;

  HWY_INLINE void Add(V v) {
    if constexpr (sizeof(T) == sizeof(double)) {
      total = hn::Add(total, v);
    } else {
      const auto low = hn::PromoteTo(Wide(), hn::LowerHalf(v));
      total = hn::Add(total, hn::Add(low, hn::PromoteTo(Wide(), hn::UpperHalf(Half(), v))));
    }
    if (++addends % kAddends != 0) return;
    upper = hn::Add(upper, total);
    total = hn::Zero(Wide());
    if (addends % (kAddends * kAddends) != 0) return;
    top = hn::Add(top, upper);
    upper = hn::Zero(Wide());
  }
  HWY_INLINE double Value() const {
    return hn::GetLane(hn::SumOfLanes(Wide(), hn::Add(top, hn::Add(upper, total))));
  }
};

// The same of single numbers.
struct TailSum {
  double total = 0, upper = 0, top = 0;
  int64_t addends = 0;
  HWY_INLINE void Add(double v) {
    total += v;
    if (++addends % kAddends == 0) upper += std::exchange(total, 0.0);
    if (addends % (kAddends * kAddends) == 0) top += std::exchange(upper, 0.0);
  }
  HWY_INLINE double Value() const { return top + (upper + total); }
};

// a * b + c, rounded once where the target can: as torch's loops are compiled.
template <class T>
HWY_INLINE T MultiplyAdd(T a, T b, T c) {
#if HWY_TARGET == HWY_SSE4
  return a * b + c;
#else
  return sizeof(T) == 4 ? static_cast<T>(__builtin_fmaf(a, b, c)) : static_cast<T>(__builtin_fma(a, b, c));
#endif
}

// What is summed, as vectors and one by one: Add adds the terms of element i of channel
// c to two sums.
template <class T>
struct Elements {
  const T* x;
  template <class V>
  HWY_INLINE void Add(int64_t i, int64_t, V& sum, V&) const {
    sum = hn::Add(sum, hn::LoadU(hn::DFromV<V>(), x + i));
  }
  HWY_INLINE void AddOne(int64_t i, int64_t, T& sum, T&) const { sum += x[i]; }
};
template <class T>
struct Deviations {
  const T *x, *center;
  template <class V>
  HWY_INLINE void Add(int64_t i, int64_t c, V& sum, V&) const {
    const hn::DFromV<V> d;
    const V deviation = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, center[c]));
    sum = hn::MulAdd(deviation, deviation, sum);
  }
  HWY_INLINE void AddOne(int64_t i, int64_t c, T& sum, T&) const {
    sum += (x[i] - center[c]) * (x[i] - center[c]);
  }
};
template <class T>
struct Slopes {
  const T *grad, *x, *center;
  template <class V>
  HWY_INLINE void Add(int64_t i, int64_t c, V& sum, V& product) const {
    const hn::DFromV<V> d;
    const V g = hn::LoadU(d, grad + i);
    sum = hn::Add(sum, g);
    product = hn::MulAdd(g, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, center[c])), product);
  }
  HWY_INLINE void AddOne(int64_t i, int64_t c, T& sum, T& product) const {
    sum += grad[i];
    product += grad[i] * (x[i] - center[c]);
  }
};

// Channels are adjacent: a row of kTile partial sums over kTile rows at a time, and of those sums again.
template <class T, class Terms>
HWY_INLINE void SumAdjacent(const ChannelLayout& l, int64_t begin, int64_t end, double* sums,
                            double* products, Terms terms) {
  for (int64_t c0 = begin; c0 < end; c0 += kTile) {
    const int64_t width = std::min(kTile, end - c0);
    double sum[kTile] = {}, product[kTile] = {}, upper_sum[kTile] = {}, upper_product[kTile] = {};
    const auto carry = [&] {
      for (int64_t j = 0; j < width; ++j) {
        upper_sum[j] += std::exchange(sum[j], 0.0);
        upper_product[j] += std::exchange(product[j], 0.0);
      }
    };
    for (int64_t n0 = 0; n0 < l.outer; n0 += kTile) {
      if (n0 % (kTile * kTile) == 0) carry();
      T first[kTile] = {}, second[kTile] = {};
      for (int64_t n = n0; n < std::min(l.outer, n0 + kTile); ++n)
        for (int64_t j = 0; j < width; ++j)
          terms.AddOne(n * l.channels + c0 + j, c0 + j, first[j], second[j]);
      for (int64_t j = 0; j < width; ++j) {
        sum[j] += static_cast<double>(first[j]);
        product[j] += static_cast<double>(second[j]);
      }
    }
    carry();
    std::copy(upper_sum, upper_sum + width, sums + c0);
    if (products) std::copy(upper_product, upper_product + width, products + c0);
  }
}

template <class T, class Terms>
HWY_INLINE void SumBoth(const ChannelLayout& l, int64_t begin, int64_t end, double* sums, double* products,
                        Terms terms) {
  if (l.inner == 1) return SumAdjacent<T>(l, begin, end, sums, products, terms);
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = begin; c < end; ++c) {
    const auto zero = hn::Zero(hn::ScalableTag<double>());
    DoubleSum<T> sum{zero, zero, zero}, product{zero, zero, zero};
    TailSum tails, tails2;
    for (int64_t n = 0; n < l.outer; ++n) {
      int64_t i = (n * l.channels + c) * l.inner;
      const int64_t past = i + l.inner;
      while (i + 2 * lanes <= past) {
        const int64_t stop = std::min(past, i + kSteps * 2 * lanes);
        auto a = hn::Zero(d), b = a, a2 = a, b2 = a;  // two of each hide the latency
        for (; i + 2 * lanes <= stop; i += 2 * lanes) {
          terms.Add(i, c, a, b);
          terms.Add(i + lanes, c, a2, b2);
        }
        sum.Add(hn::Add(a, a2));
        if (products) product.Add(hn::Add(b, b2));
      }
      T tail = 0, tail2 = 0;
      for (; i < past; ++i) terms.AddOne(i, c, tail, tail2);
      tails.Add(static_cast<double>(tail));
      tails2.Add(static_cast<double>(tail2));
    }
    sums[c] = sum.Value() + tails.Value();
    if (products) products[c] = product.Value() + tails2.Value();
  }
}

// Calls f(i, c) for each element i.
template <class F>
HWY_INLINE void Each(const ChannelLayout& l, int64_t begin, int64_t end, F f) {
  for (int64_t n = 0; n < l.outer; ++n) {
    if (l.inner == 1) {
      for (int64_t c = begin; c < end; ++c) f(n * l.channels + c, c);
      continue;
    }
    for (int64_t c = begin; c < end; ++c) {
      const int64_t first = (n * l.channels + c) * l.inner;
      for (int64_t i = 0; i < l.inner; ++i) f(first + i, c);
    }
  }
}

template <class T>
void Sum(const ChannelLayout& l, int64_t begin, int64_t end, const T* x, double* sums) {
  SumBoth<T>(l, begin, end, sums, nullptr, Elements<T>{x});
}
template <class T>
void Squares(const ChannelLayout& l, int64_t begin, int64_t end, const T* x, const T* center, double* sums) {
  SumBoth<T>(l, begin, end, sums, nullptr, Deviations<T>{x, center});
}
template <class T>
void Gradients(const ChannelLayout& l, int64_t begin, int64_t end, const T* grad, const T* x, const T* center,
               double* sums, double* products) {
  SumBoth<T>(l, begin, end, sums, products, Slopes<T>{grad, x, center});
}
template <class T>
void Scale(const ChannelLayout& l, int64_t begin, int64_t end, const T* x, const T* scale, const T* shift,
           T* HWY_RESTRICT y) {
  Each(l, begin, end, [=](int64_t i, int64_t c) { y[i] = MultiplyAdd(x[i], scale[c], shift[c]); });
}
template <class T>
void Input(const ChannelLayout& l, int64_t begin, int64_t end, const T* grad, const T* x, const T* center,
           const T* of_grad, const T* of_x, const T* constant, T* HWY_RESTRICT dx) {
  Each(l, begin, end, [=](int64_t i, int64_t c) {
    dx[i] = MultiplyAdd(grad[i], of_grad[c], MultiplyAdd(x[i] - center[c], of_x[c], constant[c]));
  });
}

const ChannelLoops<float>* FloatLoops() {
  static const ChannelLoops<float> loops = {&Sum<float>, &Squares<float>, &Gradients<float>, &Scale<float>,
                                            &Input<float>};
  return &loops;
}
const ChannelLoops<double>* DoubleLoops() {
  static const ChannelLoops<double> loops = {&Sum<double>, &Squares<double>, &Gradients<double>,
                                             &Scale<double>, &Input<double>};
  return &loops;
}

}  // namespace HWY_NAMESPACE
}  // namespace mica::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {

HWY_EXPORT(FloatLoops);
HWY_EXPORT(DoubleLoops);

template <>
const ChannelLoops<float>& BestChannelLoops<float>() {
  static const ChannelLoops<float>& best = *HWY_DYNAMIC_DISPATCH(FloatLoops)();
  return best;
}
template <>
const ChannelLoops<double>& BestChannelLoops<double>() {
  static const ChannelLoops<double>& best = *HWY_DYNAMIC_DISPATCH(DoubleLoops)();
  return best;
}

}  // namespace mica::cpu
#endif
