// The softmax of attention row by row, compiled for each instruction set.
//
// The exponential of float32 is a polynomial of degree 7 (the coefficients of Cephes's
// expf) after taking out the power of two; its arguments are never positive, and its
// error is at most 2 ULP down to the smallest normal number, below which it is 0.
#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/attention/attention_rows.cc"
#include <hwy/foreach_target.h>
// After foreach_target, which includes this file once for each instruction set.
#include <hwy/highway.h>

#include "plugins/cpu/attention/attention.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// exp(x) for x <= 0; minus infinity gives 0, NaN stays.
HWY_INLINE V Exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V least = hn::Set(d, -87.33654F);
  const auto gone = hn::Lt(x, least);
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504F)));
  // ln 2 in two parts, so that n * the first is exact.
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693145752F), x);
  r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6F), r);
  V p = hn::Set(d, 1.9875691500e-4F);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1F));
  p = hn::MulAdd(p, hn::Mul(r, r), r);
  p = hn::Add(p, hn::Set(d, 1.0F));
  const V whole = hn::IfThenElse(hn::Or(gone, hn::IsNaN(x)), hn::Zero(d), n);
  const auto power = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, whole), hn::Set(di, 127)));
  return hn::IfThenZeroElse(gone, hn::Mul(p, hn::BitCast(d, power)));
}

// Calls f(i) for whole vectors; the rest one element at a time as a vector of one.
template <class Whole, class Single>
HWY_INLINE void ForVectors(int64_t n, Whole whole, Single single) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) whole(i);
  for (; i < n; ++i) single(i);
}
float ExpOne(float x) {
  const D d;
  return hn::GetLane(Exp(d, hn::Set(d, x)));
}

float MaximumOf(const float* x, int64_t n, float most) {
  const D d;
  V best = hn::Set(d, most);
  ForVectors(
      n,
      [&](int64_t i) {
        const V v = hn::LoadU(d, x + i);
        best = hn::IfThenElse(hn::Or(hn::Gt(v, best), hn::IsNaN(v)), v, best);
      },
      [&](int64_t i) { most = x[i] > most || std::isnan(x[i]) ? x[i] : most; });
  alignas(64) float parts[HWY_MAX_BYTES / 4];
  hn::Store(best, d, parts);
  for (size_t k = 0; k < hn::Lanes(d); ++k) most = parts[k] > most || std::isnan(parts[k]) ? parts[k] : most;
  return most;
}

// x = exp(x - most), and the sum.
float ExpSum(float* x, int64_t n, float most) {
  const D d;
  const V shift = hn::Set(d, most);
  V sum = hn::Zero(d);
  float rest = 0;
  ForVectors(
      n,
      [&](int64_t i) {
        const V e = Exp(d, hn::Sub(hn::LoadU(d, x + i), shift));
        hn::StoreU(e, d, x + i);
        sum = hn::Add(sum, e);
      },
      [&](int64_t i) { rest += x[i] = ExpOne(x[i] - most); });
  return rest + hn::GetLane(hn::SumOfLanes(d, sum));
}

double MaximumOf(const double* x, int64_t n, double most) {
  for (int64_t i = 0; i < n; ++i) most = x[i] > most || std::isnan(x[i]) ? x[i] : most;
  return most;
}
double ExpSum(double* x, int64_t n, double most) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - most);
  return sum;
}

template <class T>
T Accumulate(T* scores, int64_t n, T* maximum, T* sum) {
  const T most = MaximumOf(scores, n, *maximum);
  if (most == -std::numeric_limits<T>::infinity()) {  // nothing but masked elements so far
    std::fill(scores, scores + n, T(0));
    return 1;
  }
  const T factor = std::exp(*maximum - most);
  *sum = *sum * factor + ExpSum(scores, n, most);
  *maximum = most;
  return factor;
}

template <class T>
void Probabilities(T* scores, int64_t n, T log_sum) {
  if (std::isinf(log_sum))
    std::fill(scores, scores + n, T(0));
  else
    ExpSum(scores, n, log_sum);
}

template <class T>
void ScoreGradient(const T* p, T* gradient, int64_t n, T delta) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) gradient[i] = p[i] * (gradient[i] - delta);
}
template <class T>
void Scale(T* row, int64_t n, T factor) {
  for (int64_t i = 0; i < n; ++i) row[i] *= factor;
}
template <class T>
void Add(T* row, const T* more, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) row[i] += more[i];
}

template <class T>
const AttentionRows<T>* Table() {
  static const AttentionRows<T> rows = {Accumulate<T>, Probabilities<T>, ScoreGradient<T>, Scale<T>, Add<T>};
  return &rows;
}
const AttentionRows<float>* TableF32() { return Table<float>(); }
const AttentionRows<double>* TableF64() { return Table<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace mica::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {

HWY_EXPORT(TableF32);
HWY_EXPORT(TableF64);
const AttentionRows<float>& RowsOf(float) {
  static const AttentionRows<float>& best = *HWY_DYNAMIC_DISPATCH(TableF32)();
  return best;
}
const AttentionRows<double>& RowsOf(double) {
  static const AttentionRows<double>& best = *HWY_DYNAMIC_DISPATCH(TableF64)();
  return best;
}

}  // namespace mica::cpu
#endif
