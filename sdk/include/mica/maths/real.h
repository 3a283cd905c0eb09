/* What the scalar functions of this folder are written with: words that C, C++,
 * CUDA and OpenCL C spell differently, and polynomials.
 *
 * Included by every file of mica/maths/; a backend that computes `compute`
 * programs calls the functions of functions.h, one for each opcode. Always holds:
 * a function is pure, defined on every double (NaN in, NaN out), and ends after
 * at most a few thousand steps (a million in polynomials of such a degree).
 */
#ifndef MICA_MATHS_REAL_H_
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

#define MICA_MATHS_PI 3.14159265358979323846
#define MICA_MATHS_EPSILON 1.11022302462515654042e-16 /* half the distance from 1 to the next double */
#define MICA_MATHS_MAX_LOG 7.09782712893383996843e2

/* c[0] x^degree + ... + c[degree]. */
MICA_MATHS double mica_horner(double x, MICA_MATHS_CONSTANTS c, int degree) {
  double sum = c[0];
  for (int i = 1; i <= degree; ++i) sum = sum * x + c[i];
  return sum;
}

/* The sum of c[i] T_(count - 1 - i)(x / 2), the last term halved, by Clenshaw's recurrence. */
MICA_MATHS double mica_chebyshev_sum(double x, MICA_MATHS_CONSTANTS c, int count) {
  double b0 = c[0], b1 = 0, b2 = 0;
  for (int i = 1; i < count; ++i) {
    b2 = b1;
    b1 = b0;
    b0 = x * b1 - b2 + c[i];
  }
  return 0.5 * (b0 - b2);
}

#endif /* MICA_MATHS_REAL_H_ */
