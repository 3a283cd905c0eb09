// The normal distribution for float32, in double lanes: erfcx by one polynomial to 2e-10, half the terms and
// none of the pairs of doubles that float64 takes (normal.h, by SLEEF's erfc).
//
// The polynomial goes through Chebyshev nodes of (1 + 2 z) erfcx(z) over q = (z - 3) / (z + 3), as Shepherd
// and Laframboise (1981) write it, computed with mpmath to 50 digits.
#if defined(MICA_CPU_NORMAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_CPU_NORMAL_INL_H_
#undef MICA_CPU_NORMAL_INL_H_
#else
#define MICA_CPU_NORMAL_INL_H_
#endif

#include "plugins/cpu/engine/lanes/real-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

// exp(z^2) erfc(z) for z >= 0.
HWY_INLINE Real ShortErfcx(Real z) {
  static constexpr double kTerms[] = {-1.14816387174196e-05,   3.858829200293751e-06, 0.00011462994935341083,
                                      -0.00010412154750838227, -0.000773109931163967, 0.0018881024023570455,
                                      0.0025271155171273122,   -0.023770329151483693, 0.06830839969348647,
                                      -0.11927369264611383,    0.12964513564841043,   -0.047562292578384825,
                                      -0.13562110588976478,    1.2530080582517193};
  const Real q = 1 - 6 / (z + 3);
  return mica_horner(q, kTerms, 13) / (1 + 2 * z);
}

HWY_INLINE Real ErfcxOf(Real x, const float*) {
  const RealMask left = x < 0;
  const Real value = ShortErfcx(fabs(x));
  return mica_any(left) ? mica_select(left, 2 * exp(x * x) - value, value) : value;
}
HWY_INLINE Real ErfcxOf(Real x, const double*) { return mica_erfcx(x); }

HWY_INLINE Real NdtrOf(Real x, const float*) {
  const Real z = fabs(x) * MICA_MATHS_SQRT_HALF;
  const Real tail = 0.5 * exp(-z * z) * ShortErfcx(z);
  return mica_select(x < 0, tail, 1 - tail);
}
HWY_INLINE Real NdtrOf(Real x, const double*) { return mica_ndtr(x); }

HWY_INLINE Real LogNdtrOf(Real x, const float*) {
  const RealMask left = x < 0;
  const Real z = fabs(x) * MICA_MATHS_SQRT_HALF, scaled = 0.5 * ShortErfcx(z);
  Real value = log(scaled) - z * z;
  if (!mica_any(!left)) return value;
  return mica_select(left, value, log1p(-exp(-z * z) * scaled));
}
HWY_INLINE Real LogNdtrOf(Real x, const double*) { return mica_log_ndtr(x); }

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
