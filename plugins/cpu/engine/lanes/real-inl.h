// A vector of doubles that is written as one double is, for the functions of mica/maths/ that are
// valid for both (Note [Vectors by the same text]), and those functions.
#if defined(MICA_CPU_REAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_CPU_REAL_INL_H_
#undef MICA_CPU_REAL_INL_H_
#else
#define MICA_CPU_REAL_INL_H_
#endif

#include <cmath>

#include <mica/maths/digamma.h>
#include <mica/maths/gamma.h>
#include <mica/maths/modified_bessel.h>
#include <mica/maths/normal.h>
#include <mica/maths/zeta.h>
#include "plugins/cpu/engine/lanes/sleef-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

struct RealMask {
  hn::Mask<TagD> m;
};
HWY_INLINE RealMask operator&(RealMask a, RealMask b) { return {hn::And(a.m, b.m)}; }
HWY_INLINE RealMask operator|(RealMask a, RealMask b) { return {hn::Or(a.m, b.m)}; }
HWY_INLINE RealMask operator!(RealMask a) { return {hn::Not(a.m)}; }
HWY_INLINE bool mica_any(RealMask a) { return !hn::AllFalse(TagD(), a.m); }

struct Real {
  VecD v;
  HWY_INLINE Real(VecD x) : v(x) {}
  HWY_INLINE Real(double x) : v(hn::Set(TagD(), x)) {}
};
HWY_INLINE Real operator+(Real a, Real b) { return hn::Add(a.v, b.v); }
HWY_INLINE Real operator-(Real a, Real b) { return hn::Sub(a.v, b.v); }
HWY_INLINE Real operator*(Real a, Real b) { return hn::Mul(a.v, b.v); }
HWY_INLINE Real operator/(Real a, Real b) { return hn::Div(a.v, b.v); }
HWY_INLINE Real operator-(Real a) { return hn::Neg(a.v); }
HWY_INLINE RealMask operator<(Real a, Real b) { return {hn::Lt(a.v, b.v)}; }
HWY_INLINE RealMask operator>(Real a, Real b) { return {hn::Gt(a.v, b.v)}; }
HWY_INLINE RealMask operator<=(Real a, Real b) { return {hn::Le(a.v, b.v)}; }
HWY_INLINE RealMask operator>=(Real a, Real b) { return {hn::Ge(a.v, b.v)}; }
HWY_INLINE RealMask operator==(Real a, Real b) { return {hn::Eq(a.v, b.v)}; }
HWY_INLINE RealMask operator!=(Real a, Real b) { return {hn::Ne(a.v, b.v)}; }
HWY_INLINE Real mica_select(RealMask m, Real yes, Real no) { return hn::IfThenElse(m.m, yes.v, no.v); }
HWY_INLINE Real mica_multiply_add(Real a, Real b, Real c) { return hn::MulAdd(a.v, b.v, c.v); }

HWY_INLINE Real fabs(Real x) { return hn::Abs(x.v); }
HWY_INLINE Real floor(Real x) { return hn::Floor(x.v); }
HWY_INLINE Real rint(Real x) { return hn::Round(x.v); }
HWY_INLINE Real copysign(Real size, Real sign) { return hn::CopySign(size.v, sign.v); }
HWY_INLINE Real exp(Real x) { return SleefExp::Do(x.v); }
HWY_INLINE Real log(Real x) { return SleefLog::Do(x.v); }
HWY_INLINE Real sin(Real x) { return SleefSin::Do(x.v); }
HWY_INLINE Real tan(Real x) { return SleefTan::Do(x.v); }
HWY_INLINE Real sqrt(Real x) { return hn::Sqrt(x.v); }
HWY_INLINE Real expm1(Real x) { return SleefExpm1::Do(x.v); }
HWY_INLINE Real log1p(Real x) { return SleefLog1p::Do(x.v); }
HWY_INLINE Real erfc(Real x) { return SleefErfc::Do(x.v); }
HWY_INLINE Real lgamma(Real x) { return SleefLgamma::Do(x.v); }
HWY_INLINE Real tgamma(Real x) { return SleefTgamma::Do(x.v); }
HWY_INLINE Real pow(Real x, Real y) { return SleefPow::Do(x.v, y.v); }

// Rounded once, on every instruction set.
HWY_INLINE Real fma(Real x, Real y, Real z) {
#if HWY_TARGET != HWY_SSE4
  return hn::MulAdd(x.v, y.v, z.v);
#else
  HWY_ALIGN double a[HWY_MAX_BYTES / sizeof(double)], b[HWY_MAX_BYTES / sizeof(double)],
      c[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(x.v, TagD(), a);
  hn::Store(y.v, TagD(), b);
  hn::Store(z.v, TagD(), c);
  for (size_t i = 0; i < hn::Lanes(TagD()); ++i) a[i] = std::fma(a[i], b[i], c[i]);
  return hn::Load(TagD(), a);
#endif
}

#pragma push_macro("MICA_REAL")
#pragma push_macro("MICA_MASK")
#undef MICA_REAL
#undef MICA_MASK
#define MICA_REAL Real
#define MICA_MASK RealMask
#define MICA_MATHS_VECTORS
#include <mica/maths/real.h>
//
#include <mica/maths/digamma.h>
#include <mica/maths/gamma_table.h>
//
#include <mica/maths/gamma.h>
#include <mica/maths/modified_bessel.h>
#include <mica/maths/normal.h>
#include <mica/maths/zeta.h>
#undef MICA_MATHS_VECTORS
#pragma pop_macro("MICA_REAL")
#pragma pop_macro("MICA_MASK")

// A vector of doubles from memory of float or double, and to it.
HWY_INLINE Real LoadReal(const double* x) { return hn::LoadU(TagD(), x); }
HWY_INLINE Real LoadReal(const float* x) {
  return hn::PromoteTo(TagD(), hn::LoadU(hn::Rebind<float, TagD>(), x));
}
HWY_INLINE void StoreReal(Real y, double* out) { hn::StoreU(y.v, TagD(), out); }
HWY_INLINE void StoreReal(Real y, float* out) {
  const hn::Rebind<float, TagD> narrow;
  hn::StoreU(hn::DemoteTo(narrow, y.v), narrow, out);
}

// out = function(x...), T being float or double. The last lanes, of a vector padded with ones.
template <class T, class F, class... X>
HWY_INLINE void MapReal(F function, T* out, int64_t n, const X*... x) {
  constexpr int64_t kMost = HWY_MAX_BYTES / sizeof(double);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(TagD()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreReal(function(LoadReal(x + i)...), out + i);
  if (i == n) return;
  struct Pad {
    T at[kMost];
    HWY_INLINE Pad(const T* from, int64_t count) {
      for (int64_t k = 0; k < kMost; ++k) at[k] = k < count ? from[k] : T{1};
    }
  };
  T result[kMost];
  StoreReal(function(LoadReal(Pad(x + i, n - i).at)...), result);
  __builtin_memcpy(out + i, result, static_cast<size_t>(n - i) * sizeof(T));
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
