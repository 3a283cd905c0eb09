/* The regularized incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x),
 * as SciPy computes them: power series, continued fraction, and for a near x the
 * uniform asymptotic expansion. NaN for negative a or x; relative error about
 * 1e-13 where the value is not much smaller than 1.
 *
 * The coefficients are those of the Cephes library, copyright 1984 to 2000 and
 * 2018 Stephen L. Moshier, as SciPy keeps them; both under the 3-clause BSD
 * licence, which NOTICE.md beside this file quotes.
 */
#ifndef MICA_MATHS_GAMMA_H_
#define MICA_MATHS_GAMMA_H_

#include <mica/maths/gamma_table.h>
#include <mica/maths/real.h>

MICA_MATHS_TABLE(mica_lanczos_sum_expg_scaled_num)
[] = {0.0060618423462489067, 0.50984166556566757, 19.519927882476175, 449.94455690631679, 6955.999602515376,
      75999.293040145421,    601859.61716810986,  3481712.154980646,  14605578.087685067, 43338889.324676141,
      86363131.288138598,    103794043.11634454,  56906521.913471565};
MICA_MATHS_TABLE(mica_lanczos_denom)
[] = {1.0,        66.0,        1925.0,      32670.0,     357423.0,   2637558.0, 13339535.0,
      45995730.0, 105258076.0, 150917976.0, 120543840.0, 39916800.0, 0.0};

#define MICA_MATHS_LANCZOS_G 6.024680040776729583740234375
#define MICA_MATHS_MOST_STEPS 2000

/* num(x) / den(x) of degree 12; in powers of 1 / x above 1. */
MICA_MATHS double mica_lanczos_sum(double x) {
  if (x <= 1)
    return mica_horner(x, mica_lanczos_sum_expg_scaled_num, 12) / mica_horner(x, mica_lanczos_denom, 12);
  double num = 0, den = 0;
  for (int i = 12; i >= 0; --i) {
    num = num / x + mica_lanczos_sum_expg_scaled_num[i];
    den = den / x + mica_lanczos_denom[i];
  }
  return num / den;
}

/* log(1 + x) - x. */
MICA_MATHS double mica_log1p_minus(double x) {
  if (fabs(x) >= 0.5) return log1p(x) - x;
  double power = x, sum = 0;
  for (int n = 2; n < 500; ++n) {
    power *= -x;
    const double term = power / n;
    sum += term;
    if (fabs(term) < MICA_MATHS_EPSILON * fabs(sum)) break;
  }
  return sum;
}

/* x^a exp(-x) / gamma(a). Where each of the three stays in range their quotient is the most exact: an
 * exponential of a sum has the error of the sum's largest term. */
MICA_MATHS double mica_igamma_factor(double a, double x) {
  if (a > 1e-300 && a < 100 && x < 300) return pow(x, a) * exp(-x) / tgamma(a);
  if (fabs(a - x) > 0.4 * fabs(a)) {
    const double power = a * log(x) - x - lgamma(a);
    return power < -MICA_MATHS_MAX_LOG ? 0 : exp(power);
  }
  const double scale = a + MICA_MATHS_LANCZOS_G - 0.5;
  const double root = sqrt(scale / 2.71828182845904523536) / mica_lanczos_sum(a);
  if (a < 200 && x < 200) return root * exp(a - x) * pow(x / scale, a);
  const double rest = x - a - MICA_MATHS_LANCZOS_G + 0.5;
  return root * exp(a * mica_log1p_minus(rest / scale) + x * (0.5 - MICA_MATHS_LANCZOS_G) / scale);
}

/* P by DLMF 8.11.4. */
MICA_MATHS double mica_igamma_series(double a, double x) {
  const double factor = mica_igamma_factor(a, x);
  if (factor == 0) return 0;
  double r = a, term = 1, sum = 1;
  for (int i = 0; i < MICA_MATHS_MOST_STEPS; ++i) {
    r += 1;
    term *= x / r;
    sum += term;
    if (term <= MICA_MATHS_EPSILON * sum) break;
  }
  return sum * factor / a;
}

/* Q by DLMF 8.7.3, for small x. */
MICA_MATHS double mica_igammac_series(double a, double x) {
  double power = 1, sum = 0;
  for (int n = 1; n < MICA_MATHS_MOST_STEPS; ++n) {
    power *= -x / n;
    const double term = power / (a + n);
    sum += term;
    if (fabs(term) <= MICA_MATHS_EPSILON * fabs(sum)) break;
  }
  const double log_x = log(x);
  return -expm1(a * log_x - lgamma(1 + a)) - exp(a * log_x - lgamma(a)) * sum;
}

/* Q by the continued fraction DLMF 8.9.2: as many terms as its convergents need to settle, evaluated
 * from the last one, which loses less than the convergents' recurrence does. */
MICA_MATHS double mica_igammac_fraction(double a, double x) {
  const double factor = mica_igamma_factor(a, x);
  if (factor == 0) return 0;
  double p2 = 1, q2 = x, p1 = x + 1, q1 = (x + 2 - a) * x, value = p1 / q1;
  int terms = 1;
  for (; terms < MICA_MATHS_MOST_STEPS; ++terms) {
    const double z = x + 2 * (terms + 1) - a, y = (terms + 1 - a) * terms;
    const double p = p1 * z - p2 * y, q = q1 * z - q2 * y;
    const double before = value;
    if (q != 0) value = p / q;
    if (q != 0 && fabs(before - value) <= MICA_MATHS_EPSILON * fabs(value)) break;
    const double scale = fabs(p) > 4.503599627370496e15 ? 1 / 4.503599627370496e15 : 1;
    p2 = p1 * scale;
    p1 = p * scale;
    q2 = q1 * scale;
    q1 = q * scale;
  }
  double rest = x + 2 * terms + 1 - a;
  for (; terms > 0; --terms) rest = x + 2 * terms - 1 - a - terms * (terms - a) / rest;
  return factor / rest;
}

/* P (sign -1) or Q (sign 1) for large a near x, by DLMF 8.12.3 and 8.12.4. */
MICA_MATHS double mica_igamma_uniform(double a, double x, double sign) {
  const double distance = sqrt(-2 * mica_log1p_minus((x - a) / a));
  const double eta = x > a ? distance : x < a ? -distance : 0;
  double sum = 0, power_of_a = 1, last = INFINITY;
  for (int k = 0; k < MICA_MATHS_IGAMMA_TERMS; ++k) {
    MICA_MATHS_CONSTANTS c = mica_igamma_eta + k * MICA_MATHS_IGAMMA_TERMS;
    double inner = c[0], power = 1;
    for (int n = 1; n < MICA_MATHS_IGAMMA_TERMS; ++n) {
      power *= eta;
      inner += c[n] * power;
      if (fabs(c[n] * power) < MICA_MATHS_EPSILON * fabs(inner)) break;
    }
    const double term = inner * power_of_a;
    if (fabs(term) > last) break;
    sum += term;
    if (fabs(term) < MICA_MATHS_EPSILON * fabs(sum)) break;
    last = fabs(term);
    power_of_a /= a;
  }
  return 0.5 * erfc(sign * eta * sqrt(a / 2)) +
         sign * exp(-0.5 * a * eta * eta) * sum / sqrt(2 * MICA_MATHS_PI * a);
}

/* Where the uniform expansion is the better one. */
MICA_MATHS int mica_igamma_is_near(double a, double x) {
  const double distance = fabs(x - a) / a;
  return (a > 20 && a < 200 && distance < 0.3) || (a > 200 && distance < 4.5 / sqrt(a));
}

/* Q at the ends of its domain; -1 inside. */
MICA_MATHS double mica_igammac_edge(double a, double x) {
  if (isnan(a) || isnan(x) || x < 0 || a < 0 || (isinf(a) && isinf(x))) return NAN;
  if (a == 0) return x > 0 ? 0 : NAN;
  if (x == 0 || isinf(a)) return 1;
  return isinf(x) ? 0 : -1;
}

MICA_MATHS double mica_igammac(double a, double x) {
  const double edge = mica_igammac_edge(a, x);
  if (!(edge < 0)) return edge;
  if (mica_igamma_is_near(a, x)) return mica_igamma_uniform(a, x, 1);
  if (x > 1.1) return x < a ? 1 - mica_igamma_series(a, x) : mica_igammac_fraction(a, x);
  const int small = x <= 0.5 ? -0.4 / log(x) < a : x * 1.1 < a;
  return small ? 1 - mica_igamma_series(a, x) : mica_igammac_series(a, x);
}

MICA_MATHS double mica_igamma(double a, double x) {
  const double edge = mica_igammac_edge(a, x);
  if (!(edge < 0)) return 1 - edge;
  if (mica_igamma_is_near(a, x)) return mica_igamma_uniform(a, x, -1);
  return x > 1 && x > a ? 1 - mica_igammac(a, x) : mica_igamma_series(a, x);
}

/* The logarithm of the multivariate gamma function of dimension p, a whole number. */
MICA_MATHS double mica_mvlgamma(double p, double x) {
  double sum = 0.28618247146235004 * p * (p - 1); /* log(pi) / 4 */
  for (int j = 0; j < p; ++j) sum += lgamma(x - 0.5 * j);
  return sum;
}

#endif /* MICA_MATHS_GAMMA_H_ */
