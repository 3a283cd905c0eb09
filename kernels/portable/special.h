// Special functions of one double that <cmath> lacks.
#pragma once

namespace mica::portable {

// The inverse of erf on [-1, 1]: Giles' approximation (2012) and two Newton steps.
double ErfInv(double x);

}  // namespace mica::portable
