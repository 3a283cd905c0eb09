/* Powers of one complex double, C++ alone: what all backends' and Mica's own complex powers mean.
 *
 * The C library's cpow goes through logarithms, which 0 has none of: here 0 to the 0 is 1, and 0 to an
 * exponent with a positive real part 0. Small whole exponents are products, right to the last places.
 */
#ifndef MICA_MATHS_COMPLEX_POWER_H_
#define MICA_MATHS_COMPLEX_POWER_H_

#include <complex>

namespace mica::maths {

inline std::complex<double> ComplexPower(std::complex<double> z, std::complex<double> exponent) {
  if (exponent == 0.0) return 1.0;
  if (z == 0.0 && exponent.real() > 0) return 0.0;
  if (exponent == 1.0) return z;
  if (exponent == 2.0) return z * z;
  if (exponent == 3.0) return z * z * z;
  if (exponent == -1.0) return 1.0 / z;
  return std::pow(z, exponent);
}

}  // namespace mica::maths

#endif /* MICA_MATHS_COMPLEX_POWER_H_ */
