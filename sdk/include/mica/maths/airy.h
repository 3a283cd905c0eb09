/* The Airy function Ai: rational functions of 2/3 |x|^(3/2) outside [-3.3, 2.09], inside
 * polynomials, about the first zero and about the right end. 0 above 103.892; NaN at the
 * infinities, as in torch. Relative error at most 4 units of the last place from -3.3 on; on
 * the left of it the error is 4 units of the amplitude |x|^(-1/4) / sqrt(pi), and 2^-105 of the
 * phase 2/3 |x|^(3/2), which passes that from |x| of 1e11 on; where the phase overflows, NaN.
 *
 * The coefficients are those of the Cephes library, copyright 1984 to 2000 and
 * 2018 Stephen L. Moshier, as SciPy keeps them; both under the 3-clause BSD
 * licence, which NOTICE.md beside this file quotes (airy_less is that library's an less its
 * ad); the last two tables are polynomials through Chebyshev nodes, computed with mpmath to
 * 60 digits.
 */
#ifndef MICA_MATHS_AIRY_H_
#define MICA_MATHS_AIRY_H_

#include <mica/maths/phase.h>
#include <mica/maths/real.h>

MICA_MATHS_TABLE(mica_airy_less)
[] = {-0.22105643111314122, -2.7486609845201393, -8.234291652624009,  -9.228863210769873,
      -4.4783015213652675,  -0.9417493985131387, -0.06944444444443576};
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

MICA_MATHS_TABLE(mica_airy_zero)
[] = {-1.1192095175826616e-14, 6.965937233559768e-14,   6.908032649781765e-13,   -9.707424009028144e-12,
      2.4029232646278357e-11,  3.0976279464074943e-10,  -2.6384834144315414e-09, 1.2518947313703048e-09,
      8.720179559479956e-08,   -4.2945456716696324e-07, -7.411800842136151e-07,  1.413784409081476e-05,
      -3.393916019437879e-05,  -0.00017718920123886684, 0.0011408754894640398,   -0.0003870349759710985,
      -0.01366255184081534,    0.03194451370480302,     0.05843423522672424,     -0.27325103681630647,
      1.2948132328314423e-18,  0.7012108227206914};
MICA_MATHS_TABLE(mica_airy_middle)
[] = {1.5908427110513807e-15, -2.216813017041079e-14,  6.526475770790517e-14,   8.96983596790035e-15,
      1.5443209693335438e-13, 1.7375106694409424e-11,  -3.4535204402475986e-11, -3.251159781346504e-10,
      -3.074764291362925e-09, -5.362766081108536e-09,  6.201076660353945e-08,   5.86335779060093e-07,
      1.9641151630916613e-06, -2.7356280907373944e-06, -5.847881988584223e-05,  -0.00026386661263233605,
      -0.000399271434161737,  0.0016201346806207601,   0.011308155605898958,    0.031661879451449715,
      0.04685044393652653,    0.030244183356608};

/* 2/3 x^(3/2), and in `lost` what rounding took from it. */
MICA_MATHS double mica_airy_zeta(double x, MICA_MATHS_RESULT lost) {
  const double root = sqrt(x), power = x * root, zeta = 2 * power / 3;
  const double root_lost = fma(-root, root, x) / (2 * root);
  *lost = (2 * (fma(x, root, -power) + x * root_lost) + fma(-3, zeta, 2 * power)) / 3;
  return zeta;
}

MICA_MATHS double mica_airy_ai(double x) {
  const double one_over_sqrt_pi = 5.64189583547756286948e-1;
  if (isnan(x) || isinf(x)) return NAN;
  if (x > 103.892) return 0;
  if (x < -3.3) {
    double lost, cosine;
    const double zeta = mica_airy_zeta(-x, &lost), z = 1 / zeta, zz = z * z;
    const double f = 1 + zz * mica_horner(zz, mica_airy_afn, 8) / mica_horner(zz, mica_airy_afd, 9);
    const double g = z * mica_horner(zz, mica_airy_agn, 10) / mica_horner(zz, mica_airy_agd, 10);
    const double sine = mica_phase(zeta, lost, &cosine); /* of zeta - pi/4 */
    return one_over_sqrt_pi / sqrt(sqrt(-x)) * (cosine * f + sine * g);
  }
  if (x < -0.6) return mica_near_zero(x, -2.338107410459767, -3.912260409818305e-17, mica_airy_zero, 21);
  if (x < 2.09375) return mica_horner(2.09375 - x, mica_airy_middle, 21);
  double lost; /* exp(-zeta) feels every bit of zeta */
  const double zeta = mica_airy_zeta(x, &lost), z = 1 / zeta;
  const double ratio = 1 + z * mica_horner(z, mica_airy_less, 6) / mica_horner(z, mica_airy_ad, 7);
  const double value = one_over_sqrt_pi / 2 * exp(-zeta) / sqrt(sqrt(x)) * ratio;
  return value - value * lost;
}

#endif /* MICA_MATHS_AIRY_H_ */
