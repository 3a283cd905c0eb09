/* The Airy function Ai: rational functions of 2/3 |x|^(3/2) outside [-2.09, 2.09],
 * where the power series takes over. 0 above 103.892; NaN at the infinities, as
 * in torch. Relative error about 1e-15 for x > 0, absolute 1e-15 on the left.
 *
 * The coefficients are those of the Cephes library, copyright 1984 to 2000 and
 * 2018 Stephen L. Moshier, as SciPy keeps them; both under the 3-clause BSD
 * licence, which NOTICE.md beside this file quotes.
 */
#ifndef MICA_MATHS_AIRY_H_
#define MICA_MATHS_AIRY_H_

#include "mica/maths/real.h"

MICA_MATHS_TABLE(mica_airy_an)
[] = {0.34653810152562903, 12.007595273964581, 76.279605361523451, 168.08922493463058,
      159.75639135016442,  70.536090684044424, 14.026469116338967, 1.0};
MICA_MATHS_TABLE(mica_airy_ad)
[] = {0.56759453263877024, 14.75625625848472,  84.51389701414746,  177.31808814540045,
      164.23469287152969,  71.477840082557563, 14.095913560783403, 1.0};
MICA_MATHS_TABLE(mica_airy_afn)
[] = {-0.13169632341833179,    -0.62645654443191234,    -0.69315803603693349,
      -0.27977998154511913,    -0.04919001326095003,    -0.0040626592359488539,
      -0.00015927649623926211, -2.7764910815523292e-06, -1.6778769848911465e-08};
MICA_MATHS_TABLE(mica_airy_afd)
[] = {1.0,
      13.356042070655324,
      32.682503279522464,
      26.736704094149957,
      9.1870740290725958,
      1.4752914677166642,
      0.11568717379518804,
      0.0044029164161521117,
      7.5472034828741425e-05,
      4.5185009297058035e-07};
MICA_MATHS_TABLE(mica_airy_agn)
[] = {0.01973399320916857,    0.39110302961568827,    1.0657989759959559,    0.93916922981665019,
      0.35146565610554764,    0.063388891962892546,   0.0058580411304838846, 0.00028285160083673701,
      6.9879366999726097e-06, 8.1178923955438924e-08, 3.4155178476592362e-10};
MICA_MATHS_TABLE(mica_airy_agd)
[] = {1.0,
      9.3089290807744192,
      19.835292871831214,
      15.564662893286462,
      5.4768606942297549,
      0.95429361161896187,
      0.086458082635239214,
      0.0041265652382422259,
      0.00010125908511650914,
      1.1716673321441352e-06,
      4.9183457006292999e-09};

MICA_MATHS double mica_airy_ai(double x) {
  const double one_over_sqrt_pi = 5.64189583547756286948e-1;
  if (isnan(x) || isinf(x)) return NAN;
  if (x > 103.892) return 0;
  if (x < -2.09) {
    const double zeta = -2 * x * sqrt(-x) / 3, z = 1 / zeta, zz = z * z;
    const double f = 1 + zz * mica_horner(zz, mica_airy_afn, 8) / mica_horner(zz, mica_airy_afd, 9);
    const double g = z * mica_horner(zz, mica_airy_agn, 10) / mica_horner(zz, mica_airy_agd, 10);
    const double theta = zeta + 0.25 * MICA_MATHS_PI;
    return one_over_sqrt_pi / sqrt(sqrt(-x)) * (sin(theta) * f - cos(theta) * g);
  }
  if (x >= 2.09) {
    /* exp(-zeta) feels every bit of zeta: `lost` is what rounding took from it. */
    const double root = sqrt(x), power = x * root;
    const double zeta = 2 * power / 3, z = 1 / zeta;
    const double root_lost = fma(-root, root, x) / (2 * root);
    const double lost = (2 * (fma(x, root, -power) + x * root_lost) + fma(-3, zeta, 2 * power)) / 3;
    const double ratio = mica_horner(z, mica_airy_an, 7) / mica_horner(z, mica_airy_ad, 7);
    return one_over_sqrt_pi * ratio / (2 * sqrt(root)) * exp(-zeta) * (1 - lost);
  }
  double f = 1, g = x, uf = 1, ug = x;
  const double z = x * x * x;
  for (double k = 1; fabs(uf) > MICA_MATHS_EPSILON * fabs(f);) {
    uf *= z;
    ug *= z;
    uf /= (k + 1) * (k + 2);
    ug /= (k + 2) * (k + 3);
    f += uf;
    g += ug;
    k += 3;
  }
  return 0.355028053887817239260 * f - 0.258819403792806798405 * g;
}

#endif /* MICA_MATHS_AIRY_H_ */
