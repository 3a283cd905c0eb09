// Scalar functions without a vector form; contracts in scalar_maths.h.
// erfinv: a rational start (Winitzki's) refined by Halley steps on erf or erfc.
#include "mica/plugins/cpu/engine/scalar_maths.h"

#include <math.h>

#include <cmath>
#include <limits>

#include "mica/maths/digamma.h"

namespace mica::cpu {
namespace {
constexpr double kPi = 3.14159265358979323846;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
}  // namespace

double Erfinv(double x) {
  const double magnitude = std::fabs(x);
  if (!(magnitude <= 1)) return kNan;
  if (magnitude == 1) return std::copysign(kInf, x);
  if (magnitude < 1e-9) return x * 0.88622692545275801365;  // sqrt(pi) / 2
  const double tail = std::log1p(-magnitude * magnitude);
  const double a = 2 / (kPi * 0.147) + tail / 2;
  double y = std::sqrt(std::sqrt(a * a - tail / 0.147) - a);
  // 2 / sqrt(pi) * exp(-y²) is the derivative; 1 - |x| is exact above one half.
  for (int step = 0; step < 3; ++step) {
    const double error = magnitude < 0.5 ? std::erf(y) - magnitude : (1 - magnitude) - std::erfc(y);
    const double newton = error / (1.12837916709551257390 * std::exp(-y * y));
    y -= newton / (1 + y * newton);
  }
  return std::copysign(y, x);
}

double LogGamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

double Digamma(double x) { return mica_digamma(x); }

}  // namespace mica::cpu
