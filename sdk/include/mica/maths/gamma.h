/* The regularized incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x),
 * as SciPy computes them: power series, continued fraction, and for a near x the
 * uniform asymptotic expansion. NaN for negative a or x; relative error about
 * 1e-13 where the value is not much smaller than 1.
 * Note [Vectors by the same text], in real.h, holds for both.
 *
 * The coefficients are those of the Cephes library, copyright 1984 to 2000 and
 * 2018 Stephen L. Moshier, as SciPy keeps them; both under the 3-clause BSD
 * licence, which NOTICE.md beside this file quotes.
 */
#if !defined(MICA_MATHS_GAMMA_H_) || defined(MICA_MATHS_VECTORS)
#define MICA_MATHS_GAMMA_H_

#ifndef MICA_MATHS_VECTORS
#include <mica/maths/gamma_table.h>
#include <mica/maths/real.h>
#endif

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
MICA_MATHS MICA_REAL mica_lanczos_sum(MICA_REAL x) {
  const MICA_MASK small = x <= 1;
  MICA_REAL num = 0, den = 0;
  for (int i = 12; i >= 0; --i) {
    num = num / x + mica_lanczos_sum_expg_scaled_num[i];
    den = den / x + mica_lanczos_denom[i];
  }
  const MICA_REAL value = num / den;
  if (!mica_any(small)) return value;
  return mica_select(
      small, mica_horner(x, mica_lanczos_sum_expg_scaled_num, 12) / mica_horner(x, mica_lanczos_denom, 12),
      value);
}

/* log(1 + x) - x. */
MICA_MATHS MICA_REAL mica_log1p_minus(MICA_REAL x) {
  const MICA_MASK small = fabs(x) < 0.5;
  MICA_REAL power = x, sum = 0;
  MICA_MASK going = small;
  for (int n = 2; n < 500 && mica_any(going); ++n) {
    power = power * -x;
    const MICA_REAL term = power / n;
    sum = mica_select(going, sum + term, sum);
    going = going & !(fabs(term) <= MICA_MATHS_EPSILON * fabs(sum));
  }
  return mica_any(!small) ? mica_select(small, sum, log1p(x) - x) : sum;
}

/* The factor below for large a near x. */
MICA_MATHS MICA_REAL mica_igamma_factor_near(MICA_REAL a, MICA_REAL x) {
  const MICA_REAL scale = a + (MICA_MATHS_LANCZOS_G - 0.5);
  const MICA_REAL root = sqrt(scale / 2.71828182845904523536) / mica_lanczos_sum(a);
  const MICA_MASK small = (a < 200) & (x < 200);
  MICA_REAL value = 0;
  if (mica_any(small)) value = root * exp(a - x) * pow(x / scale, a);
  if (!mica_any(!small)) return value;
  const MICA_REAL rest = x - a - (MICA_MATHS_LANCZOS_G - 0.5);
  const MICA_REAL power = a * mica_log1p_minus(rest / scale) + x * (0.5 - MICA_MATHS_LANCZOS_G) / scale;
  return mica_select(small, value, root * exp(power));
}

/* x^a exp(-x) / gamma(a). Where each of the three stays in range their quotient is the most exact: an
 * exponential of a sum has the error of the sum's largest term. */
MICA_MATHS MICA_REAL mica_igamma_factor(MICA_REAL a, MICA_REAL x) {
  const MICA_MASK plain = (a > 1e-300) & (a < 100) & (x < 300);
  MICA_REAL value = 0;
  if (mica_any(plain)) {
    const MICA_REAL b = mica_select(plain, a, 1), y = mica_select(plain, x, 1);
    value = pow(y, b) * exp(-y) / tgamma(b);
  }
  if (!mica_any(!plain)) return value;
  const MICA_MASK apart = fabs(a - x) > 0.4 * fabs(a);
  if (mica_any(apart & !plain)) {
    const MICA_REAL power = a * log(x) - x - lgamma(a);
    const MICA_REAL by_sum = mica_select(power < -MICA_MATHS_MAX_LOG, 0, exp(power));
    value = mica_select(plain, value, by_sum);
  }
  if (mica_any(!apart & !plain)) value = mica_select(plain | apart, value, mica_igamma_factor_near(a, x));
  return value;
}

/* P by DLMF 8.11.4, two terms to a division. */
MICA_MATHS MICA_REAL mica_igamma_series(MICA_REAL a, MICA_REAL x) {
  const MICA_REAL factor = mica_igamma_factor(a, x);
  MICA_REAL r = a, term = 1, sum = 1;
  MICA_MASK going = factor > 0;
  for (int i = 0; i < MICA_MATHS_MOST_STEPS && mica_any(going); i += 2) {
    const MICA_REAL both = term * x / ((r + 1) * (r + 2));
    r = r + 2;
    term = both * x;
    sum = mica_select(going, sum + (both * r + term), sum);
    going = going & !(term <= MICA_MATHS_EPSILON * sum);
  }
  return mica_select(factor == 0, 0, sum * factor / a);
}

/* Q by DLMF 8.7.3, for small x. */
MICA_MATHS MICA_REAL mica_igammac_series(MICA_REAL a, MICA_REAL x) {
  MICA_REAL power = 1, sum = 0;
  MICA_MASK going = x == x;
  for (int n = 1; n < MICA_MATHS_MOST_STEPS && mica_any(going); ++n) {
    power = power * (-x / n);
    const MICA_REAL term = power / (a + n);
    sum = mica_select(going, sum + term, sum);
    going = going & !(fabs(term) <= MICA_MATHS_EPSILON * fabs(sum));
  }
  const MICA_REAL log_x = log(x);
  return -expm1(a * log_x - lgamma(1 + a)) - exp(a * log_x - lgamma(a)) * sum;
}

/* As many terms of the continued fraction DLMF 8.9.2 as its convergents need to settle. */
MICA_MATHS MICA_REAL mica_igammac_terms(MICA_REAL a, MICA_REAL x, MICA_MASK going) {
  MICA_REAL p2 = 1, q2 = x, p1 = x + 1, q1 = (x + 2 - a) * x, value = p1 / q1, terms = 1;
  for (int k = 1; k < MICA_MATHS_MOST_STEPS && mica_any(going); ++k) {
    const MICA_REAL z = x + 2 * (k + 1) - a, y = (k + 1 - a) * k;
    const MICA_REAL p = p1 * z - p2 * y, q = q1 * z - q2 * y;
    const MICA_REAL next = mica_select(q != 0, p / q, value);
    going = going & !((q != 0) & (fabs(value - next) <= MICA_MATHS_EPSILON * fabs(next)));
    terms = mica_select(going, terms + 1, terms);
    value = next;
    const MICA_REAL scale = mica_select(fabs(p) > 4.503599627370496e15, 1 / 4.503599627370496e15, 1);
    p2 = p1 * scale;
    p1 = p * scale;
    q2 = q1 * scale;
    q1 = q * scale;
  }
  return terms;
}

/* Q by that fraction, evaluated from its last term, which loses less than the convergents' recurrence. */
MICA_MATHS MICA_REAL mica_igammac_fraction(MICA_REAL a, MICA_REAL x) {
  const MICA_REAL factor = mica_igamma_factor(a, x);
  MICA_REAL terms = mica_igammac_terms(a, x, factor > 0);
  MICA_REAL rest = x + 2 * terms + 1 - a;
  for (MICA_MASK left = terms > 0; mica_any(left); left = terms > 0) {
    rest = mica_select(left, x + 2 * terms - 1 - a - terms * (terms - a) / rest, rest);
    terms = mica_select(left, terms - 1, terms);
  }
  return mica_select(factor == 0, 0, factor / rest);
}

/* One of the series of the uniform expansion, in powers of eta. */
MICA_MATHS MICA_REAL mica_igamma_eta_series(MICA_MATHS_CONSTANTS c, MICA_REAL eta, MICA_MASK going) {
  MICA_REAL sum = c[0], power = 1;
  for (int n = 1; n < MICA_MATHS_IGAMMA_TERMS && mica_any(going); ++n) {
    power = power * eta;
    const MICA_REAL term = c[n] * power;
    sum = mica_select(going, sum + term, sum);
    going = going & !(fabs(term) < MICA_MATHS_EPSILON * fabs(sum));
  }
  return sum;
}

/* P (sign -1) or Q (sign 1) for large a near x, by DLMF 8.12.3 and 8.12.4. */
MICA_MATHS MICA_REAL mica_igamma_uniform(MICA_REAL a, MICA_REAL x, double sign) {
  const MICA_REAL distance = sqrt(-2 * mica_log1p_minus((x - a) / a));
  const MICA_REAL eta = mica_select(x > a, distance, mica_select(x < a, -distance, 0));
  MICA_REAL sum = 0, power_of_a = 1, last = INFINITY;
  MICA_MASK going = a == a;
  for (int k = 0; k < MICA_MATHS_IGAMMA_TERMS && mica_any(going); ++k) {
    const MICA_REAL term =
        mica_igamma_eta_series(mica_igamma_eta + k * MICA_MATHS_IGAMMA_TERMS, eta, going) * power_of_a;
    going = going & !(fabs(term) > last);
    sum = mica_select(going, sum + term, sum);
    going = going & !(fabs(term) < MICA_MATHS_EPSILON * fabs(sum));
    last = fabs(term);
    power_of_a = power_of_a / a;
  }
  return 0.5 * erfc(sign * eta * sqrt(a / 2)) +
         sign * exp(-0.5 * a * eta * eta) * sum / sqrt(2 * MICA_MATHS_PI * a);
}

/* Where the uniform expansion is the better one. */
MICA_MATHS MICA_MASK mica_igamma_is_near(MICA_REAL a, MICA_REAL x) {
  const MICA_REAL distance = fabs(x - a) / a;
  return ((a > 20) & (a < 200) & (distance < 0.3)) | ((a > 200) & (distance < 4.5 / sqrt(a)));
}

/* Q at the ends of its domain; -1 inside. */
MICA_MATHS MICA_REAL mica_igammac_edge(MICA_REAL a, MICA_REAL x) {
  const MICA_MASK none = (a != a) | (x != x) | (x < 0) | (a < 0) | ((a == INFINITY) & (x == INFINITY));
  MICA_REAL edge = mica_select(x == INFINITY, 0, -1);
  edge = mica_select((x == 0) | (a == INFINITY), 1, edge);
  edge = mica_select(a == 0, mica_select(x > 0, 0, NAN), edge);
  return mica_select(none, NAN, edge);
}

/* P, or Q where `upper`, inside the domain: by P's series in `by_series`, else by one for Q. */
MICA_MATHS MICA_REAL mica_igamma_inside(MICA_REAL a, MICA_REAL x, MICA_MASK by_series, int upper) {
  const MICA_MASK near = mica_igamma_is_near(a, x), large = x > 1.1;
  const MICA_MASK fraction = !near & !by_series & large, small = !near & !by_series & !large;
  MICA_REAL lower = 0, higher = 0;
  if (mica_any(by_series & !near)) {
    const MICA_MASK taken = by_series & !near;
    lower = mica_igamma_series(mica_select(taken, a, 1), mica_select(taken, x, 1));
  }
  if (mica_any(fraction))
    higher = mica_igammac_fraction(mica_select(fraction, a, 1), mica_select(fraction, x, 2));
  if (mica_any(small)) {
    const MICA_REAL series = mica_igammac_series(mica_select(small, a, 1), mica_select(small, x, 1));
    higher = mica_select(small, series, higher);
  }
  const MICA_REAL value =
      upper ? mica_select(by_series, 1 - lower, higher) : mica_select(by_series, lower, 1 - higher);
  if (!mica_any(near)) return value;
  const MICA_REAL b = mica_select(near, a, 30), y = mica_select(near, x, 30);
  return mica_select(near, mica_igamma_uniform(b, y, upper ? 1 : -1), value);
}

MICA_MATHS MICA_REAL mica_igammac(MICA_REAL a, MICA_REAL x) {
  const MICA_REAL edge = mica_igammac_edge(a, x);
  const MICA_MASK inside = edge < 0;
  if (!mica_any(inside)) return edge;
  a = mica_select(inside, a, 1);
  x = mica_select(inside, x, 1);
  const MICA_MASK tiny = x <= 0.5;
  MICA_MASK small = x * 1.1 < a;
  if (mica_any(tiny)) small = (tiny & (-0.4 / log(x) < a)) | (!tiny & small);
  const MICA_MASK large = x > 1.1, by_series = (large & (x < a)) | (!large & small);
  return mica_select(inside, mica_igamma_inside(a, x, by_series, 1), edge);
}

MICA_MATHS MICA_REAL mica_igamma(MICA_REAL a, MICA_REAL x) {
  const MICA_REAL edge = mica_igammac_edge(a, x);
  const MICA_MASK inside = edge < 0;
  if (!mica_any(inside)) return 1 - edge;
  a = mica_select(inside, a, 1);
  x = mica_select(inside, x, 1);
  return mica_select(inside, mica_igamma_inside(a, x, !((x > 1) & (x > a)), 0), 1 - edge);
}

#ifndef MICA_MATHS_VECTORS
/* The logarithm of the multivariate gamma function of dimension p, a whole number. */
MICA_MATHS double mica_mvlgamma(double p, double x) {
  double sum = 0.28618247146235004 * p * (p - 1); /* log(pi) / 4 */
  for (int j = 0; j < p; ++j) sum += lgamma(x - 0.5 * j);
  return sum;
}
#endif

#endif /* MICA_MATHS_GAMMA_H_ */
