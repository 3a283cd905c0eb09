/* Orthogonal polynomials at degree n, which is cut to an integer: 0 below 0, the
 * trigonometric form inside (-1, 1) for larger degrees of Chebyshev's, else the
 * three-term recurrence. torch's definitions, its ends of the interval included.
 * Degrees above MICA_MATHS_MAX_DEGREE (Hermite: above 512) give NaN.
 */
#ifndef MICA_MATHS_ORTHOGONAL_H_
#define MICA_MATHS_ORTHOGONAL_H_

#include <mica/maths/real.h>

#define MICA_MATHS_MAX_DEGREE 1000000

/* r_(k+1) = 2x r_k - r_(k-1) from 1 and `first` to r_n: all four kinds of Chebyshev's. */
MICA_MATHS double mica_chebyshev_recurrence(double x, double first, double n) {
  if (n == 0) return 1;
  if (!(n <= MICA_MATHS_MAX_DEGREE)) return NAN;
  double before = 1, value = first;
  for (double k = 2; k <= n && !isnan(value); ++k) {
    const double next = (x + x) * value - before;
    before = value;
    value = next;
  }
  return value;
}

/* The degree as an integer; -1 where the polynomial is 0, NaN where it is NaN. */
MICA_MATHS double mica_degree(double n, double most) {
  n = trunc(n);
  return !(n >= 0) || isinf(n) ? -1 : n > most ? NAN : n;
}

MICA_MATHS double mica_chebyshev_polynomial_t(double x, double n) {
  n = mica_degree(n, INFINITY);
  if (n < 0) return 0;
  const int even = fmod(n, 2) == 0;
  if (fabs(x) == 1) return x > 0 || even ? 1 : -1;
  if (n > 6 && fabs(x) < 1) return cos(n * acos(x));
  return mica_chebyshev_recurrence(x, x, n);
}

MICA_MATHS double mica_chebyshev_polynomial_u(double x, double n) {
  n = mica_degree(n, INFINITY);
  if (n < 0) return 0;
  const int even = fmod(n, 2) == 0;
  if (fabs(x) == 1) return x > 0 || even ? n + 1 : -(n + 1);
  if (n > 8 && fabs(x) < 1) return sin((n + 1) * acos(x)) / sin(acos(x));
  return mica_chebyshev_recurrence(x, x + x, n);
}

MICA_MATHS double mica_chebyshev_polynomial_v(double x, double n) {
  n = mica_degree(n, INFINITY);
  if (n < 0) return 0;
  const int even = fmod(n, 2) == 0;
  if (x == 1) return 1;
  if (x == -1) return even ? n + n + 1 : -(n + n + 1);
  if (n > 8 && fabs(x) < 1) return cos((n + 0.5) * acos(x)) / cos(acos(x) / 2);
  return mica_chebyshev_recurrence(x, x + x - 1, n);
}

MICA_MATHS double mica_chebyshev_polynomial_w(double x, double n) {
  n = mica_degree(n, INFINITY);
  if (n < 0) return 0;
  const int even = fmod(n, 2) == 0;
  if (x == 1) return n + n + 1;
  if (x == -1) return even ? 1 : -1;
  if (n > 8 && fabs(x) < 1) return sin((n + 0.5) * acos(x)) / sin(acos(x) / 2);
  return mica_chebyshev_recurrence(x, x + x + 1, n);
}

MICA_MATHS double mica_hermite_polynomial_h(double x, double n) {
  n = mica_degree(n, 512);
  if (n < 0) return 0;
  if (n == 0 || isnan(n)) return n + 1;
  double before = 1, value = x + x;
  for (double k = 1; k < n; ++k) {
    const double next = (x + x) * value - 2 * k * before;
    before = value;
    value = next;
  }
  return value;
}

MICA_MATHS double mica_hermite_polynomial_he(double x, double n) {
  n = mica_degree(n, 512);
  if (n < 0) return 0;
  if (n == 0 || isnan(n)) return n + 1;
  double before = 1, value = x;
  for (double k = 1; k < n; ++k) {
    const double next = x * value - k * before;
    before = value;
    value = next;
  }
  return value;
}

MICA_MATHS double mica_laguerre_polynomial_l(double x, double n) {
  n = mica_degree(n, MICA_MATHS_MAX_DEGREE);
  if (n < 0) return 0;
  if (x == 0) return 1;
  if (n == 0 || isnan(n)) return n + 1;
  double before = 1, value = 1 - x;
  for (double k = 1; k < n && !isnan(value); ++k) {
    const double next = ((k + k + (1 - x)) * value - k * before) / (k + 1);
    before = value;
    value = next;
  }
  return value;
}

MICA_MATHS double mica_legendre_polynomial_p(double x, double n) {
  n = mica_degree(n, MICA_MATHS_MAX_DEGREE);
  if (n < 0) return 0;
  const int even = fmod(n, 2) == 0;
  if (fabs(x) == 1) return x > 0 || even ? 1 : -1;
  if (n == 0 || isnan(n)) return n + 1;
  double before = 1, value = x;
  for (double k = 1; k < n && !isnan(value); ++k) {
    const double next = ((k + k + 1) * x * value - k * before) / (k + 1);
    before = value;
    value = next;
  }
  return value;
}

/* The same on [0, 1]. */
#define MICA_MATHS_SHIFTED(kind)                                                   \
  MICA_MATHS double mica_shifted_chebyshev_polynomial_##kind(double x, double n) { \
    return mica_chebyshev_polynomial_##kind(x + x - 1, n);                         \
  }
MICA_MATHS_SHIFTED(t)
MICA_MATHS_SHIFTED(u)
MICA_MATHS_SHIFTED(v)
MICA_MATHS_SHIFTED(w)
#undef MICA_MATHS_SHIFTED

#endif /* MICA_MATHS_ORTHOGONAL_H_ */
