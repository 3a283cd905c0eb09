// The folds of one dense row of floats, for kernels that need one within a larger loop.
//
// A float32 sum adds 16 vectors' worth of elements in four accumulators, then
// moves them to double: as exact as pairwise summation, at the speed of memory.
#if defined(MICA_CPU_ROW_FOLDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_CPU_ROW_FOLDS_INL_H_
#undef MICA_CPU_ROW_FOLDS_INL_H_
#else
#define MICA_CPU_ROW_FOLDS_INL_H_
#endif

#include <cmath>
#include <limits>

#include "plugins/cpu/engine/lanes/float_maths-inl.h"
#include "plugins/cpu/engine/lanes/memory-inl.h"
#include "plugins/cpu/engine/threads.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

// S is what memory holds, T its lane.
template <class S>
using LaneOf = typename Memory<S>::Lane;
template <class T>
using Tag = hn::ScalableTag<T>;

// Whether a vector's first elements can be loaded and stored alone.
template <class S>
inline constexpr bool kLoadsSome = HWY_TARGET != HWY_SSE4 && sizeof(S) >= 4;

// Elements of a row between two questions for a Ctrl-C: some milliseconds.
inline constexpr int64_t kLongRow = int64_t{1} << 22;

// Calls f(begin, end) for pieces of [0, n); false once somebody stops them.
template <class F>
HWY_INLINE bool InLongPieces(int64_t n, F f) {
  for (int64_t begin = 0; begin < n; begin += kLongRow) {
    if (begin > 0 && StopAsked()) return false;
    f(begin, HWY_MIN(n, begin + kLongRow));
  }
  return true;
}

HWY_INLINE double Total(VecD v) { return hn::GetLane(hn::SumOfLanes(TagD(), v)); }
// Of floats too the lanes are added as doubles.
HWY_INLINE double Total(VecF v) {
  const hn::Half<TagF> half;
  return Total(
      hn::Add(hn::PromoteTo(TagD(), hn::LowerHalf(half, v)), hn::PromoteTo(TagD(), hn::UpperHalf(half, v))));
}

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

// Calls add(vector) for the sum of f over each stretch of the row, and rest(element's place)
// for those that fill no vector.
template <class S, class F, class Add, class Rest>
HWY_INLINE void SumStretches(const S* x, int64_t n, F f, Add add, Rest rest) {
  const Tag<LaneOf<S>> d;
  using M = Memory<S>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t chunk = 64 * lanes;
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
    add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
  }
  // Of doubles short rows add up one by one, whatever the width of a vector.
  if constexpr (sizeof(LaneOf<S>) == sizeof(float)) {
    for (; i + lanes <= n; i += lanes) add(f(M::Load(x + i)));
    if constexpr (kLoadsSome<S>) {
      if (i == n) return;
      const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
      add(hn::IfThenElseZero(some, f(hn::MaskedLoad(some, d, x + i))));
      return;
    }
  }
  for (; i < n; ++i) rest(i);
}

// The sum of f over the row.
template <class S, class F>
HWY_INLINE double SumBy(const S* x, int64_t n, F f) {
  double total = 0;
  InLongPieces(n, [&](int64_t begin, int64_t end) HWY_ATTR {
    SumStretches(
        x + begin, end - begin, f, [&](auto v) HWY_ATTR { total += Total(v); },
        [&](int64_t i) HWY_ATTR { total += f.Scalar(Memory<S>::Get(x[begin + i])); });
  });
  return total;
}

template <class S>
HWY_INLINE double Sum(const void* x, int64_t n) {
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
  const bool whole = InLongPieces(n, [&](int64_t, int64_t end) HWY_ATTR {
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      p0 = hn::Mul(p0, M::Load(x + i));
      p1 = hn::Mul(p1, M::Load(x + i + lanes));
      p2 = hn::Mul(p2, M::Load(x + i + 2 * lanes));
      p3 = hn::Mul(p3, M::Load(x + i + 3 * lanes));
    }
  });
  if (!whole) return 0;
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

// NaN if any element is.
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
  const auto take = [&](auto v, auto* best) HWY_ATTR {
    *best = kMax ? hn::Max(*best, v) : hn::Min(*best, v);
    nan = hn::Or(nan, hn::VecFromMask(d, hn::IsNaN(v)));
  };
  for (int64_t end = HWY_MIN(n, kLongRow);; end = HWY_MIN(n, end + kLongRow)) {
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      take(M::Load(x + i), &best0);
      take(M::Load(x + i + lanes), &best1);
    }
    if (end == n) break;
    if (StopAsked()) return 0;
  }
  for (; i + lanes <= n; i += lanes) take(M::Load(x + i), &best0);
  if constexpr (kLoadsSome<S>) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    take(hn::IfThenElse(some, hn::MaskedLoad(some, d, x + i), hn::Set(d, start)), &best1);
    i = n;
  }
  bool has_nan = !hn::AllFalse(d, hn::MaskFromVec(nan));
  T best = kMax ? hn::GetLane(hn::MaxOfLanes(d, hn::Max(best0, best1)))
                : hn::GetLane(hn::MinOfLanes(d, hn::Min(best0, best1)));
  for (; i < n; ++i) {
    const T lane = M::Get(x[i]);
    has_nan |= lane != lane;
    if (kMax ? lane > best : lane < best) best = lane;
  }
  return has_nan ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(best);
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

// log(sum(exp(x))), without overflow.
template <class S>
double LogSumExp(const void* x, int64_t n) {
  const double largest = Extreme<S, true>(x, n);
  if (!std::isfinite(largest)) return largest;
  const ShiftedExp<LaneOf<S>> f{static_cast<LaneOf<S>>(largest)};
  return largest + std::log(SumBy(static_cast<const S*>(x), n, f));
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
