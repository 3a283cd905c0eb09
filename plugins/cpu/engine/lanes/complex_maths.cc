// Complex functions over std::complex<double>; contracts in complex_maths.h.
#include "plugins/cpu/engine/lanes/complex_maths.h"

#include <cmath>
#include <complex>

#include <mica/maths/complex_power.h>

namespace mica::cpu {

using C = std::complex<double>;

#define MICA_DEFINE(name, expression)                                                  \
  void Complex##name(double* out, const double* a, [[maybe_unused]] const double* b) { \
    const C z(a[0], a[1]);                                                             \
    const C result = expression;                                                       \
    out[0] = result.real();                                                            \
    out[1] = result.imag();                                                            \
  }

MICA_DEFINE(Sign, z == 0.0 ? C(0, 0) : z / std::abs(z))
MICA_DEFINE(Pow, maths::ComplexPower(z, C(b[0], b[1])))
MICA_DEFINE(Sqrt, std::sqrt(z))
MICA_DEFINE(Rsqrt, 1.0 / std::sqrt(z))
MICA_DEFINE(Exp, std::exp(z))
MICA_DEFINE(Exp2, std::exp(z * 0.69314718055994530942))
MICA_DEFINE(Log, std::log(z))
MICA_DEFINE(Log2, std::log(z) * 1.44269504088896340736)
MICA_DEFINE(Log10, std::log10(z))
MICA_DEFINE(Sin, std::sin(z))
MICA_DEFINE(Cos, std::cos(z))
MICA_DEFINE(Tan, std::tan(z))
MICA_DEFINE(Asin, std::asin(z))
MICA_DEFINE(Acos, std::acos(z))
MICA_DEFINE(Atan, std::atan(z))
MICA_DEFINE(Sinh, std::sinh(z))
MICA_DEFINE(Cosh, std::cosh(z))
MICA_DEFINE(Tanh, std::tanh(z))
MICA_DEFINE(Asinh, std::asinh(z))
MICA_DEFINE(Acosh, std::acosh(z))
MICA_DEFINE(Atanh, std::atanh(z))
MICA_DEFINE(Sigmoid, 1.0 / (1.0 + std::exp(-z)))
// expm1(x + iy) = expm1(x) cos y - 2 sin²(y/2) + i exp(x) sin y: no cancellation near 0.
MICA_DEFINE(Expm1,
            C(std::expm1(z.real()) * std::cos(z.imag()) - 2 * std::sin(z.imag() / 2) * std::sin(z.imag() / 2),
              std::exp(z.real()) * std::sin(z.imag())))
// |1 + z|² - 1 = x (2 + x) + y², by log1p where it is small.
MICA_DEFINE(Log1p, std::abs(z) < 0.5 ? C(0.5 * std::log1p(z.real() * (2 + z.real()) + z.imag() * z.imag()),
                                         std::atan2(z.imag(), 1 + z.real()))
                                     : std::log(1.0 + z))
#undef MICA_DEFINE

}  // namespace mica::cpu
