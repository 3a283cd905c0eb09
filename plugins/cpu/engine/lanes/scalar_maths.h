// Functions of one double for which no vector form exists; used by maths.cc.
// Each is thread-safe and defined on NaN, the infinities and the poles.
#ifndef MICA_PLUGINS_CPU_ENGINE_SCALAR_MATHS_H_
#define MICA_PLUGINS_CPU_ENGINE_SCALAR_MATHS_H_

#include "plugins/cpu/engine/lanes/lanes.h"

namespace mica::cpu {

// log |gamma(x)|.
double LogGamma(double x);
// The derivative of LogGamma: ∓inf at ±0, NaN at negative integers.
double Digamma(double x);

struct ScalarLgamma {
  static double Do(double x) { return LogGamma(x); }
};
struct ScalarDigamma {
  static double Do(double x) { return Digamma(x); }
};

// Puts the functions of mica/maths/ into the table of float32 or float64 lanes.
void AddScalarMaths(int32_t dtype, PrimitiveTable* table);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_SCALAR_MATHS_H_
