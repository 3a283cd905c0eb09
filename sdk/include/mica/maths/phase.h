/* The oscillating functions far from 0, and near a zero.
 *
 * x - pi/4 is reduced with pi/4 in three parts (Cody and Waite) and kept as a sum of two
 * doubles, so that sine and cosine are right to a unit of their own last place, near their
 * zeros too. Phases beyond 2^18 go to the C library's sine of x, whose rounding then
 * costs a unit of 1; there `low` may be any angle.
 */
#ifndef MICA_MATHS_PHASE_H_
#define MICA_MATHS_PHASE_H_

#include <mica/maths/real.h>

#if defined(__OPENCL_VERSION__)
#define MICA_MATHS_RESULT __private double*
#else
#define MICA_MATHS_RESULT double*
#endif

/* sin(t), and cos(t) in `cosine`, of t = x + low - pi/4 for x >= 1, and `low` small beside x. */
MICA_MATHS double mica_phase(double x, double low, MICA_MATHS_RESULT cosine) {
  if (!(x < 262144)) {
    const double root = 7.07106781186547524401e-1, sine = sin(x), other = cos(x);
    const double s = (sine - other) * root, c = (sine + other) * root;
    const double small = sin(low), rest = cos(low); /* far out, `low` is no small angle any more */
    *cosine = c * rest - s * small;
    return s * rest + c * small;
  }
  const double turns = floor(x * 6.36619772367581343076e-1), odd = 2 * turns + 1;
  const double a = x - odd * 0.7853981633670628, b = odd * 3.038550253151983e-11;
  const double high = a - b, part = high - a;
  const double rest = (a - (high - part)) - (b + part) - odd * 1.0111331243979753e-21 + low;
  const double s = sin(high), c = cos(high), sine = s + rest * c, other = c - rest * s;
  const int quadrant = (int)(turns - 4 * floor(turns / 4));
  *cosine = quadrant == 0 ? other : quadrant == 1 ? -sine : quadrant == 2 ? -other : sine;
  return quadrant == 0 ? sine : quadrant == 1 ? other : quadrant == 2 ? -sine : -other;
}

/* d P(d), with d the distance of x from the zero zero + low. */
MICA_MATHS double mica_near_zero(double x, double zero, double low, MICA_MATHS_CONSTANTS c, int degree) {
  const double distance = x - zero - low;
  return distance * mica_horner(distance, c, degree);
}

#endif /* MICA_MATHS_PHASE_H_ */
