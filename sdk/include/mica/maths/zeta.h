/* Hurwitz's zeta function by Euler and Maclaurin's sum, and polygamma by it.
 * zeta(x, q) is infinite at x = 1 and where q is 0 or a negative integer; NaN for
 * x < 1, and for q < 0 where x is no integer.
 * Note [Vectors by the same text], in real.h, holds for both.
 *
 * The coefficients are those of the Cephes library, copyright 1984 to 2000 and
 * 2018 Stephen L. Moshier, as SciPy keeps them; both under the 3-clause BSD
 * licence, which NOTICE.md beside this file quotes.
 */
#if !defined(MICA_MATHS_ZETA_H_) || defined(MICA_MATHS_VECTORS)
#define MICA_MATHS_ZETA_H_

#ifndef MICA_MATHS_VECTORS
#include <mica/maths/real.h>
#endif

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

/* at^-s: by products where s is a small whole number, in a tenth of pow's time. */
MICA_MATHS MICA_REAL mica_inverse_power(MICA_REAL at, MICA_REAL s) {
  const MICA_MASK plain = (s <= 16) & (s == floor(s));
  MICA_REAL power = at;
  for (double k = 1; mica_any(plain & (s > k)); k += 1) power = mica_select(s > k, power * at, power);
  power = 1 / power;
  return mica_any(!plain) ? mica_select(plain, power, pow(at, -s)) : power;
}

/* Euler and Maclaurin's sum for x > 1 and q in [-1e6, 1e8] that is no pole. */
MICA_MATHS MICA_REAL mica_zeta_sum(MICA_REAL x, MICA_REAL q) {
  MICA_REAL sum = mica_inverse_power(q, x), at = q, term = 0;
  MICA_MASK going = at == at;
  for (int i = 0; i < 9 || mica_any(going & (at <= 9)); ++i) {
    const MICA_MASK steps = i < 9 ? going : going & (at <= 9);
    at = mica_select(steps, at + 1, at);
    term = mica_select(steps, mica_inverse_power(at, x), term);
    sum = mica_select(steps, sum + term, sum);
    going = going & !(steps & (fabs(term) < MICA_MATHS_EPSILON * fabs(sum)));
    if (!mica_any(going)) return sum;
  }
  sum = mica_select(going, sum + (term * at / (x - 1) - 0.5 * term), sum);
  MICA_REAL factor = 1;
  for (int i = 0; i < 12 && mica_any(going); ++i) {
    factor = factor * (x + 2 * i);
    term = term / at;
    const MICA_REAL t = factor * term / mica_zeta_a[i];
    sum = mica_select(going, sum + t, sum);
    going = going & !(fabs(t) < MICA_MATHS_EPSILON * fabs(sum));
    factor = factor * (x + (2 * i + 1));
    term = term / at;
  }
  return sum;
}

MICA_MATHS MICA_REAL mica_zeta(MICA_REAL x, MICA_REAL q) {
  const MICA_MASK whole = q == floor(q), far = q > 1e8;
  const MICA_MASK pole = (q <= 0) & whole;
  /* Far to the left each step is as small as the last: the sum would not end. */
  const MICA_MASK none = (x < 1) | (x != x) | (q != q) | ((q <= 0) & !whole & ((x != floor(x)) | (q < -1e6)));
  const MICA_MASK outside = far | pole | none;
  MICA_REAL value = mica_zeta_sum(x, mica_select(outside, 10, q));
  if (mica_any(far)) value = mica_select(far, (1 / (x - 1) + 1 / (2 * q)) * pow(q, 1 - x), value);
  value = mica_select(pole, INFINITY, value);
  value = mica_select(none, NAN, value);
  return mica_select(x == 1, INFINITY, value);
}

/* n! of a whole n >= 0. */
MICA_MATHS MICA_REAL mica_factorial(MICA_REAL n) {
  const MICA_MASK plain = n <= 16;
  MICA_REAL product = 1;
  for (double k = 2; mica_any(plain & (n >= k)); k += 1) product = mica_select(n >= k, product * k, product);
  return mica_any(!plain) ? mica_select(plain, product, exp(lgamma(n + 1))) : product;
}

/* The (n + 1)-th derivative of log gamma, n >= 1. */
MICA_MATHS MICA_REAL mica_polygamma(MICA_REAL n, MICA_REAL x) {
  /* The first derivative left of 0 by reflection, since the sum has a step for each unit. */
  const MICA_MASK left = (n == 1) & (x < 0);
  MICA_REAL value = mica_factorial(n) * mica_zeta(n + 1, mica_select(left, 1 - x, x));
  if (mica_any(left)) {
    const MICA_REAL sine = sin(MICA_MATHS_PI * (x - rint(x))) / MICA_MATHS_PI;
    value = mica_select(left, 1 / (sine * sine) - value, value);
  }
  return mica_select(n == 2 * floor(n / 2), -value, value);
}

#endif /* MICA_MATHS_ZETA_H_ */
