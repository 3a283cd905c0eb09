// Scalar functions without a vector form; contracts in scalar_maths.h.
// erfinv: a rational start (Winitzki's) refined by Halley steps on erf or erfc;
// digamma: reflection, recurrence to x >= 10, then the asymptotic series.
#include "mica/plugins/cpu/engine/scalar_maths.h"

#include <math.h>

#include <cmath>
#include <limits>

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

double Digamma(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  if (x < 0) {
    if (x == std::floor(x)) return kNan;
    // The fraction first, so that tan sees a small and exact argument.
    const double fraction = x - std::trunc(x);
    return Digamma(1 - x) - kPi / std::tan(kPi * fraction);
  }
  if (std::isinf(x)) return x;
  double shift = 0;
  while (x < 10) {
    shift -= 1 / x;
    x += 1;
  }
  const double z = 1 / (x * x);
  double series = 8.33333333333333333333e-2;
  constexpr double kTerms[] = {-2.10927960927960927961e-2, 7.57575757575757575758e-3,
                               -4.16666666666666666667e-3, 3.96825396825396825397e-3,
                               -8.33333333333333333333e-3, 8.33333333333333333333e-2};
  for (const double term : kTerms) series = series * z + term;
  return shift + std::log(x) - 0.5 / x - z * series;
}

}  // namespace mica::cpu
