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

#include "mica/plugins/cpu/engine/loops-inl.h"
#include "mica/plugins/cpu/engine/sleef-inl.h"
#include "mica/plugins/cpu/reduce/row_loops.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

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
template <class T, class F>
double SumBy(const T* x, int64_t n, F f) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t chunk = 64 * lanes;
  double total = 0;
  int64_t i = 0;
  while (n - i >= 4 * lanes) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    const int64_t end = i + HWY_MIN(chunk, n - i) / (4 * lanes) * (4 * lanes);
    for (; i < end; i += 4 * lanes) {
      s0 = hn::Add(s0, f(hn::LoadU(d, x + i)));
      s1 = hn::Add(s1, f(hn::LoadU(d, x + i + lanes)));
      s2 = hn::Add(s2, f(hn::LoadU(d, x + i + 2 * lanes)));
      s3 = hn::Add(s3, f(hn::LoadU(d, x + i + 3 * lanes)));
    }
    total += Total(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
  }
  for (; i < n; ++i) total += f.Scalar(x[i]);
  return total;
}

template <class T>
double Sum(const void* x, int64_t n) {
  return SumBy(static_cast<const T*>(x), n, Same());
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

// The mean rounds to T; its error goes out by sum² / n of the differences.
template <class T>
double Squares(const void* data, int64_t n, double mean) {
  const T* x = static_cast<const T*>(data);
  const T rounded = static_cast<T>(mean);
  const double error = mean - static_cast<double>(rounded);
  return SumBy(x, n, SquaredDifference<T>{rounded}) - error * error * static_cast<double>(n);
}

template <class T, bool kMax>
double Extreme(const void* data, int64_t n) {
  const Tag<T> d;
  const T* x = static_cast<const T*>(data);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T start = kMax ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
  auto best0 = hn::Set(d, start), best1 = best0;
  auto nan = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = hn::LoadU(d, x + i);
    const auto b = hn::LoadU(d, x + i + lanes);
    best0 = kMax ? hn::Max(best0, a) : hn::Min(best0, a);
    best1 = kMax ? hn::Max(best1, b) : hn::Min(best1, b);
    // x - x is 0 but for NaN and infinities; those make NaN, sorted out below.
    nan = hn::Add(nan, hn::Add(hn::Sub(a, a), hn::Sub(b, b)));
  }
  bool has_nan = false;
  if (!hn::AllTrue(d, hn::Eq(nan, nan))) {
    for (int64_t k = 0; k < i; ++k) has_nan |= x[k] != x[k];
  }
  T best = kMax ? hn::GetLane(hn::MaxOfLanes(d, hn::Max(best0, best1)))
                : hn::GetLane(hn::MinOfLanes(d, hn::Min(best0, best1)));
  for (; i < n; ++i) {
    has_nan |= x[i] != x[i];
    if (kMax ? x[i] > best : x[i] < best) best = x[i];
  }
  return has_nan ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(best);
}

// Applies f(vector, index of its first element) to the row, the rest by a padded
// copy; f returns what is stored.
template <class T, class F>
HWY_INLINE void MapRow(T* out, const T* x, int64_t n, T pad_value, F f) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, x + i)), d, out + i);
  if (i < n) {
    HWY_ALIGN T pad[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(hn::Set(d, pad_value), d, pad);
    __builtin_memcpy(pad, x + i, static_cast<size_t>(n - i) * sizeof(T));
    hn::Store(f(hn::Load(d, pad)), d, pad);
    __builtin_memcpy(out + i, pad, static_cast<size_t>(n - i) * sizeof(T));
  }
}

// Pads are -inf, whose exponential adds nothing.
template <class T>
struct ExpAndSum {
  hn::Vec<Tag<T>> shift, total;
  HWY_INLINE hn::Vec<Tag<T>> operator()(hn::Vec<Tag<T>> x) {
    const auto e = SleefExp::Do(hn::Sub(x, shift));
    total = hn::Add(total, e);
    return e;
  }
};
template <class T>
struct Scale {
  hn::Vec<Tag<T>> factor;
  HWY_INLINE hn::Vec<Tag<T>> operator()(hn::Vec<Tag<T>> x) const { return hn::Mul(x, factor); }
};
template <class T>
struct Shift {
  hn::Vec<Tag<T>> amount;
  HWY_INLINE hn::Vec<Tag<T>> operator()(hn::Vec<Tag<T>> x) const { return hn::Sub(x, amount); }
};

template <class T>
T ExpRow(T* out, const T* x, int64_t n, T* largest) {
  const Tag<T> d;
  *largest = static_cast<T>(Extreme<T, true>(x, n));
  ExpAndSum<T> f{hn::Set(d, *largest), hn::Zero(d)};
  MapRow<T, ExpAndSum<T>&>(out, x, n, -std::numeric_limits<T>::infinity(), f);
  return hn::GetLane(hn::SumOfLanes(d, f.total));
}

template <class T>
void Softmax(void* out, const void* x, int64_t n) {
  T largest;
  T* o = static_cast<T*>(out);
  const T sum = ExpRow(o, static_cast<const T*>(x), n, &largest);
  MapRow(o, o, n, T{0}, Scale<T>{hn::Set(Tag<T>(), T{1} / sum)});
}

template <class T>
void LogSoftmax(void* out, const void* x, int64_t n) {
  T largest;
  T* o = static_cast<T*>(out);
  const T* in = static_cast<const T*>(x);
  const T sum = ExpRow(o, in, n, &largest);
  const T log = std::log(sum);
  // Two steps as x - m - log(s) has them: m alone may dwarf log(s).
  MapRow(o, in, n, T{0}, Shift<T>{hn::Set(Tag<T>(), largest)});
  MapRow(o, o, n, T{0}, Shift<T>{hn::Set(Tag<T>(), log)});
}

template <class T>
void SoftmaxBackward(void* out, const void* grad, const void* output, int64_t n) {
  T* o = static_cast<T*>(out);
  const T* g = static_cast<const T*>(grad);
  const T* y = static_cast<const T*>(output);
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += 256) {
    T lanes[16] = {};
    const int64_t end = HWY_MIN(n, begin + 256);
    int64_t i = begin;
    for (; i + 16 <= end; i += 16) {
      for (int l = 0; l < 16; ++l) lanes[l] += g[i + l] * y[i + l];
    }
    for (; i < end; ++i) lanes[0] += g[i] * y[i];
    for (const T lane : lanes) sum += static_cast<double>(lane);
  }
  const T s = static_cast<T>(sum);
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) o[i] = y[i] * (g[i] - s);
}

template <class T>
void LogSoftmaxBackward(void* out, const void* grad, const void* output, int64_t n) {
  const Tag<T> d;
  T* o = static_cast<T*>(out);
  const T* g = static_cast<const T*>(grad);
  const T* y = static_cast<const T*>(output);
  const T sum = static_cast<T>(Sum<T>(grad, n));
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto s = hn::Set(d, sum);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Sub(hn::LoadU(d, g + i), hn::Mul(SleefExp::Do(hn::LoadU(d, y + i)), s)), d, o + i);
  }
  for (; i < n; ++i) o[i] = g[i] - std::exp(y[i]) * sum;
}

template <class T>
void LayerNorm(void* out, const void* data, const void* weight, const void* bias, int64_t n, double eps,
               void* mean_out, void* rstd_out) {
  const T* x = static_cast<const T*>(data);
  const T* w = static_cast<const T*>(weight);
  const T* b = static_cast<const T*>(bias);
  T* o = static_cast<T*>(out);
  const double count = static_cast<double>(n);
  const double average = Sum<T>(x, n) / count;
  const double variance = Squares<T>(x, n, average) / count;
  const T mean = static_cast<T>(average);
  const T rstd = static_cast<T>(1 / std::sqrt(variance + eps));
  *static_cast<T*>(mean_out) = mean;
  *static_cast<T*>(rstd_out) = rstd;
  if (w != nullptr && b != nullptr) {
    MICA_IVDEP
    for (int64_t i = 0; i < n; ++i) o[i] = (x[i] - mean) * rstd * w[i] + b[i];
  } else {
    MICA_IVDEP
    for (int64_t i = 0; i < n; ++i) o[i] = (x[i] - mean) * rstd;
    if (w != nullptr) {
      MICA_IVDEP
      for (int64_t i = 0; i < n; ++i) o[i] *= w[i];
    }
    if (b != nullptr) {
      MICA_IVDEP
      for (int64_t i = 0; i < n; ++i) o[i] += b[i];
    }
  }
}

// With h = (x - mean) * rstd and s = grad * weight:
// dx = (s - mean(s) - h * mean(s * h)) * rstd, dweight = grad * h, dbias = grad.
template <class T>
void LayerNormBackward(void* dx, double* dweight, double* dbias, const void* grad, const void* data,
                       const void* weight, int64_t n, const void* mean_in, const void* rstd_in) {
  const T* g = static_cast<const T*>(grad);
  const T* x = static_cast<const T*>(data);
  const T* w = static_cast<const T*>(weight);
  const T mean = *static_cast<const T*>(mean_in);
  const T rstd = *static_cast<const T*>(rstd_in);
  if (dweight != nullptr) {
    MICA_IVDEP
    for (int64_t i = 0; i < n; ++i) dweight[i] += static_cast<double>(g[i] * ((x[i] - mean) * rstd));
  }
  if (dbias != nullptr) {
    MICA_IVDEP
    for (int64_t i = 0; i < n; ++i) dbias[i] += static_cast<double>(g[i]);
  }
  if (dx == nullptr) return;
  double sum = 0, dot = 0;
  for (int64_t begin = 0; begin < n; begin += 256) {
    T sums[16] = {}, dots[16] = {};
    const int64_t end = HWY_MIN(n, begin + 256);
    int64_t i = begin;
    for (; i + 16 <= end; i += 16) {
      for (int l = 0; l < 16; ++l) {
        const T s = w != nullptr ? g[i + l] * w[i + l] : g[i + l];
        sums[l] += s;
        dots[l] += s * ((x[i + l] - mean) * rstd);
      }
    }
    for (; i < end; ++i) {
      const T s = w != nullptr ? g[i] * w[i] : g[i];
      sums[0] += s;
      dots[0] += s * ((x[i] - mean) * rstd);
    }
    for (int l = 0; l < 16; ++l) {
      sum += static_cast<double>(sums[l]);
      dot += static_cast<double>(dots[l]);
    }
  }
  const T mean_s = static_cast<T>(sum / static_cast<double>(n));
  const T mean_d = static_cast<T>(dot / static_cast<double>(n));
  T* o = static_cast<T*>(dx);
  if (w != nullptr) {
    MICA_IVDEP
    for (int64_t i = 0; i < n; ++i) o[i] = (g[i] * w[i] - mean_s - (x[i] - mean) * rstd * mean_d) * rstd;
  } else {
    MICA_IVDEP
    for (int64_t i = 0; i < n; ++i) o[i] = (g[i] - mean_s - (x[i] - mean) * rstd * mean_d) * rstd;
  }
}

template <class T>
RowLoops MakeRowLoops() {
  return {Sum<T>,        Squares<T>,         Extreme<T, true>,      Extreme<T, false>, Softmax<T>,
          LogSoftmax<T>, SoftmaxBackward<T>, LogSoftmaxBackward<T>, LayerNorm<T>,      LayerNormBackward<T>};
}

const RowLoops* FindRowLoops(bool wide) {
  static const RowLoops loops[] = {MakeRowLoops<float>(), MakeRowLoops<double>()};
  return &loops[wide];
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(FindRowLoops);
const RowLoops& RowLoopsOf(int32_t dtype) { return *HWY_DYNAMIC_DISPATCH(FindRowLoops)(dtype == MICA_F64); }
}  // namespace mica::cpu
#endif
