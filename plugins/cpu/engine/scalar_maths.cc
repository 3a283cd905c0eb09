// Scalar functions without a vector form; contracts in scalar_maths.h.
#include "mica/plugins/cpu/engine/scalar_maths.h"

#include <math.h>

#include "mica/maths/digamma.h"

namespace mica::cpu {
double LogGamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

double Digamma(double x) { return mica_digamma(x); }

}  // namespace mica::cpu
