/* Every scalar function of this folder: what `compute` expressions may call by
 * the name in lower case, beside the opcodes of program.h that have vector forms.
 *
 * MICA_FORALL_MATHS lists them, those of one argument as ROW1 and those of two as ROW2. The list is
 * append-only, whatever the arity of what comes: MICA_OP_<name> are numbered in its order after the opcodes
 * of 1.0. MICA_FORALL_MATHS1 and 2 give those of one arity, of which a backend makes its table:
 *     #define ROW(X, NAME, name) at[MICA_OP_##NAME] = Apply<mica_##name>;
 *     MICA_FORALL_MATHS1(ROW, _)
 * X is handed on, for lists made of lists.
 * All compute in double, so that results rounded to float32 are right to half a ULP
 * nearly everywhere. program.h includes this list alone; the functions are in maths.h.
 */
#ifndef MICA_MATHS_FUNCTIONS_H_
#define MICA_MATHS_FUNCTIONS_H_

/* clang-format off */
#define MICA_FORALL_MATHS(ROW1, ROW2, X) \
  ROW1(X, AIRY_AI, airy_ai) ROW1(X, BESSEL_J0, bessel_j0) ROW1(X, BESSEL_J1, bessel_j1) \
  ROW1(X, BESSEL_Y0, bessel_y0) ROW1(X, BESSEL_Y1, bessel_y1) \
  ROW1(X, SPHERICAL_BESSEL_J0, spherical_bessel_j0) ROW1(X, I0, i0) ROW1(X, I0E, i0e) ROW1(X, I1, i1) \
  ROW1(X, I1E, i1e) ROW1(X, K0, k0) ROW1(X, K0E, k0e) ROW1(X, K1, k1) ROW1(X, K1E, k1e) \
  ROW1(X, ERFCX, erfcx) ROW1(X, NDTR, ndtr) ROW1(X, LOG_NDTR, log_ndtr) ROW1(X, NDTRI, ndtri) \
  ROW1(X, FREXP_MANTISSA, frexp_mantissa) ROW1(X, FREXP_EXPONENT, frexp_exponent) \
  ROW2(X, ZETA, zeta) ROW2(X, POLYGAMMA, polygamma) ROW2(X, IGAMMA, igamma) ROW2(X, IGAMMAC, igammac) \
  ROW2(X, CHEBYSHEV_POLYNOMIAL_T, chebyshev_polynomial_t) \
  ROW2(X, CHEBYSHEV_POLYNOMIAL_U, chebyshev_polynomial_u) \
  ROW2(X, CHEBYSHEV_POLYNOMIAL_V, chebyshev_polynomial_v) \
  ROW2(X, CHEBYSHEV_POLYNOMIAL_W, chebyshev_polynomial_w) \
  ROW2(X, SHIFTED_CHEBYSHEV_POLYNOMIAL_T, shifted_chebyshev_polynomial_t) \
  ROW2(X, SHIFTED_CHEBYSHEV_POLYNOMIAL_U, shifted_chebyshev_polynomial_u) \
  ROW2(X, SHIFTED_CHEBYSHEV_POLYNOMIAL_V, shifted_chebyshev_polynomial_v) \
  ROW2(X, SHIFTED_CHEBYSHEV_POLYNOMIAL_W, shifted_chebyshev_polynomial_w) \
  ROW2(X, HERMITE_POLYNOMIAL_H, hermite_polynomial_h) \
  ROW2(X, HERMITE_POLYNOMIAL_HE, hermite_polynomial_he) \
  ROW2(X, LAGUERRE_POLYNOMIAL_L, laguerre_polynomial_l) \
  ROW2(X, LEGENDRE_POLYNOMIAL_P, legendre_polynomial_p) ROW2(X, MVLGAMMA, mvlgamma)
#define MICA_NO_MATHS_ROW(X, NAME, name)
#define MICA_FORALL_MATHS1(ROW, X) MICA_FORALL_MATHS(ROW, MICA_NO_MATHS_ROW, X)
#define MICA_FORALL_MATHS2(ROW, X) MICA_FORALL_MATHS(MICA_NO_MATHS_ROW, ROW, X)
/* clang-format on */

#endif /* MICA_MATHS_FUNCTIONS_H_ */
