// Special functions of one double that <cmath> lacks.
#pragma once

namespace mica::portable {

// The derivative of log |gamma|. At non-positive integers NaN, except that 0 gives
// -inf with the sign of the zero (as torch). Recurrence to x >= 10, then the
// asymptotic series (Abramowitz and Stegun 6.3.18), relative error about 1e-15.
double Digamma(double x);
// The inverse of erf on [-1, 1]: Giles' approximation (2012) and two Newton steps.
double ErfInv(double x);

}  // namespace mica::portable
