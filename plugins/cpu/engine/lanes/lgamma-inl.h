// log |gamma|, in double lanes whatever memory holds.
//
// For float32, right of 0: on [5/8, 3] three polynomials about the zeros at 1 and 2; below, one step of the
// recurrence; up to 10 the logarithm of the steps' product on top; then Stirling's series. Left of 0
// reflection, whose two terms cancel near each zero: enough for float32. float64 is SLEEF's, which computes
// in pairs of doubles (off by 9e-18 where it crosses zero left of 0, two and a half times the time), and
// where the value is below 1/32 there the C library's long double.
//
// The tables are polynomials through Chebyshev nodes, computed with mpmath to 60 digits.
#if defined(MICA_CPU_LGAMMA_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_CPU_LGAMMA_INL_H_
#undef MICA_CPU_LGAMMA_INL_H_
#else
#define MICA_CPU_LGAMMA_INL_H_
#endif

#include <math.h>

#include <cmath>
#include <limits>

#include "plugins/cpu/engine/lanes/real-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

// For x in [5/8, 3]: the distance from the zero at 1 or 2 times a polynomial, highest power first, whose
// last coefficient is a sum of two doubles.
HWY_INLINE Real LgammaNear(Real x) {
  static constexpr int kCount = 22;
  static constexpr double kTo1_25[kCount] = {
      0.31700636429830387, -0.31066997677546737, 0.13482633109074743, -0.1334382057316528,
      0.17195439197247467, -0.1706415992931919,  0.1647481282116456,  -0.1647978826070948,
      0.16601256387934957, -0.1676657125063259,  0.17033691659865233, -0.17431096875377777,
      0.1799140356693879,  -0.18766838092769872, 0.1984040479814725,  -0.2135233021545667,
      0.23561060796136796, -0.2700172594896356,  0.3298274126394573,  -0.45672977703589546,
      0.8759399478780954,  -0.6302544277533169};
  static constexpr double kTo2[kCount] = {
      1.1247888464971304e-06, -1.9134816609599796e-06, 2.392469648845448e-06,  -4.095993219363549e-06,
      7.323298180083875e-06,  -1.2608487550852603e-05, 2.1731492931211222e-05, -3.7706509378435056e-05,
      6.57424376567956e-05,   -0.00011524990985149924, 0.00020337506315674505, -0.0003617655760690219,
      0.0006499292478473926,  -0.0011825185559814835,  0.002187855843923971,   -0.004142156126218689,
      0.008107259448537516,   -0.016699488957579185,   0.037457903451246076,   -0.09871684989906274,
      0.3835727678080557,     0.2911310233514543};
  static constexpr double kTo3[kCount] = {
      1.214346919371651e-10,  -3.17705327537256e-10,   6.660912195615989e-10,  -1.752998609797403e-09,
      4.726106265594134e-09,  -1.2512466268440571e-08, 3.321815973856035e-08,  -8.866108461384663e-08,
      2.3785169093348319e-07, -6.419206852145261e-07,  1.7450574221937719e-06, -4.7864094734900064e-06,
      1.3275788959380393e-05, -3.735336717685532e-05,  0.00010710020423548936, -0.00031505925044112316,
      0.00096109792878612,    -0.003095182293615822,   0.010877001514193413,   -0.04480584269738461,
      0.2675817993988097,     0.5693657409458384};
  const RealMask first = x<1.25, last = x> 2;
  const auto choose = [&](double to_1_25, double to_2, double to_3)
                          HWY_ATTR { return mica_select(first, to_1_25, mica_select(last, to_3, to_2)); };
  const Real t = x - choose(0.9375, 1.625, 2.5);
  Real sum = choose(kTo1_25[0], kTo2[0], kTo3[0]);
  for (int i = 1; i + 1 < kCount; ++i) sum = hn::MulAdd(sum.v, t.v, choose(kTo1_25[i], kTo2[i], kTo3[i]).v);
  sum = hn::MulAdd(sum.v, t.v,
                   choose(4.757314918673697e-17, 2.7689401233184145e-17, -4.1877266453653374e-17).v);
  sum = sum + choose(kTo1_25[kCount - 1], kTo2[kCount - 1], kTo3[kCount - 1]);
  return (x - mica_select(first, 1, 2)) * sum;
}

// For x >= 10.
HWY_INLINE Real LgammaFar(Real x) {
  static constexpr double kSeries[] = {0.00641025641025641,    -0.0019175269175269176, 0.0008417508417508417,
                                       -0.0005952380952380953, 0.0007936507936507937,  -0.002777777777777778,
                                       0.08333333333333333};
  const Real inverse = 1 / x;
  const Real series = mica_horner(inverse * inverse, kSeries, 6) * inverse;
  // log(2 pi) / 2 - 1 / 2 beside (x - 1/2) (log(x) - 1)
  return (x - 0.5) * (log(x) - 1) + (series + 0.41893853320467274178);
}

// Left of 0 to an absolute error of some 1e-15 where it crosses zero.
HWY_INLINE Real LgammaOf(Real x, const float*) {
  const RealMask left = x < 0;
  const Real right = mica_select(left, 1 - x, x);
  const RealMask small = right < 0.625, far = right >= 10;
  Real at = mica_select(small, right + 1, mica_select(far, 2, right)), product = mica_select(small, right, 1);
  for (RealMask above = at > 3; mica_any(above); above = at > 3) {
    at = mica_select(above, at - 1, at);
    product = mica_select(above, product * at, product);
  }
  // Of the step at the left, of the steps from 3 to 10, and of the reflection at once.
  Real sine = 1;
  if (mica_any(left)) {
    sine = fabs(sin(MICA_MATHS_PI * (x - rint(x))));
    product = mica_select(left, MICA_MATHS_PI / (sine * product), product);
  }
  const Real near = LgammaNear(at), logarithm = log(product);
  Real value = mica_select(left, logarithm - near, mica_select(small, near - logarithm, near + logarithm));
  if (!mica_any(far)) return value;
  const Real further = LgammaFar(right);
  value = mica_select(far, further, value);
  if (!mica_any(far & left)) return value;
  value = mica_select(far & left, log(MICA_MATHS_PI / sine) - further, value);
  return mica_select(x == -std::numeric_limits<double>::infinity(), -x, value);
}

HWY_INLINE Real LgammaOf(Real x, const double*) {
  const Real value = lgamma(x);
  constexpr double kNear = 1.0 / 32;
  if (HWY_LIKELY(!mica_any((x < -2) & (fabs(value) < kNear)))) return value;
  HWY_ALIGN double in[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN double out[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(x.v, TagD(), in);
  hn::Store(value.v, TagD(), out);
  for (size_t i = 0; i < hn::Lanes(TagD()); ++i) {
    int sign = 0;
    if (in[i] < -2 && std::fabs(out[i]) < kNear) out[i] = static_cast<double>(::lgammal_r(in[i], &sign));
  }
  return Real(hn::Load(TagD(), out));
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
