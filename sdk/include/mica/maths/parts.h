/* The parts of a double: mantissa in [0.5, 1) and exponent. */
#ifndef MICA_MATHS_PARTS_H_
#define MICA_MATHS_PARTS_H_

#include <mica/maths/real.h>

/* 0, NaN and the infinities are their own mantissa, with exponent 0. */
MICA_MATHS double mica_frexp_mantissa(double x) {
  int exponent = 0;
  return frexp(x, &exponent);
}

MICA_MATHS double mica_frexp_exponent(double x) {
  int exponent = 0;
  if (isnan(x) || isinf(x)) return 0;
  frexp(x, &exponent);
  return exponent;
}

#endif /* MICA_MATHS_PARTS_H_ */
