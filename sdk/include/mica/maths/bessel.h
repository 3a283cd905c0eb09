/* Bessel functions of the first and second kind, orders 0 and 1: rational
 * functions up to 5, beyond it modulus and phase. Absolute errors are about
 * 4e-16; relative ones grow near a zero and for |x| above 1e5, where the argument
 * of sin and cos is rounded. Infinite arguments give NaN, as in torch.
 *
 * The coefficients are those of the Cephes library, copyright 1984 to 2000 and
 * 2018 Stephen L. Moshier, as SciPy keeps them; both under the 3-clause BSD
 * licence, which NOTICE.md beside this file quotes.
 */
#ifndef MICA_MATHS_BESSEL_H_
#define MICA_MATHS_BESSEL_H_

#include "mica/maths/real.h"

MICA_MATHS_TABLE(mica_j0_pp)
[] = {0.00079693672929734706,
      0.08283523921074408,
      1.2395337164641429,
      5.4472500305876874,
      8.7471650019981695,
      5.3032403823539491,
      1.0};
MICA_MATHS_TABLE(mica_j0_pq)
[] = {0.00092440881055886367,
      0.08562884743544745,
      1.2535274390105895,
      5.4709774033041709,
      8.7619088323706951,
      5.3060528823539466,
      1.0};
MICA_MATHS_TABLE(mica_j0_qp)
[] = {-0.011366383889846916, -1.2825271867050931, -19.553954425773597, -93.206015212376826,
      -177.68116798048806,   -147.07750515495118, -51.410532676659933, -6.0501435060072852};
MICA_MATHS_TABLE(mica_j0_qq)
[] = {1.0,
      64.317825611817796,
      856.43002597698057,
      3882.4018360540163,
      7240.4677419565251,
      5930.7270118731694,
      2062.0933166032783,
      242.0057402402914};
MICA_MATHS_TABLE(mica_j0_yp)
[] = {15592.436785523574, -14663929.590397161, 5435264770.5187654,  -982136065717.9115,
      87590639439536.703, -3466283033847297.0, 44273326857256984.0, -18495080043698668.0};
MICA_MATHS_TABLE(mica_j0_yq)
[] = {1.0,
      1041.2835366425984,
      626107.330137135,
      268919633.39381415,
      86400248710.393494,
      20297961275010.555,
      3171577528429750.5,
      2.5059625617265306e+17};
MICA_MATHS_TABLE(mica_j0_rp)
[] = {-4794432209.7820177, 1956174919465.5657, -249248344360967.72, 9708622510473064.0};
MICA_MATHS_TABLE(mica_j0_rq)
[] = {1.0,
      499.56314715265103,
      173785.40167637469,
      48440965.833996207,
      11185553704.535683,
      2112775201154.8921,
      310518229857422.56,
      31812195594320496.0,
      1.7108629408104315e+18};
MICA_MATHS_TABLE(mica_j1_pp)
[] = {0.00076212561620817314,
      0.073139705694091756,
      1.1271960812968493,
      5.1120795114680764,
      8.424045901417724,
      5.2145159868236153,
      1.0};
MICA_MATHS_TABLE(mica_j1_pq)
[] = {0.00057132312807254865,
      0.068845590875449544,
      1.105142326340617,
      5.0738638612860152,
      8.3998555432760416,
      5.2098284868236187,
      1.0};
MICA_MATHS_TABLE(mica_j1_qp)
[] = {0.051086259475017659, 4.9821387295123341, 75.823828413254532, 366.7796093601508,
      710.85630499892613,   597.48961240061362, 211.68875710057213, 25.207020585802372};
MICA_MATHS_TABLE(mica_j1_qq)
[] = {1.0,
      74.237327703567516,
      1056.4488603826283,
      4986.4105833765361,
      9562.3189240475622,
      7997.0416044735066,
      2826.1927851763908,
      336.0936078106983};
MICA_MATHS_TABLE(mica_j1_yp)
[] = {1263204747.9017804,  -647355876379.16028,    114509511541823.73,
      -8127702555013251.0, 2.0243947571359491e+17, -7.7887719626595008e+17};
MICA_MATHS_TABLE(mica_j1_yq)
[] = {1.0,
      594.30159234612825,
      235564.09294306856,
      73481194.445972174,
      18760131610.870617,
      3882312774962.3857,
      620557727146953.75,
      68714108735530048.0,
      3.9727060811656064e+18};
MICA_MATHS_TABLE(mica_j1_rp)
[] = {-899971225.70555937, 452228297998.19403, -72749424522181.828, 3682957328638529.0};
MICA_MATHS_TABLE(mica_j1_rq)
[] = {1.0,
      620.83647811805429,
      256987.25675774884,
      83514679.143194929,
      22151159547.979252,
      4749141220799.9141,
      784369607876235.88,
      89522233618462736.0,
      5.3227862033268009e+18};

#define MICA_MATHS_2_OVER_PI 6.36619772367581343075535e-1

#define MICA_MATHS_1_OVER_SQRT_PI 5.64189583547756286948e-1

/* From 5 on: sqrt(2 / (pi x)) times p cos(t) - q sin(t), or p sin(t) + q cos(t), with
 * t = x - pi/4 for order 0 and x - 3 pi/4 for order 1, by the addition theorem: a
 * rounded t would cost as many bits as x has before the point. */
MICA_MATHS double mica_bessel_far(double p, double q, double x, int order, int second) {
  const double plus = sin(x) + cos(x), minus = sin(x) - cos(x);
  const double c = order ? minus : plus, s = order ? -plus : minus;
  return (second ? p * s + q * c : p * c - q * s) * MICA_MATHS_1_OVER_SQRT_PI / sqrt(x);
}

MICA_MATHS double mica_bessel_far_0(double x, int second) {
  const double w = 5 / x, z = w * w;
  const double p = mica_horner(z, mica_j0_pp, 6) / mica_horner(z, mica_j0_pq, 6);
  const double q = mica_horner(z, mica_j0_qp, 7) / mica_horner(z, mica_j0_qq, 7);
  return mica_bessel_far(p, w * q, x, 0, second);
}

MICA_MATHS double mica_bessel_far_1(double x, int second) {
  const double w = 5 / x, z = w * w;
  const double p = mica_horner(z, mica_j1_pp, 6) / mica_horner(z, mica_j1_pq, 6);
  const double q = mica_horner(z, mica_j1_qp, 7) / mica_horner(z, mica_j1_qq, 7);
  return mica_bessel_far(p, w * q, x, 1, second);
}

MICA_MATHS double mica_bessel_j0(double x) {
  x = fabs(x);
  if (x > 5) return mica_bessel_far_0(x, 0);
  const double z = x * x;
  if (x < 1e-5) return 1 - z / 4;
  const double zeros = (z - 5.78318596294678452118) * (z - 3.04712623436620863991e1);
  return zeros * mica_horner(z, mica_j0_rp, 3) / mica_horner(z, mica_j0_rq, 8);
}

MICA_MATHS double mica_bessel_j1(double x) {
  if (x < 0) return -mica_bessel_j1(-x);
  if (x > 5) return mica_bessel_far_1(x, 0);
  const double z = x * x;
  const double ratio = mica_horner(z, mica_j1_rp, 3) / mica_horner(z, mica_j1_rq, 8);
  return ratio * x * (z - 1.46819706421238932572e1) * (z - 4.92184563216946036703e1);
}

MICA_MATHS double mica_bessel_y0(double x) {
  if (x > 5) return mica_bessel_far_0(x, 1);
  if (x == 0) return -INFINITY;
  if (!(x > 0)) return NAN;
  const double z = x * x;
  const double ratio = mica_horner(z, mica_j0_yp, 7) / mica_horner(z, mica_j0_yq, 7);
  return ratio + MICA_MATHS_2_OVER_PI * log(x) * mica_bessel_j0(x);
}

MICA_MATHS double mica_bessel_y1(double x) {
  if (x > 5) return mica_bessel_far_1(x, 1);
  if (x == 0) return -INFINITY;
  if (!(x > 0)) return NAN;
  const double z = x * x;
  const double ratio = mica_horner(z, mica_j1_yp, 5) / mica_horner(z, mica_j1_yq, 8);
  return x * ratio + MICA_MATHS_2_OVER_PI * (mica_bessel_j1(x) * log(x) - 1 / x);
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
