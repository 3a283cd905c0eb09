// Loops over dense rows; see row_loops.h.
//
// A float32 sum adds 16 vectors' worth of elements in four accumulators, then
// moves them to double: as exact as pairwise summation, at the speed of memory.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mica/plugins/cpu/reduce/row_loops.cc"
#include "hwy/foreach_target.h"
//
#include <cmath>
#include <limits>

#include "mica/plugins/cpu/engine/float_maths-inl.h"
#include "mica/plugins/cpu/engine/memory-inl.h"
#include "mica/plugins/cpu/reduce/row_loops.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

// S is what memory holds, T its lane.
template <class S>
using LaneOf = typename Memory<S>::Lane;
template <class T>
using Tag = hn::ScalableTag<T>;

HWY_INLINE double Total(VecF v) { return static_cast<double>(hn::GetLane(hn::SumOfLanes(TagF(), v))); }
HWY_INLINE double Total(VecD v) { return hn::GetLane(hn::SumOfLanes(TagD(), v)); }

struct Same {
  template <class V>
  HWY_INLINE V operator()(V x) const {
    return x;
  }
  template <class T>
  HWY_INLINE double Scalar(T x) const {
    return static_cast<double>(x);
  }
};

// The sum of f over the row.
template <class S, class F>
double SumBy(const S* x, int64_t n, F f) {
  const Tag<LaneOf<S>> d;
  using M = Memory<S>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t chunk = 64 * lanes;
  double total = 0;
  int64_t i = 0;
  while (n - i >= 4 * lanes) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    const int64_t end = i + HWY_MIN(chunk, n - i) / (4 * lanes) * (4 * lanes);
    for (; i < end; i += 4 * lanes) {
      s0 = hn::Add(s0, f(M::Load(x + i)));
      s1 = hn::Add(s1, f(M::Load(x + i + lanes)));
      s2 = hn::Add(s2, f(M::Load(x + i + 2 * lanes)));
      s3 = hn::Add(s3, f(M::Load(x + i + 3 * lanes)));
    }
    total += Total(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
  }
  for (; i < n; ++i) total += f.Scalar(M::Get(x[i]));
  return total;
}

template <class S>
double Sum(const void* x, int64_t n) {
  return SumBy(static_cast<const S*>(x), n, Same());
}

template <class S>
double Product(const void* data, int64_t n) {
  using M = Memory<S>;
  const Tag<LaneOf<S>> d;
  const S* x = static_cast<const S*>(data);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto p0 = hn::Set(d, 1), p1 = p0, p2 = p0, p3 = p0;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    p0 = hn::Mul(p0, M::Load(x + i));
    p1 = hn::Mul(p1, M::Load(x + i + lanes));
    p2 = hn::Mul(p2, M::Load(x + i + 2 * lanes));
    p3 = hn::Mul(p3, M::Load(x + i + 3 * lanes));
  }
  HWY_ALIGN LaneOf<S> parts[HWY_MAX_BYTES / sizeof(LaneOf<S>)];
  hn::Store(hn::Mul(hn::Mul(p0, p1), hn::Mul(p2, p3)), d, parts);
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    for (int64_t k = 0; k < half; ++k) parts[k] *= parts[k + half];
  LaneOf<S> product = parts[0];
  for (; i < n; ++i) product *= M::Get(x[i]);
  return static_cast<double>(product);
}

template <class T>
struct SquaredDifference {
  T mean;
  template <class V>
  HWY_INLINE V operator()(V x) const {
    const V difference = hn::Sub(x, hn::Set(Tag<T>(), mean));
    return hn::Mul(difference, difference);
  }
  HWY_INLINE double Scalar(T x) const {
    const double difference = static_cast<double>(x - mean);
    return difference * difference;
  }
};

// The mean rounds to a lane; its error goes out by sum² / n of the differences.
template <class S>
double Squares(const void* data, int64_t n, double mean) {
  using T = LaneOf<S>;
  const T rounded = static_cast<T>(mean);
  const double error = mean - static_cast<double>(rounded);
  return SumBy(static_cast<const S*>(data), n, SquaredDifference<T>{rounded}) -
         error * error * static_cast<double>(n);
}

template <class S, bool kMax>
double Extreme(const void* data, int64_t n) {
  using T = LaneOf<S>;
  using M = Memory<S>;
  const Tag<T> d;
  const S* x = static_cast<const S*>(data);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T start = kMax ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
  auto best0 = hn::Set(d, start), best1 = best0;
  auto nan = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = M::Load(x + i);
    const auto b = M::Load(x + i + lanes);
    best0 = kMax ? hn::Max(best0, a) : hn::Min(best0, a);
    best1 = kMax ? hn::Max(best1, b) : hn::Min(best1, b);
    // x - x is 0 but for NaN and infinities; those make NaN, sorted out below.
    nan = hn::Add(nan, hn::Add(hn::Sub(a, a), hn::Sub(b, b)));
  }
  const auto is_nan = [](T lane) { return lane != lane; };
  bool has_nan = false;
  if (!hn::AllTrue(d, hn::Eq(nan, nan))) {
    for (int64_t k = 0; k < i; ++k) has_nan |= is_nan(M::Get(x[k]));
  }
  T best = kMax ? hn::GetLane(hn::MaxOfLanes(d, hn::Max(best0, best1)))
                : hn::GetLane(hn::MinOfLanes(d, hn::Min(best0, best1)));
  for (; i < n; ++i) {
    const T lane = M::Get(x[i]);
    has_nan |= is_nan(lane);
    if (kMax ? lane > best : lane < best) best = lane;
  }
  return has_nan ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(best);
}

// Stores f(i) for each whole vector of n elements; how many elements that were.
template <class S, class F>
HWY_INLINE int64_t StoreVectors(S* out, int64_t n, F f) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Tag<LaneOf<S>>()));
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto first = f(i);
    Memory<S>::StoreTwo(first, f(i + lanes), out + i);
  }
  for (; i + lanes <= n; i += lanes) Memory<S>::Store(f(i), out + i);
  return i;
}

// Applies f to the vectors of a row, the rest by a padded copy; f returns what is
// stored.
template <class Out, class In, class F>
HWY_INLINE void MapRow(Out* out, const In* x, int64_t n, LaneOf<In> pad_value, F f) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Tag<LaneOf<In>>()));
  const int64_t i = StoreVectors(out, n, [&](int64_t at) { return f(Memory<In>::Load(x + at)); });
  if (i < n) {
    constexpr int64_t kPad = HWY_MAX_BYTES / sizeof(LaneOf<In>);
    HWY_ALIGN In pad[kPad];
    HWY_ALIGN Out result[kPad];
    for (int64_t k = n - i; k < lanes; ++k) pad[k] = Memory<In>::Put(pad_value);
    __builtin_memcpy(pad, x + i, static_cast<size_t>(n - i) * sizeof(In));
    Memory<Out>::Store(f(Memory<In>::Load(pad)), result);
    __builtin_memcpy(out + i, result, static_cast<size_t>(n - i) * sizeof(Out));
  }
}

template <class T>
struct ShiftedExp {
  T shift;
  template <class V>
  HWY_INLINE V operator()(V x) const {
    return Exp::Do(hn::Sub(x, hn::Set(Tag<T>(), shift)));
  }
  HWY_INLINE double Scalar(T x) const { return std::exp(static_cast<double>(x - shift)); }
};

template <class S>
double LogSumExp(const void* x, int64_t n) {
  const double largest = Extreme<S, true>(x, n);
  if (!std::isfinite(largest)) return largest;
  const ShiftedExp<LaneOf<S>> f{static_cast<LaneOf<S>>(largest)};
  return largest + std::log(SumBy(static_cast<const S*>(x), n, f));
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
  for (int64_t i = 0; i < whole;) {
    auto s0 = hn::Zero(d), s1 = s0;
    const int64_t end = HWY_MIN(whole, i + 32 * lanes);
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      s0 = hn::Add(s0, hn::Mul(M::Load(g + i), M::Load(y + i)));
      s1 = hn::Add(s1, hn::Mul(M::Load(g + i + lanes), M::Load(y + i + lanes)));
    }
    for (; i < end; i += lanes) s0 = hn::Add(s0, hn::Mul(M::Load(g + i), M::Load(y + i)));
    sum += Total(hn::Add(s0, s1));
  }
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
    if (dweight != nullptr) {
      MICA_IVDEP
      for (int64_t i = 0; i < n; ++i) dweight[i] += static_cast<double>(M::Get(g[i]) * HatAt(i));
    }
    if (dbias != nullptr) {
      MICA_IVDEP
      for (int64_t i = 0; i < n; ++i) dbias[i] += static_cast<double>(M::Get(g[i]));
    }
  }

  void Gradient(S* dx, int64_t n) const {
    const Tag<T> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), whole = n / lanes * lanes;
    double sum = 0, dot = 0;
    for (int64_t i = 0; i < whole;) {
      auto sums = hn::Zero(d), dots = sums;
      for (const int64_t end = HWY_MIN(whole, i + 32 * lanes); i < end; i += lanes) {
        const V s = Scaled(i);
        sums = hn::Add(sums, s);
        dots = hn::Add(dots, hn::Mul(s, Hat(i)));
      }
      sum += Total(sums);
      dot += Total(dots);
    }
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
  return {Sum<S>,       Product<S>,          Squares<S>,    Extreme<S, true>,   Extreme<S, false>,
          LogSumExp<S>, Softmax<S>,          LogSoftmax<S>, SoftmaxBackward<S>, LogSoftmaxBackward<S>,
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
