// The inverse of erf, in double lanes whatever memory holds.
//
// With w = -log(1 - x^2), erfinv(x) / x is smooth: a polynomial of w below 5, of
// sqrt(w) from there on, two more for double, since 1 - x^2 gets nearer to zero there.
// The coefficients are Chebyshev interpolants computed with mpmath to 1e-9, so that
// rounding to float32 is all the error; float64 adds one step of Halley's rule on erf, or
// on erfc where erf is near 1.
#if defined(MICA_CPU_ERFINV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_CPU_ERFINV_INL_H_
#undef MICA_CPU_ERFINV_INL_H_
#else
#define MICA_CPU_ERFINV_INL_H_
#endif

#include <limits>

#include "plugins/cpu/engine/lanes/sleef-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

// c[0] + c[1] t + ..., where t leads [low, high] to [-1, 1].
template <size_t kCount>
HWY_INLINE VecD ChebyshevRange(VecD x, double low, double high, const double (&c)[kCount]) {
  const TagD d;
  const VecD t = hn::MulAdd(x, hn::Set(d, 2 / (high - low)), hn::Set(d, -(high + low) / (high - low)));
  // Even and odd powers apart: a chain of half the length.
  static_assert(kCount % 2 == 0);
  const VecD square = hn::Mul(t, t);
  VecD even = hn::Set(d, c[kCount - 2]), odd = hn::Set(d, c[kCount - 1]);
  for (size_t i = kCount - 2; i > 0; i -= 2) {
    even = hn::MulAdd(even, square, hn::Set(d, c[i - 2]));
    odd = hn::MulAdd(odd, square, hn::Set(d, c[i - 1]));
  }
  return hn::MulAdd(odd, t, even);
}

// log of positive normal numbers to 1e-9: x = 2^e m with m in [2/3, 4/3), and log(m) is
// the series of 2 atanh((m - 1) / (m + 1)).
HWY_INLINE VecD RoughLog(VecD x) {
  const TagD d;
  const hn::RebindToSigned<TagD> di;
  const auto bits = hn::BitCast(di, x);
  const auto two_thirds = hn::BitCast(di, hn::Set(d, 2.0 / 3));
  const auto e = hn::And(hn::Sub(bits, two_thirds), hn::Set(di, static_cast<int64_t>(0xfff) << 52));
  const VecD m = hn::BitCast(d, hn::Sub(bits, e));
  // The exponent, in the top 12 bits, as a number: through the low bits of 1.5 * 2^52.
  const VecD magic = hn::Set(d, 6755399441055744.0);
  const auto whole = hn::Add(hn::BitCast(di, magic), hn::ShiftRight<52>(e));
  const VecD exponent = hn::Sub(hn::BitCast(d, whole), magic);
  const VecD one = hn::Set(d, 1.0);
  const VecD s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const VecD square = hn::Mul(s, s);
  VecD series = hn::Set(d, 2.0 / 11);
  for (const double c : {2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0})
    series = hn::MulAdd(series, square, hn::Set(d, c));
  return hn::MulAdd(exponent, hn::Set(d, 0.69314718055994530942), hn::Mul(s, series));
}

// To 1e-9, for |x| < 1; `wide` says that 1 - |x| may be below 2^-24.
template <bool kWide>
HWY_INLINE VecD ErfinvByPolynomials(VecD x) {
  static constexpr double kCenter[] = {
      1.5014093517481764,     0.6166006918714606,      -0.026108281752861017,   -0.01957356183368391,
      0.008525942391231351,   -0.00048789063575624566, -0.00083649077386090522, 0.00029216901150871938,
      2.5182562318746536e-05, -4.1434331022622463e-05, 4.1395442999401022e-06,  2.9436533724075729e-06};
  static constexpr double kTail[] = {2.9332316704170478,     0.90302050492155117,    0.0060428023499337052,
                                     -0.0041528570065915574, 0.0027025414726079972,  -0.0016017047370377319,
                                     0.00070608385854125722, -0.0001489622518525914, -6.5044164376768581e-05,
                                     6.2221250246316032e-05, -9.214033572553539e-06, -4.2459722435199671e-06};
  static constexpr double kFar[] = {4.9761913854575095,      1.1365383120355101,     -0.00026892605856403595,
                                    -0.00025625149834270015, 0.00010291467013221518, -2.9659191255977261e-05,
                                    8.6594575459306015e-06,  -2.1577523727559764e-06};
  const TagD d;
  const VecD one = hn::Set(d, 1.0);
  const VecD w = hn::Neg(RoughLog(hn::Mul(hn::Sub(one, x), hn::Add(one, x))));
  VecD ratio = ChebyshevRange(w, 0, 5, kCenter);
  const auto tail = hn::Gt(w, hn::Set(d, 5.0));
  if (HWY_UNLIKELY(!hn::AllFalse(d, tail))) {
    const VecD root = hn::Sqrt(hn::Max(w, hn::Zero(d)));
    VecD outer = ChebyshevRange(root, 2.2, 4, kTail);
    if (kWide)
      outer = hn::IfThenElse(hn::Gt(root, hn::Set(d, 4.0)), ChebyshevRange(root, 4, 6.25, kFar), outer);
    ratio = hn::IfThenElse(tail, outer, ratio);
  }
  return hn::Mul(x, ratio);
}

// y with |x| = erf(|y|) nearer by one step.
HWY_INLINE VecD HalleyStep(VecD x, VecD y) {
  const TagD d;
  const VecD one = hn::Set(d, 1.0), size = hn::Abs(x), at = hn::Abs(y);
  VecD error = hn::Sub(SleefErf::Do(at), size);
  const auto outer = hn::Gt(size, hn::Set(d, 0.75));
  if (!hn::AllFalse(d, outer))
    error = hn::IfThenElse(outer, hn::Sub(hn::Sub(one, size), SleefErfc::Do(at)), error);
  // By the derivative, 2 / sqrt(pi) exp(-y^2).
  const VecD step =
      hn::Mul(error, hn::Mul(hn::Set(d, 0.88622692545275801365), SleefExp::Do(hn::Mul(at, at))));
  return hn::CopySign(hn::Sub(at, hn::Div(step, hn::MulAdd(at, step, one))), x);
}

template <bool kWide>
HWY_INLINE VecD ErfinvOf(VecD x) {
  const TagD d;
  const VecD one = hn::Set(d, 1.0), size = hn::Abs(x);
  VecD y = ErfinvByPolynomials<kWide>(x);
  if (kWide) y = HalleyStep(x, y);
  const VecD infinity = hn::CopySign(hn::Set(d, std::numeric_limits<double>::infinity()), x);
  y = hn::IfThenElse(hn::Eq(size, one), infinity, y);
  // NaN is not below anything.
  return hn::IfThenElse(hn::Le(size, one), y, hn::Set(d, std::numeric_limits<double>::quiet_NaN()));
}

HWY_INLINE VecD ErfinvAt(const double* x) { return ErfinvOf<true>(hn::LoadU(TagD(), x)); }
HWY_INLINE VecD ErfinvAt(const float* x) {
  return ErfinvOf<false>(hn::PromoteTo(TagD(), hn::LoadU(hn::Rebind<float, TagD>(), x)));
}
HWY_INLINE void StoreErfinv(VecD y, double* out) { hn::StoreU(y, TagD(), out); }
HWY_INLINE void StoreErfinv(VecD y, float* out) {
  const hn::Rebind<float, TagD> narrow;
  hn::StoreU(hn::DemoteTo(narrow, y), narrow, out);
}

// out = erfinv(x), T being float or double.
template <class T>
HWY_INLINE void MapErfinv(const T* x, T* out, int64_t n) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(TagD()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreErfinv(ErfinvAt(x + i), out + i);
  if (i == n) return;
  T pad[HWY_MAX_BYTES / sizeof(double)] = {};
  const size_t rest = static_cast<size_t>(n - i) * sizeof(T);
  __builtin_memcpy(pad, x + i, rest);
  StoreErfinv(ErfinvAt(pad), pad);
  __builtin_memcpy(out + i, pad, rest);
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
