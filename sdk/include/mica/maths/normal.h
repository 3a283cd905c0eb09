/* The normal distribution: its cumulative distribution function, the logarithm
 * and the inverse of that, and the scaled error function erfcx that they need.
 * ndtr and erfcx are within a few ULP wherever the value is normal.
 * Note [Vectors by the same text], in real.h, holds for all but the inverse.
 *
 * The coefficients are those of the Cephes library, copyright 1984 to 2000 and
 * 2018 Stephen L. Moshier, as SciPy keeps them; both under the 3-clause BSD
 * licence, which NOTICE.md beside this file quotes.
 */
#if !defined(MICA_MATHS_NORMAL_H_) || defined(MICA_MATHS_VECTORS)
#define MICA_MATHS_NORMAL_H_

#ifndef MICA_MATHS_VECTORS
#include <mica/maths/real.h>
#endif

MICA_MATHS_TABLE(mica_ndtri_p0)
[] = {-59.963350101410789, 98.001075418599967, -56.676285746907027, 13.931260938727968, -1.2391658386738125};
MICA_MATHS_TABLE(mica_ndtri_q0)
[] = {1.0,
      1.9544885833814176,
      4.6762791289888153,
      86.360242139089053,
      -225.46268785411937,
      200.26021238006066,
      -82.037225616833339,
      15.90562251262117,
      -1.1833162112133};
MICA_MATHS_TABLE(mica_ndtri_p1)
[] = {4.0554489230596245,   31.525109459989388,    57.162819224642128,
      44.080507389320083,   14.684956192885803,    2.1866330685079025,
      -0.14025607917135449, -0.035042462682784818, -0.00085745678515468545};
MICA_MATHS_TABLE(mica_ndtri_q1)
[] = {1.0,
      15.779988325646675,
      45.390763512887922,
      41.317203825467203,
      15.04253856929075,
      2.5046494620830941,
      -0.14218292285478779,
      -0.038080640769157827,
      -0.00093325948089545744};
MICA_MATHS_TABLE(mica_ndtri_p2)
[] = {3.2377489177694603,     6.9152288906898418,     3.9388102529247444,
      1.3330346081580755,     0.20148538954917908,    0.012371663481782003,
      0.00030158155350823543, 2.6580697468673755e-06, 6.2397453918498331e-09};
MICA_MATHS_TABLE(mica_ndtri_q2)
[] = {1.0,
      6.02427039364742,
      3.6798356385616087,
      1.3770209948908132,
      0.21623699359449663,
      0.013420400608854318,
      0.00032801446468212774,
      2.8924786474538068e-06,
      6.7901940800998127e-09};

#define MICA_MATHS_SQRT_HALF 7.07106781186547524401e-1
#define MICA_MATHS_SQRT_HALF_REST -4.833646656726457e-17 /* beyond the last bit */

/* exp(sign x^2): what rounding the square lost comes back as a factor. */
MICA_MATHS MICA_REAL mica_exp_square(MICA_REAL x, double sign) {
  const MICA_REAL square = x * x, value = exp(sign * square);
  return mica_select(square < INFINITY, value * (1 + sign * fma(x, x, -square)), value);
}

/* exp(x^2) erfc(x). From 10 on by the asymptotic series, below from erfc itself. */
MICA_MATHS MICA_REAL mica_erfcx(MICA_REAL x) {
  const MICA_REAL size = fabs(x);
  const MICA_MASK far = size >= 10, left = x < 0;
  MICA_REAL value = 0;
  if (mica_any(!far)) value = mica_exp_square(size, 1) * erfc(size);
  if (mica_any(far)) {
    const double one_over_sqrt_pi = 5.64189583547756286948e-1;
    const MICA_REAL step = 0.5 / size / size;
    MICA_REAL sum = 1, term = 1;
    for (int k = 1; k <= 12; ++k) {
      term = term * (-(2 * k - 1) * step);
      sum = sum + term;
    }
    value = mica_select(far, one_over_sqrt_pi * sum / size, value);
  }
  if (mica_any(left)) value = mica_select(left, 2 * mica_exp_square(x, 1) - value, value);
  return mica_select(x < -26.7, INFINITY, value);
}

/* erfc(-x / sqrt(2)) / 2. What rounding takes from the argument costs x^2 times as much in
 * the result, and is given back by the derivative. */
MICA_MATHS MICA_REAL mica_ndtr(MICA_REAL x) {
  const MICA_REAL t = x * MICA_MATHS_SQRT_HALF;
  const MICA_REAL lost = fma(x, MICA_MATHS_SQRT_HALF, -t) + x * MICA_MATHS_SQRT_HALF_REST;
  const double two_over_sqrt_pi = 1.12837916709551257390;
  const MICA_REAL value = 0.5 * (erfc(-t) + two_over_sqrt_pi * exp(-t * t) * lost);
  return mica_select(fabs(x) < 40, value, mica_select(x > 0, 1, mica_select(x < 0, 0, x)));
}

MICA_MATHS MICA_REAL mica_log_ndtr(MICA_REAL x) {
  const MICA_MASK far = x < -1;
  MICA_REAL value = 0;
  if (mica_any(!far)) {
    const MICA_REAL size = fabs(x), tail = mica_ndtr(-size);
    value = mica_select(x < 0, log(tail), log1p(-tail));
  }
  if (!mica_any(far)) return value;
  return mica_select(far, log(mica_erfcx(-x * MICA_MATHS_SQRT_HALF) / 2) - 0.5 * x * x, value);
}

#ifndef MICA_MATHS_VECTORS
/* The x with ndtr(x) = y: NaN outside [0, 1]. */
MICA_MATHS double mica_ndtri(double y) {
  const double tail = 0.13533528323661269189; /* exp(-2) */
  if (!(y >= 0 && y <= 1)) return NAN;
  if (y == 0) return -INFINITY;
  if (y == 1) return INFINITY;
  const int upper = y > 1 - tail;
  if (upper) y = 1 - y;
  if (y > tail) {
    const double sqrt_two_pi = 2.50662827463100050242;
    const double d = y - 0.5, z = d * d;
    return (d + d * (z * mica_horner(z, mica_ndtri_p0, 4) / mica_horner(z, mica_ndtri_q0, 8))) * sqrt_two_pi;
  }
  const double x = sqrt(-2 * log(y)), z = 1 / x;
  const double correction = x < 8 ? z * mica_horner(z, mica_ndtri_p1, 8) / mica_horner(z, mica_ndtri_q1, 8)
                                  : z * mica_horner(z, mica_ndtri_p2, 8) / mica_horner(z, mica_ndtri_q2, 8);
  const double distance = x - log(x) / x - correction;
  return upper ? distance : -distance;
}
#endif

#endif /* MICA_MATHS_NORMAL_H_ */
