/* Every scalar function of this folder: what `compute` expressions may call by
 * the name in lower case, beside the opcodes of program.h that have vector forms.
 *
 * MICA_FORALL_MATHS1 and 2 list those of one and of two arguments; the list is
 * append-only, since MICA_OP_<name> are numbered in its order after the opcodes
 * of 1.0. A backend makes its table of it:
 *     #define ROW(X, NAME, name) at[MICA_OP_##NAME] = Apply<mica_##name>;
 *     MICA_FORALL_MATHS1(ROW, _)
 * X is handed on, for lists made of lists.
 * All compute in double, so that results rounded to float32 are right to half a ULP
 * nearly everywhere. program.h includes this list alone; the functions are in maths.h.
 */
#ifndef MICA_MATHS_FUNCTIONS_H_
#define MICA_MATHS_FUNCTIONS_H_

/* clang-format off */
#define MICA_FORALL_MATHS1(ROW, X) \
  ROW(X, AIRY_AI, airy_ai) ROW(X, BESSEL_J0, bessel_j0) ROW(X, BESSEL_J1, bessel_j1) \
  ROW(X, BESSEL_Y0, bessel_y0) ROW(X, BESSEL_Y1, bessel_y1) \
  ROW(X, SPHERICAL_BESSEL_J0, spherical_bessel_j0) ROW(X, I0, i0) ROW(X, I0E, i0e) ROW(X, I1, i1) \
  ROW(X, I1E, i1e) ROW(X, K0, k0) ROW(X, K0E, k0e) ROW(X, K1, k1) ROW(X, K1E, k1e) ROW(X, ERFCX, erfcx) \
  ROW(X, NDTR, ndtr) ROW(X, LOG_NDTR, log_ndtr) ROW(X, NDTRI, ndtri) \
  ROW(X, FREXP_MANTISSA, frexp_mantissa) ROW(X, FREXP_EXPONENT, frexp_exponent)
#define MICA_FORALL_MATHS2(ROW, X) \
  ROW(X, ZETA, zeta) ROW(X, POLYGAMMA, polygamma) ROW(X, IGAMMA, igamma) ROW(X, IGAMMAC, igammac) \
  ROW(X, CHEBYSHEV_POLYNOMIAL_T, chebyshev_polynomial_t) \
  ROW(X, CHEBYSHEV_POLYNOMIAL_U, chebyshev_polynomial_u) \
  ROW(X, CHEBYSHEV_POLYNOMIAL_V, chebyshev_polynomial_v) \
  ROW(X, CHEBYSHEV_POLYNOMIAL_W, chebyshev_polynomial_w) \
  ROW(X, SHIFTED_CHEBYSHEV_POLYNOMIAL_T, shifted_chebyshev_polynomial_t) \
  ROW(X, SHIFTED_CHEBYSHEV_POLYNOMIAL_U, shifted_chebyshev_polynomial_u) \
  ROW(X, SHIFTED_CHEBYSHEV_POLYNOMIAL_V, shifted_chebyshev_polynomial_v) \
  ROW(X, SHIFTED_CHEBYSHEV_POLYNOMIAL_W, shifted_chebyshev_polynomial_w) \
  ROW(X, HERMITE_POLYNOMIAL_H, hermite_polynomial_h) ROW(X, HERMITE_POLYNOMIAL_HE, hermite_polynomial_he) \
  ROW(X, LAGUERRE_POLYNOMIAL_L, laguerre_polynomial_l) ROW(X, LEGENDRE_POLYNOMIAL_P, legendre_polynomial_p) \
  ROW(X, MVLGAMMA, mvlgamma)
/* clang-format on */

#endif /* MICA_MATHS_FUNCTIONS_H_ */
