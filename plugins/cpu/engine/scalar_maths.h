// Functions of one double for which no vector form exists; used by maths.cc.
// Each is thread-safe and defined on NaN, the infinities and the poles.
#ifndef MICA_PLUGINS_CPU_ENGINE_SCALAR_MATHS_H_
#define MICA_PLUGINS_CPU_ENGINE_SCALAR_MATHS_H_

namespace mica::cpu {

// The inverse of erf: NaN outside [-1, 1], ±inf at ±1.
double Erfinv(double x);
// log |gamma(x)|.
double LogGamma(double x);
// The derivative of LogGamma: ∓inf at ±0, NaN at negative integers.
double Digamma(double x);

struct ScalarErfinv {
  static double Do(double x) { return Erfinv(x); }
};
struct ScalarLgamma {
  static double Do(double x) { return LogGamma(x); }
};
struct ScalarDigamma {
  static double Do(double x) { return Digamma(x); }
};

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_SCALAR_MATHS_H_
