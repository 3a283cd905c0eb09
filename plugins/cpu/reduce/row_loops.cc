// Maps over dense rows; see row_loops.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/reduce/row_loops.cc"
#include "hwy/foreach_target.h"
//
#include <cmath>
#include <limits>

#include "plugins/cpu/reduce/row_folds-inl.h"
#include "plugins/cpu/reduce/row_loops.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

// Stores f(i) for each whole vector of n elements; how many elements that were. Stopped, it says all.
template <class S, class F>
HWY_INLINE int64_t StoreVectors(S* out, int64_t n, F f) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Tag<LaneOf<S>>()));
  int64_t i = 0;
  const bool whole = InLongPieces(n, [&](int64_t, int64_t end) HWY_ATTR {
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      const auto first = f(i);
      Memory<S>::StoreTwo(first, f(i + lanes), out + i);
    }
  });
  if (!whole) return n;
  for (; i + lanes <= n; i += lanes) Memory<S>::Store(f(i), out + i);
  return i;
}

// Applies f to the vectors of a row, the rest padded; f returns what is stored.
template <class Out, class In, class F>
HWY_INLINE void MapRow(Out* out, const In* x, int64_t n, LaneOf<In> pad_value, F f) {
  const Tag<LaneOf<In>> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t i = StoreVectors(out, n, [&](int64_t at) { return f(Memory<In>::Load(x + at)); });
  if (i == n) return;
  if constexpr (kLoadsSome<In> && kLoadsSome<Out>) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    const auto padded = hn::IfThenElse(some, hn::MaskedLoad(some, d, x + i), hn::Set(d, pad_value));
    hn::BlendedStore(f(padded), some, d, out + i);
  } else {
    constexpr int64_t kPad = HWY_MAX_BYTES / sizeof(LaneOf<In>);
    HWY_ALIGN In pad[kPad];
    HWY_ALIGN Out result[kPad];
    for (int64_t k = n - i; k < lanes; ++k) pad[k] = Memory<In>::Put(pad_value);
    __builtin_memcpy(pad, x + i, static_cast<size_t>(n - i) * sizeof(In));
    Memory<Out>::Store(f(Memory<In>::Load(pad)), result);
    __builtin_memcpy(out + i, result, static_cast<size_t>(n - i) * sizeof(Out));
  }
}

// Pads are -inf, whose exponential adds nothing.
template <class T>
struct ExpAndSum {
  hn::Vec<Tag<T>> shift, total;
  HWY_INLINE hn::Vec<Tag<T>> operator()(hn::Vec<Tag<T>> x) {
    const auto e = Exp::Do(hn::Sub(x, shift));
    total = hn::Add(total, e);
    return e;
  }
};
template <class T>
struct Scale {
  hn::Vec<Tag<T>> factor;
  HWY_INLINE hn::Vec<Tag<T>> operator()(hn::Vec<Tag<T>> x) const { return hn::Mul(x, factor); }
};
// Two steps as x - m - log(s) has them: m alone may dwarf log(s).
template <class T>
struct ShiftTwice {
  hn::Vec<Tag<T>> first, second;
  HWY_INLINE hn::Vec<Tag<T>> operator()(hn::Vec<Tag<T>> x) const {
    return hn::Sub(hn::Sub(x, first), second);
  }
};

template <class S>
LaneOf<S> ExpRow(LaneOf<S>* lanes, const S* x, int64_t n, LaneOf<S>* largest) {
  using T = LaneOf<S>;
  const Tag<T> d;
  *largest = static_cast<T>(Extreme<S, true>(x, n));
  ExpAndSum<T> f{hn::Set(d, *largest), hn::Zero(d)};
  MapRow<T, S, ExpAndSum<T>&>(lanes, x, n, -std::numeric_limits<T>::infinity(), f);
  return hn::GetLane(hn::SumOfLanes(d, f.total));
}

template <class S>
void Softmax(void* out, const void* x, int64_t n, void* memory) {
  using T = LaneOf<S>;
  T* lanes = static_cast<T*>(memory);
  T largest;
  const T sum = ExpRow(lanes, static_cast<const S*>(x), n, &largest);
  MapRow(static_cast<S*>(out), lanes, n, T{0}, Scale<T>{hn::Set(Tag<T>(), T{1} / sum)});
}

template <class S>
void LogSoftmax(void* out, const void* data, int64_t n, void* memory) {
  using T = LaneOf<S>;
  const Tag<T> d;
  const S* x = static_cast<const S*>(data);
  T largest;
  const T sum = ExpRow(static_cast<T*>(memory), x, n, &largest);
  MapRow(static_cast<S*>(out), x, n, T{0}, ShiftTwice<T>{hn::Set(d, largest), hn::Set(d, std::log(sum))});
}

template <class S>
void SoftmaxBackward(void* out, const void* grad, const void* output, int64_t n) {
  using T = LaneOf<S>;
  using M = Memory<S>;
  const Tag<T> d;
  S* o = static_cast<S*>(out);
  const S* g = static_cast<const S*>(grad);
  const S* y = static_cast<const S*>(output);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), whole = n / lanes * lanes;
  double sum = 0;
  InLongPieces(whole, [&](int64_t i, int64_t to) HWY_ATTR {
    while (i < to) {
      auto s0 = hn::Zero(d), s1 = s0;
      const int64_t end = HWY_MIN(to, i + 32 * lanes);
      for (; i + 2 * lanes <= end; i += 2 * lanes) {
        s0 = hn::Add(s0, hn::Mul(M::Load(g + i), M::Load(y + i)));
        s1 = hn::Add(s1, hn::Mul(M::Load(g + i + lanes), M::Load(y + i + lanes)));
      }
      for (; i < end; i += lanes) s0 = hn::Add(s0, hn::Mul(M::Load(g + i), M::Load(y + i)));
      sum += Total(hn::Add(s0, s1));
    }
  });
  for (int64_t i = whole; i < n; ++i) sum += static_cast<double>(M::Get(g[i]) * M::Get(y[i]));
  const T s = static_cast<T>(sum);
  const auto all = hn::Set(d, s);
  StoreVectors(o, n, [&](int64_t i) { return hn::Mul(M::Load(y + i), hn::Sub(M::Load(g + i), all)); });
  for (int64_t i = whole; i < n; ++i) o[i] = M::Put(M::Get(y[i]) * (M::Get(g[i]) - s));
}

template <class S>
void LogSoftmaxBackward(void* out, const void* grad, const void* output, int64_t n) {
  using T = LaneOf<S>;
  using M = Memory<S>;
  const Tag<T> d;
  S* o = static_cast<S*>(out);
  const S* g = static_cast<const S*>(grad);
  const S* y = static_cast<const S*>(output);
  const T sum = static_cast<T>(Sum<S>(grad, n));
  const auto s = hn::Set(d, sum);
  int64_t i = StoreVectors(
      o, n, [&](int64_t k) { return hn::Sub(M::Load(g + k), hn::Mul(Exp::Do(M::Load(y + k)), s)); });
  for (; i < n; ++i) o[i] = M::Put(M::Get(g[i]) - std::exp(M::Get(y[i])) * sum);
}

template <class S>
void LayerNorm(void* out, const void* data, const void* weight, const void* bias, int64_t n, double eps,
               void* mean_out, void* rstd_out) {
  using T = LaneOf<S>;
  using M = Memory<S>;
  const Tag<T> d;
  const S* x = static_cast<const S*>(data);
  const T* w = static_cast<const T*>(weight);
  const T* b = static_cast<const T*>(bias);
  S* o = static_cast<S*>(out);
  const double count = static_cast<double>(n);
  const double average = Sum<S>(x, n) / count;
  const double variance = Squares<S>(x, n, average) / count;
  const T mean = static_cast<T>(average);
  const T rstd = static_cast<T>(1 / std::sqrt(variance + eps));
  *static_cast<T*>(mean_out) = mean;
  *static_cast<T*>(rstd_out) = rstd;
  const auto all_mean = hn::Set(d, mean), all_rstd = hn::Set(d, rstd);
  int64_t i = StoreVectors(o, n, [&](int64_t k) {
    auto h = hn::Mul(hn::Sub(M::Load(x + k), all_mean), all_rstd);
    if (w != nullptr) h = hn::Mul(h, hn::LoadU(d, w + k));
    if (b != nullptr) h = hn::Add(h, hn::LoadU(d, b + k));
    return h;
  });
  for (; i < n; ++i) {
    T h = (M::Get(x[i]) - mean) * rstd;
    if (w != nullptr) h *= w[i];
    if (b != nullptr) h += b[i];
    o[i] = M::Put(h);
  }
}

// With h = (x - mean) * rstd and s = grad * weight:
// dx = (s - mean(s) - h * mean(s * h)) * rstd, dweight = grad * h, dbias = grad.
template <class S>
struct LayerNormRow {
  using T = LaneOf<S>;
  using M = Memory<S>;
  using V = hn::Vec<Tag<T>>;
  const S* g;
  const S* x;
  const T* w;
  T mean, rstd;

  // At element i, as a vector and as a scalar.
  HWY_INLINE V Hat(int64_t i) const {
    const Tag<T> d;
    return hn::Mul(hn::Sub(M::Load(x + i), hn::Set(d, mean)), hn::Set(d, rstd));
  }
  HWY_INLINE V Scaled(int64_t i) const {
    const V grad = M::Load(g + i);
    return w != nullptr ? hn::Mul(grad, hn::LoadU(Tag<T>(), w + i)) : grad;
  }
  HWY_INLINE T HatAt(int64_t i) const { return (M::Get(x[i]) - mean) * rstd; }
  HWY_INLINE T ScaledAt(int64_t i) const { return w != nullptr ? M::Get(g[i]) * w[i] : M::Get(g[i]); }

  void AddParameters(double* dweight, double* dbias, int64_t n) const {
    InLongPieces(dweight != nullptr ? n : 0, [&](int64_t begin, int64_t end) HWY_ATTR {
      MICA_IVDEP
      for (int64_t i = begin; i < end; ++i) dweight[i] += static_cast<double>(M::Get(g[i]) * HatAt(i));
    });
    InLongPieces(dbias != nullptr ? n : 0, [&](int64_t begin, int64_t end) HWY_ATTR {
      MICA_IVDEP
      for (int64_t i = begin; i < end; ++i) dbias[i] += static_cast<double>(M::Get(g[i]));
    });
  }

  void Gradient(S* dx, int64_t n) const {
    const Tag<T> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), whole = n / lanes * lanes;
    double sum = 0, dot = 0;
    InLongPieces(whole, [&](int64_t i, int64_t to) HWY_ATTR {
      while (i < to) {
        auto sums = hn::Zero(d), dots = sums;
        for (const int64_t end = HWY_MIN(to, i + 32 * lanes); i < end; i += lanes) {
          const V s = Scaled(i);
          sums = hn::Add(sums, s);
          dots = hn::Add(dots, hn::Mul(s, Hat(i)));
        }
        sum += Total(sums);
        dot += Total(dots);
      }
    });
    for (int64_t i = whole; i < n; ++i) {
      sum += static_cast<double>(ScaledAt(i));
      dot += static_cast<double>(ScaledAt(i) * HatAt(i));
    }
    const T mean_s = static_cast<T>(sum / static_cast<double>(n));
    const T mean_d = static_cast<T>(dot / static_cast<double>(n));
    const V all_s = hn::Set(d, mean_s), all_d = hn::Set(d, mean_d), all_rstd = hn::Set(d, rstd);
    StoreVectors(dx, n, [&](int64_t i) {
      const V rest = hn::Sub(hn::Sub(Scaled(i), all_s), hn::Mul(Hat(i), all_d));
      return hn::Mul(rest, all_rstd);
    });
    for (int64_t i = whole; i < n; ++i) dx[i] = M::Put((ScaledAt(i) - mean_s - HatAt(i) * mean_d) * rstd);
  }
};

template <class S>
void LayerNormBackward(void* dx, double* dweight, double* dbias, const void* grad, const void* x,
                       const void* weight, int64_t n, const void* mean, const void* rstd) {
  using T = LaneOf<S>;
  const LayerNormRow<S> row{static_cast<const S*>(grad), static_cast<const S*>(x),
                            static_cast<const T*>(weight), *static_cast<const T*>(mean),
                            *static_cast<const T*>(rstd)};
  row.AddParameters(dweight, dbias, n);
  if (dx != nullptr) row.Gradient(static_cast<S*>(dx), n);
}

template <class S>
RowLoops MakeRowLoops() {
  return {Softmax<S>,   LogSoftmax<S>,       SoftmaxBackward<S>, LogSoftmaxBackward<S>,
          LayerNorm<S>, LayerNormBackward<S>};
}

const RowLoops* FindRowLoops(int32_t dtype) {
  static const RowLoops loops[] = {MakeRowLoops<Half>(), MakeRowLoops<Brain>(), MakeRowLoops<float>(),
                                   MakeRowLoops<double>()};
  return &loops[dtype - MICA_F16];
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(FindRowLoops);
const RowLoops& RowLoopsOf(int32_t dtype) { return *HWY_DYNAMIC_DISPATCH(FindRowLoops)(dtype); }
}  // namespace mica::cpu
#endif
