/* The derivative of log |gamma|: on [1, 2] a polynomial about the root, from there up to 10
 * the recurrence, then the asymptotic series (DLMF 5.11.2), left of 0 reflection. At 0 an
 * infinity against the zero's sign, as in torch; NaN at negative integers. Right of 0 the
 * relative error is at most 3 units of the last place, at the root too; left of 0 it is a
 * few units of the larger of the reflection's two terms, which cancel at each root.
 *
 * Note [Vectors by the same text], in real.h, holds for it.
 *
 * The table is a polynomial through Chebyshev nodes, computed with mpmath to 60 digits.
 */
#if !defined(MICA_MATHS_DIGAMMA_H_) || defined(MICA_MATHS_VECTORS)
#define MICA_MATHS_DIGAMMA_H_

#ifndef MICA_MATHS_VECTORS
#include <mica/maths/real.h>
#endif

MICA_MATHS_TABLE(mica_digamma_root)
[] = {-8.153978973309418e-05, 0.00019426548768522768, -0.00019476490125987326, 0.00019075640343160688,
      -0.0003193696671207108, 0.0005180490833340102,  -0.000747499595599249,   0.0010766128230576774,
      -0.0015749355480831084, 0.0023053483271584774,  -0.0033700709071922902,  0.004926769418388227,
      -0.0072045109574719185, 0.010538791788919843,   -0.015424767205798105,   0.022597648248248545,
      -0.033161126430834756,  0.04880428816323914,    -0.07219956125728176,    0.10782405069127954,
      -0.16394270544239933,   0.2584997609556509,     -0.44276316898359214,    0.9676722454476212};
MICA_MATHS_TABLE(mica_digamma_far)
[] = {8.33333333333333333333e-2,  -2.10927960927960927961e-2, 7.57575757575757575758e-3,
      -4.16666666666666666667e-3, 3.96825396825396825397e-3,  -8.33333333333333333333e-3,
      8.33333333333333333333e-2};

/* d P(d), with d the distance of x from the root. */
MICA_MATHS MICA_REAL mica_digamma_near_root(MICA_REAL x) {
  const MICA_REAL distance = x - 1.4616321449683622 - 9.549995429965697e-17;
  return distance * mica_horner(distance, mica_digamma_root, 23);
}

MICA_MATHS MICA_REAL mica_digamma(MICA_REAL x) {
  const MICA_REAL given = x;
  MICA_REAL sum = 0;
  const MICA_MASK left = x < 0;
  if (mica_any(left)) {
    const MICA_REAL rest = x - rint(x); /* exact, and so is what tan sees near a pole */
    const MICA_REAL mirrored = mica_select(rest == 0, NAN, -MICA_MATHS_PI / tan(MICA_MATHS_PI * rest));
    sum = mica_select(left, mirrored, sum);
    x = mica_select(left, 1 - x, x);
  }
  const MICA_MASK small = x < 1;
  if (mica_any(small)) {
    sum = mica_select(small, sum - 1 / x, sum);
    x = mica_select(small, x + 1, x);
  }
  const MICA_MASK far = x >= 10;
  MICA_REAL value = 0;
  if (mica_any(!far)) {
    MICA_REAL at = mica_select(far, 2, x), steps = 0;
    for (MICA_MASK above = at > 2; mica_any(above); above = at > 2) {
      at = mica_select(above, at - 1, at);
      steps = mica_select(above, steps + 1 / at, steps);
    }
    value = steps + mica_digamma_near_root(at);
  }
  if (mica_any(far)) {
    const MICA_REAL z = 1 / (x * x);
    value = mica_select(far, log(x) - 0.5 / x - z * mica_horner(z, mica_digamma_far, 6), value);
  }
  return mica_select(given == 0, copysign((double)INFINITY, -given), sum + value);
}

#endif /* MICA_MATHS_DIGAMMA_H_ */
