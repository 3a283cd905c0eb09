/* Hurwitz's zeta function by Euler and Maclaurin's sum, and polygamma by it.
 * zeta(x, q) is infinite at x = 1 and where q is 0 or a negative integer; NaN for
 * x < 1, and for q < 0 where x is no integer.
 *
 * The coefficients are those of the Cephes library, copyright 1984 to 2000 and
 * 2018 Stephen L. Moshier, as SciPy keeps them; both under the 3-clause BSD
 * licence, which NOTICE.md beside this file quotes.
 */
#ifndef MICA_MATHS_ZETA_H_
#define MICA_MATHS_ZETA_H_

#include <mica/maths/real.h>

MICA_MATHS_TABLE(mica_zeta_a)
[] = {12.0,
      -720.0,
      30240.0,
      -1209600.0,
      47900160.0,
      -1892437580.3183792,
      74724249600.0,
      -2950130727918.1641,
      116467828143500.67,
      -4597978722407473.0,
      1.8152105401943546e+17,
      -7.1661652561756672e+18};

MICA_MATHS double mica_zeta(double x, double q) {
  if (x == 1) return INFINITY;
  if (!(x >= 1) || isnan(q)) return NAN;
  if (q <= 0) {
    if (q == floor(q)) return INFINITY;
    if (x != floor(x)) return NAN;
  }
  if (q > 1e8) return (1 / (x - 1) + 1 / (2 * q)) * pow(q, 1 - x);
  /* Far to the left each step is as small as the last: the sum would not end. */
  if (q < -1e6) return NAN;
  double sum = pow(q, -x), at = q, term = 0;
  for (int i = 0; i < 9 || at <= 9; ++i) {
    at += 1;
    term = pow(at, -x);
    sum += term;
    if (fabs(term) < MICA_MATHS_EPSILON * fabs(sum)) return sum;
  }
  sum += term * at / (x - 1) - 0.5 * term;
  double factor = 1, k = 0;
  for (int i = 0; i < 12; ++i) {
    factor *= x + k;
    term /= at;
    const double t = factor * term / mica_zeta_a[i];
    sum += t;
    if (fabs(t) < MICA_MATHS_EPSILON * fabs(sum)) return sum;
    factor *= x + k + 1;
    term /= at;
    k += 2;
  }
  return sum;
}

/* The (n + 1)-th derivative of log gamma, n >= 1. */
MICA_MATHS double mica_polygamma(double n, double x) {
  const double value = exp(lgamma(n + 1)) * mica_zeta(n + 1, x);
  return fmod(n, 2) == 1 ? value : -value;
}

#endif /* MICA_MATHS_ZETA_H_ */
