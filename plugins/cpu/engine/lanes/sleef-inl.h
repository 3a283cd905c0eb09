// SLEEF's vector functions under one name for every instruction set.
//
// `SleefExp::Do(v)` calls Sleef_expf8_u10avx2 or its kin for the vector type of
// the surrounding Highway target. The prototypes are our own because sleef.h
// declares only what the command line's -m flags allow.
#if defined(MICA_CPU_SLEEF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_CPU_SLEEF_INL_H_
#undef MICA_CPU_SLEEF_INL_H_
#else
#define MICA_CPU_SLEEF_INL_H_
#endif

#include "hwy/highway.h"

#undef MICA_SLEEF_F
#undef MICA_SLEEF_D
#if HWY_TARGET == HWY_AVX3
#define MICA_SLEEF_F(name, ulp) Sleef_##name##f16_##ulp##avx512f
#define MICA_SLEEF_D(name, ulp) Sleef_##name##d8_##ulp##avx512f
#elif HWY_TARGET == HWY_AVX2
#define MICA_SLEEF_F(name, ulp) Sleef_##name##f8_##ulp##avx2
#define MICA_SLEEF_D(name, ulp) Sleef_##name##d4_##ulp##avx2
#else
#define MICA_SLEEF_F(name, ulp) Sleef_##name##f4_##ulp##sse4
#define MICA_SLEEF_D(name, ulp) Sleef_##name##d2_##ulp##sse4
#endif

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using TagF = hn::ScalableTag<float>;
using TagD = hn::ScalableTag<double>;
using VecF = hn::Vec<TagF>;
using VecD = hn::Vec<TagD>;
using RawF = decltype(VecF::raw);
using RawD = decltype(VecD::raw);

#define MICA_SLEEF_1(Name, name, ulp)                                                  \
  extern "C" RawF MICA_SLEEF_F(name, ulp)(RawF);                                       \
  extern "C" RawD MICA_SLEEF_D(name, ulp)(RawD);                                       \
  struct Sleef##Name {                                                                 \
    static HWY_INLINE VecF Do(VecF x) { return VecF{MICA_SLEEF_F(name, ulp)(x.raw)}; } \
    static HWY_INLINE VecD Do(VecD x) { return VecD{MICA_SLEEF_D(name, ulp)(x.raw)}; } \
  };
#define MICA_SLEEF_2(Name, name, ulp)                                                                 \
  extern "C" RawF MICA_SLEEF_F(name, ulp)(RawF, RawF);                                                \
  extern "C" RawD MICA_SLEEF_D(name, ulp)(RawD, RawD);                                                \
  struct Sleef##Name {                                                                                \
    static HWY_INLINE VecF Do(VecF x, VecF y) { return VecF{MICA_SLEEF_F(name, ulp)(x.raw, y.raw)}; } \
    static HWY_INLINE VecD Do(VecD x, VecD y) { return VecD{MICA_SLEEF_D(name, ulp)(x.raw, y.raw)}; } \
  };

MICA_SLEEF_1(Exp, exp, u10)
MICA_SLEEF_1(Exp2, exp2, u10)
MICA_SLEEF_1(Expm1, expm1, u10)
MICA_SLEEF_1(Log, log, u10)
MICA_SLEEF_1(Log2, log2, u10)
MICA_SLEEF_1(Log10, log10, u10)
MICA_SLEEF_1(Log1p, log1p, u10)
MICA_SLEEF_1(Sin, sin, u10)
MICA_SLEEF_1(Cos, cos, u10)
MICA_SLEEF_1(Tan, tan, u10)
MICA_SLEEF_1(Asin, asin, u10)
MICA_SLEEF_1(Acos, acos, u10)
MICA_SLEEF_1(Atan, atan, u10)
MICA_SLEEF_1(Sinh, sinh, u10)
MICA_SLEEF_1(Cosh, cosh, u10)
MICA_SLEEF_1(Tanh, tanh, u10)
MICA_SLEEF_1(Asinh, asinh, u10)
MICA_SLEEF_1(Acosh, acosh, u10)
MICA_SLEEF_1(Atanh, atanh, u10)
MICA_SLEEF_1(Erf, erf, u10)
MICA_SLEEF_1(Erfc, erfc, u15)
MICA_SLEEF_1(Cbrt, cbrt, u10)
MICA_SLEEF_1(Lgamma, lgamma, u10)
MICA_SLEEF_1(Tgamma, tgamma, u10)
MICA_SLEEF_2(Atan2, atan2, u10)
MICA_SLEEF_2(Pow, pow, u10)
MICA_SLEEF_2(Hypot, hypot, u05)
#undef MICA_SLEEF_1
#undef MICA_SLEEF_2

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
