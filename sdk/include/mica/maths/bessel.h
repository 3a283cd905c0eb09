/* Bessel functions of the first and second kind, orders 0 and 1: polynomials up to 5,
 * beyond it modulus and phase (DLMF 10.17). Up to 5 the relative error is at most 3 units
 * of the last place, at the zeros too; beyond it the error is 3 units of the amplitude
 * sqrt(2 / (pi x)), and less near a zero. Infinite arguments give NaN, as in torch.
 *
 * Near a zero z, known in twice the precision, the value is d P(d) with d = x - z, which is
 * exact but for one rounding (the reduction of J. Harrison, Fast and accurate Bessel function
 * computation, 2009).
 */
#ifndef MICA_MATHS_BESSEL_H_
#define MICA_MATHS_BESSEL_H_

#include <mica/maths/bessel_table.h>
#include <mica/maths/phase.h>
#include <mica/maths/real.h>

#define MICA_MATHS_2_OVER_PI 6.36619772367581343075535e-1

/* From 5 on: sqrt(2 / (pi x)) times p cos(t) - q sin(t), or p sin(t) + q cos(t), with
 * t = x - pi/4 for order 0 and x - 3 pi/4 for order 1. */
MICA_MATHS double mica_bessel_far(double p, double q, double x, int order, int second) {
  double c, s = mica_phase(x, 0, &c);
  if (order) {
    const double before = c;
    c = s;
    s = -before;
  }
  return (second ? p * s + q * c : p * c - q * s) * sqrt(MICA_MATHS_2_OVER_PI / x);
}

MICA_MATHS double mica_bessel_far_0(double x, int second) {
  const double w = 5 / x, z = w * w;
  const double p = 1 + z * mica_horner(z, mica_j0_pd, 5) / mica_horner(z, mica_j0_pq, 6);
  const double q = w * mica_horner(z, mica_j0_qp, 7) / mica_horner(z, mica_j0_qq, 7);
  return mica_bessel_far(p, q, x, 0, second);
}

MICA_MATHS double mica_bessel_far_1(double x, int second) {
  const double w = 5 / x, z = w * w;
  const double p = 1 + z * mica_horner(z, mica_j1_pd, 5) / mica_horner(z, mica_j1_pq, 6);
  const double q = w * mica_horner(z, mica_j1_qp, 7) / mica_horner(z, mica_j1_qq, 7);
  return mica_bessel_far(p, q, x, 1, second);
}

MICA_MATHS double mica_bessel_j0(double x) {
  x = fabs(x);
  const double z = x * x;
  if (x < 1.4) return 1 + z * (z * mica_horner(z, mica_j0_small, 7) - 0.25);
  if (x < 3.9) return mica_near_zero(x, 2.404825557695773, -1.176691651530894e-16, mica_j0_z1, 15);
  if (x < 5) return mica_near_zero(x, 5.520078110286311, 8.088597146146722e-17, mica_j0_z2, 12);
  return mica_bessel_far_0(x, 0);
}

MICA_MATHS double mica_bessel_j1(double x) {
  const double magnitude = fabs(x), z = x * x;
  if (magnitude < 2) return x * (0.5 + z * mica_horner(z, mica_j1_small, 8));
  const double value =
      magnitude < 5 ? mica_near_zero(magnitude, 3.8317059702075125, -1.5269184090088067e-16, mica_j1_z1, 16)
                    : mica_bessel_far_1(magnitude, 0);
  return x < 0 ? -value : value;
}

/* Up to 2.2: 2/pi log(x / x1) J0(x) + (x^2 - x1^2) P(x^2), x1 the first zero. */
MICA_MATHS double mica_bessel_y0(double x) {
  if (x == 0) return -INFINITY;
  if (!(x > 0)) return NAN;
  if (x < 2.2) {
    const double first = 0.8935769662791675, distance = x - first - 2.6596231539720385e-17;
    const double logarithm = x < 0.45 ? log(x / first) : log1p(distance / first);
    return MICA_MATHS_2_OVER_PI * logarithm * mica_bessel_j0(x) +
           distance * (x + first) * mica_horner(x * x, mica_y0_small, 9);
  }
  if (x < 5) return mica_near_zero(x, 3.957678419314858, -1.0764340697562706e-16, mica_y0_z2, 23);
  return mica_bessel_far_0(x, 1);
}

/* Up to 1.6: 2/pi (log(x) J1(x) - 1 / x) + x P(x^2). */
MICA_MATHS double mica_bessel_y1(double x) {
  if (x == 0) return -INFINITY;
  if (!(x > 0)) return NAN;
  if (x < 1.6) {
    const double singular = MICA_MATHS_2_OVER_PI * (mica_bessel_j1(x) * log(x) - 1 / x);
    return singular + x * mica_horner(x * x, mica_y1_small, 8);
  }
  if (x < 3.7) return mica_near_zero(x, 2.197141326031017, -4.8259835876454966e-17, mica_y1_z1, 25);
  if (x < 5) return mica_near_zero(x, 5.429681040794135, 4.162514026670377e-16, mica_y1_z2, 15);
  return mica_bessel_far_1(x, 1);
}

/* sin(x) / x, by its series near 0. */
MICA_MATHS double mica_spherical_bessel_j0(double x) {
  if (isinf(x)) return 0;
  const double z = x * x;
  if (fabs(x) >= 0.5) return sin(x) / x;
  return 1 + z * (-1 / 6.0 +
                  z * (1 / 120.0 +
                       z * (-1 / 5040.0 + z * (1 / 362880.0 + z * (-1 / 39916800.0 + z / 6227020800.0)))));
}

#endif /* MICA_MATHS_BESSEL_H_ */
