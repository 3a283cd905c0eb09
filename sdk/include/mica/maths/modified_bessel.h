/* Modified Bessel functions of orders 0 and 1, plain and scaled by exp(-|x|)
 * (i0e, i1e) or exp(x) (k0e, k1e): the power series up to 8, a Chebyshev series beyond it;
 * Chebyshev series on both sides of 2, and about 2 on [1, 2], where the logarithmic form
 * cancels. Relative errors are at most 4 units of the last place; i0 and i1 overflow where
 * the value does. Note [Vectors by the same text], in real.h, holds for all.
 *
 * The coefficients are those of the Cephes library, copyright 1984 to 2000 and
 * 2018 Stephen L. Moshier, as SciPy keeps them; both under the 3-clause BSD
 * licence, which NOTICE.md beside this file quotes; those of k0_middle and k1_middle are
 * polynomials through Chebyshev nodes, computed with mpmath to 60 digits.
 */
#if !defined(MICA_MATHS_MODIFIED_BESSEL_H_) || defined(MICA_MATHS_VECTORS)
#define MICA_MATHS_MODIFIED_BESSEL_H_

#ifndef MICA_MATHS_VECTORS
#include <mica/maths/real.h>
#endif

MICA_MATHS_TABLE(mica_i0_b)
[] = {-7.2331804878747538e-18, -4.8305044859441819e-18, 4.4656214202967598e-17,  3.4612228676974612e-17,
      -2.8276239805165836e-16, -3.425485619677219e-16,  1.7725601330565263e-15,  3.8116806693526224e-15,
      -9.5548466988283073e-15, -4.1505693472872222e-14, 1.54008621752141e-14,    3.8527783827421426e-13,
      7.180124451383666e-13,   -1.7941785315068062e-12, -1.3215811840447713e-11, -3.1499165279632416e-11,
      1.1889147107846439e-11,  4.9406023882249701e-10,  3.3962320257083865e-09,  2.266668990498178e-08,
      2.0489185894690638e-07,  2.8913705208347567e-06,  6.8897583469168245e-05,  0.0033691164782556943,
      0.80449041101410879};
MICA_MATHS_TABLE(mica_i1_b)
[] = {7.5172963108421052e-18,  4.4143483230717077e-18,  -4.6503053684893586e-17, -3.2095259219934238e-17,
      2.9626289976459501e-16,  3.3082023109209285e-16,  -1.8803547755107825e-15, -3.8144030724370075e-15,
      1.0420276984128802e-14,  4.272440016711951e-14,   -2.1015418427726643e-14, -4.0835511110921974e-13,
      -7.1985517762459084e-13, 2.0356285441470896e-12,  1.4125807436613782e-11,  3.2526035830154884e-11,
      -1.8974958123505413e-11, -5.5897434621965838e-10, -3.835380385964237e-09,  -2.6314688468895196e-08,
      -2.5122362378702088e-07, -3.8825648088776906e-06, -0.00011058893876262371, -0.0097610974913614687,
      0.77857623501828011};
MICA_MATHS_TABLE(mica_k0_a)
[] = {1.374465435613523e-16,  4.2598161427966103e-14, 1.0349695257633842e-11, 1.9045163772202091e-09,
      2.5347910790261494e-07, 2.2862121031194519e-05, 0.001264615411446926,   0.035979936515361501,
      0.3442898999246285,     -0.53532739323390277};
MICA_MATHS_TABLE(mica_k0_b)
[] = {5.300433772686263e-18,  -1.6475804301524212e-17, 5.2103915050390274e-17, -1.678231096805412e-16,
      5.5120559785243193e-16, -1.8485933773437788e-15, 6.3400764774050706e-15, -2.2275133269916698e-14,
      8.0328907753635752e-14, -2.9800969231727303e-13, 1.140340588208475e-12,  -4.5145978833739441e-12,
      1.8559491149547177e-11, -7.957489244477107e-11,  3.5773972814003009e-10, -1.69753450938906e-09,
      8.5740340174142253e-09, -4.6604898976879478e-08, 2.7668136394450149e-07, -1.8317555227191195e-06,
      1.39498137188765e-05,   -0.00012849549581627802, 0.0015698838857300533,  -0.031448101311964502,
      2.4403030820659555};
MICA_MATHS_TABLE(mica_k1_a)
[] = {-7.0238634793862882e-18, -2.427449850519366e-15,  -6.6669016941993295e-13, -1.4114883926335278e-10,
      -2.213387630734726e-08,  -2.4334061415659684e-06, -0.0001730288957513052,  -0.0069757238596398641,
      -0.12261118082265715,    -0.35315596077654487,    1.5253002273389478};
MICA_MATHS_TABLE(mica_k1_b)
[] = {-5.7567444836650174e-18, 1.7940508731475592e-17, -5.6894625584428592e-17, 1.8380935443666389e-16,
      -6.0570472483733185e-16, 2.0387031656243341e-15, -7.0198370904183138e-15, 2.4771544244813043e-14,
      -8.9767051823249939e-14, 3.3484196660784293e-13, -1.2891739609510289e-12, 5.1396396734817301e-12,
      -2.1299678384275683e-11, 9.2183151876050057e-11, -4.1903547593418965e-10, 2.015049755197033e-09,
      -1.0345762465678097e-08, 5.7410841254500495e-08, -3.5019606030878126e-07, 2.406484947837217e-06,
      -1.936197974166083e-05,  0.00019521551847135162, -0.0028578168596227792,  0.10392373657681724,
      2.7206261904844427};
MICA_MATHS_TABLE(mica_i0_series)
[] = {2.5976979980828152e-48,
      1.4962740468957016e-45,
      7.915289708078262e-43,
      3.8310002187098785e-40,
      1.6894710964510564e-37,
      6.757884385804225e-35,
      2.4395962632753253e-32,
      7.904291893012054e-30,
      2.2843403570804838e-27,
      5.8479113141260385e-25,
      1.3157800456783586e-22,
      2.5789288895295828e-20,
      4.358389823304995e-18,
      6.276081345559193e-16,
      7.594058428126623e-14,
      7.594058428126624e-12,
      6.151187326782565e-10,
      3.936759889140842e-08,
      1.9290123456790124e-06,
      6.944444444444444e-05,
      0.001736111111111111,
      0.027777777777777776,
      0.25,
      1.0,
      1.0};
MICA_MATHS_TABLE(mica_i1_series)
[] = {1.0390791992331261e-49,
      6.234475195398757e-47,
      3.4414303078601135e-44,
      1.7413637357772174e-41,
      8.045100459290744e-39,
      3.3789421929021126e-36,
      1.2839980333028028e-33,
      4.391273273895586e-31,
      1.3437296218120491e-28,
      3.654944571328774e-26,
      8.771866971189057e-24,
      1.842092063949702e-21,
      3.352607556388458e-19,
      5.230067787965994e-17,
      6.903689480115112e-15,
      7.594058428126623e-13,
      6.834652585313961e-11,
      4.920949861426052e-09,
      2.755731922398589e-07,
      1.1574074074074073e-05,
      0.00034722222222222224,
      0.006944444444444444,
      0.08333333333333333,
      0.5,
      1.0};
MICA_MATHS_TABLE(mica_k0_middle)
[] = {1.1218570210378086e-05, -0.00010581279223169405, 0.0004746777552943084, -0.0013329315858080458,
      0.002617132289490345,   -0.0038024481151293214,  0.004231928958731761,  -0.0036769927540723562,
      0.002536106671742117,   -0.0013783382427037456,  0.0006281133769050716, -0.00016636142277826781,
      0.00015911420831902243, 0.00021307222997105803,  0.0005180384031553673, 0.0012089495172326466,
      0.0029284970900365593,  0.007326370661899922,    0.018503315510867806,  0.044457626514593715,
      0.09191340682892599,    0.13986588181652226,     0.11389387274953344};
MICA_MATHS_TABLE(mica_k1_middle)
[] = {8.194259262104818e-05, -0.0008603777621993166,  0.004296703281069409,  -0.013491695193928685,
      0.029789193577949638,  -0.04904563914902866,    0.06237497075919361,   -0.06263731542161363,
      0.050400069927539246,  -0.03274060225226125,    0.01731380509674355,   -0.007348601236154912,
      0.002701137187828399,  -0.00047461408564112217, 0.0006623698274731368, 0.0009771204588123062,
      0.0020357813800188584, 0.004126885551712288,    0.008464567739249416,  0.017570829428958948,
      0.03663186171790549,   0.07401326174687577,     0.13337287954979404,   0.18382681365779455,
      0.13986588181652243};

/* Up to 8, by the power series DLMF 10.25.2, whose terms have one sign. */
MICA_MATHS MICA_REAL mica_i0_near(MICA_REAL x) { return mica_horner(x * x / 4, mica_i0_series, 24); }
MICA_MATHS MICA_REAL mica_i1_near(MICA_REAL x) { return x / 2 * mica_horner(x * x / 4, mica_i1_series, 24); }

MICA_MATHS MICA_REAL mica_i0e(MICA_REAL x) {
  const MICA_REAL z = fabs(x);
  const MICA_MASK far = z > 8;
  MICA_REAL value = 0;
  if (mica_any(!far)) value = mica_i0_near(x) * exp(-z);
  if (!mica_any(far)) return value;
  return mica_select(far, mica_chebyshev_sum(32 / z - 2, mica_i0_b, 25) / sqrt(z), value);
}

MICA_MATHS MICA_REAL mica_i1e(MICA_REAL x) {
  const MICA_REAL z = fabs(x);
  const MICA_MASK far = z > 8;
  MICA_REAL value = 0;
  if (mica_any(!far)) value = mica_i1_near(x) * exp(-z);
  if (!mica_any(far)) return value;
  const MICA_REAL size = mica_chebyshev_sum(32 / z - 2, mica_i1_b, 25) / sqrt(z);
  return mica_select(far, mica_select(x < 0, -size, size), value);
}

/* exp(z) * scaled in two halves, since exp(z) overflows before the product does. */
MICA_MATHS MICA_REAL mica_unscaled(MICA_REAL z, MICA_REAL scaled) {
  const MICA_MASK plain = z <= MICA_MATHS_MAX_LOG;
  const MICA_REAL value = exp(z) * scaled;
  if (!mica_any(!plain)) return value;
  const MICA_REAL root = exp(z / 2);
  const MICA_REAL halves =
      mica_select(root == INFINITY, mica_select(scaled < 0, -root, root), root * scaled * root);
  return mica_select(plain, value, halves);
}

MICA_MATHS MICA_REAL mica_i0(MICA_REAL x) {
  const MICA_MASK far = fabs(x) > 8;
  const MICA_REAL value = mica_i0_near(x);
  return mica_any(far) ? mica_select(far, mica_unscaled(fabs(x), mica_i0e(x)), value) : value;
}
MICA_MATHS MICA_REAL mica_i1(MICA_REAL x) {
  const MICA_MASK far = fabs(x) > 8;
  const MICA_REAL value = mica_i1_near(x);
  return mica_any(far) ? mica_select(far, mica_unscaled(fabs(x), mica_i1e(x)), value) : value;
}

/* k0 (order 0) and k1 on (0, 2]. */
MICA_MATHS MICA_REAL mica_k_near(MICA_REAL x, int order) {
  const MICA_MASK middle = x > 1;
  MICA_REAL value = 0;
  if (mica_any(middle))
    value = order == 0 ? mica_horner(2 - x, mica_k0_middle, 22) : mica_horner(2 - x, mica_k1_middle, 24);
  if (!mica_any(!middle)) return value;
  const MICA_REAL z = x * x - 2, logarithm = log(0.5 * x);
  const MICA_REAL small = order == 0 ? mica_chebyshev_sum(z, mica_k0_a, 10) - logarithm * mica_i0(x)
                                     : logarithm * mica_i1(x) + mica_chebyshev_sum(z, mica_k1_a, 11) / x;
  return mica_select(middle, value, small);
}

/* Plain, or times exp(x) where `scaled`. */
MICA_MATHS MICA_REAL mica_k(MICA_REAL x, int order, int scaled) {
  const MICA_MASK far = x > 2;
  MICA_REAL value = 0;
  if (mica_any(!far)) {
    const MICA_REAL y = mica_select((x > 0) & !far, x, 1);
    value = mica_k_near(y, order);
    if (scaled) value = value * exp(y);
    value = mica_select(x == 0, INFINITY, mica_select(x > 0, value, NAN));
  }
  if (!mica_any(far)) return value;
  const MICA_REAL y = mica_select(far, x, 3), z = 8 / y - 2;
  MICA_REAL further =
      (order == 0 ? mica_chebyshev_sum(z, mica_k0_b, 25) : mica_chebyshev_sum(z, mica_k1_b, 25)) / sqrt(y);
  if (!scaled) further = exp(-y) * further;
  return mica_select(far, further, value);
}

MICA_MATHS MICA_REAL mica_k0(MICA_REAL x) { return mica_k(x, 0, 0); }
MICA_MATHS MICA_REAL mica_k0e(MICA_REAL x) { return mica_k(x, 0, 1); }
MICA_MATHS MICA_REAL mica_k1(MICA_REAL x) { return mica_k(x, 1, 0); }
MICA_MATHS MICA_REAL mica_k1e(MICA_REAL x) { return mica_k(x, 1, 1); }

#endif /* MICA_MATHS_MODIFIED_BESSEL_H_ */
