/* What the scalar functions of this folder are written with: words that C, C++,
 * CUDA and OpenCL C spell differently, and polynomials.
 *
 * Included by every file of mica/maths/; a backend that computes `compute`
 * programs calls the functions of functions.h, one for each opcode. Always holds:
 * a function is pure, defined on every double (NaN in, NaN out), and ends after
 * at most a few thousand steps (a million in polynomials of such a degree).
 *
 * Note [Vectors by the same text]
 * A function whose numbers are MICA_REAL and whose comparisons are
 * MICA_MASK is valid for one double and for a vector of them. It asks `mica_any(mask)` before a
 * branch or a further step, and keeps what others have by `mica_select(mask, yes, no)`. Its file may
 * be included again, in a namespace of C++, with MICA_MATHS_VECTORS defined and MICA_REAL a class
 * that has a double's operators and functions.
 */
#if !defined(MICA_MATHS_REAL_H_) || defined(MICA_MATHS_VECTORS)
#define MICA_MATHS_REAL_H_

#if defined(__OPENCL_VERSION__)
#define MICA_MATHS static inline
#define MICA_MATHS_CONSTANTS __constant const double*
#define MICA_MATHS_TABLE(name) __constant const double name
#else
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
#define MICA_MATHS static inline __device__
#define MICA_MATHS_TABLE(name) static __device__ const double name
#else
#define MICA_MATHS static inline
#define MICA_MATHS_TABLE(name) static const double name
#include <math.h>
#endif
#define MICA_MATHS_CONSTANTS const double*
#endif

#ifndef MICA_MATHS_VECTORS
#define MICA_REAL double
#define MICA_MASK int
MICA_MATHS int mica_any(int mask) { return mask; }
MICA_MATHS double mica_select(int mask, double yes, double no) { return mask ? yes : no; }
/* a b + c; vectors round it once. */
MICA_MATHS double mica_multiply_add(double a, double b, double c) { return a * b + c; }
#endif

#define MICA_MATHS_PI 3.14159265358979323846
#define MICA_MATHS_EPSILON 1.11022302462515654042e-16 /* half the distance from 1 to the next double */
#define MICA_MATHS_MAX_LOG 7.09782712893383996843e2

/* c[0] x^degree + ... + c[degree]. */
MICA_MATHS MICA_REAL mica_horner(MICA_REAL x, MICA_MATHS_CONSTANTS c, int degree) {
  MICA_REAL sum = c[0];
  for (int i = 1; i <= degree; ++i) sum = mica_multiply_add(sum, x, c[i]);
  return sum;
}

/* The sum of c[i] T_(count - 1 - i)(x / 2), the last term halved, by Clenshaw's recurrence. */
MICA_MATHS MICA_REAL mica_chebyshev_sum(MICA_REAL x, MICA_MATHS_CONSTANTS c, int count) {
  MICA_REAL b0 = c[0], b1 = 0, b2 = 0;
  for (int i = 1; i < count; ++i) {
    b2 = b1;
    b1 = b0;
    b0 = mica_multiply_add(x, b1, c[i] - b2);
  }
  return 0.5 * (b0 - b2);
}

#endif /* MICA_MATHS_REAL_H_ */
