// Scalar functions without a vector form; contracts in scalar_maths.h.
#include "plugins/cpu/engine/lanes/scalar_maths.h"

#include <math.h>

#include <mica/maths/digamma.h>

namespace mica::cpu {
double LogGamma(double x) {
  int sign = 0;
  // Left of 0 glibc's double is off by up to 4 ULP, depending on the processor's log; positive by up to 1.5.
  return x < 0 ? static_cast<double>(::lgammal_r(x, &sign)) : ::lgamma_r(x, &sign);
}

double Digamma(double x) { return mica_digamma(x); }

}  // namespace mica::cpu
