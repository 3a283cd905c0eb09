// Transcendental functions of one complex double (pow: of two), by the C
// library; used lane by lane by lanes_complex.cc.
#ifndef MICA_PLUGINS_CPU_ENGINE_COMPLEX_MATHS_H_
#define MICA_PLUGINS_CPU_ENGINE_COMPLEX_MATHS_H_

namespace mica::cpu {

// out, a and b are (real, imaginary); b is read by binary functions alone.
using ComplexFunction = void (*)(double* out, const double* a, const double* b);

// clang-format off
#define MICA_FORALL_COMPLEX_FUNCTIONS(X)                                                                 \
  X(Sign) X(Pow) X(Sqrt) X(Rsqrt) X(Exp) X(Exp2) X(Expm1) X(Log) X(Log2) X(Log10) X(Log1p) X(Sin) X(Cos) \
      X(Tan) X(Asin) X(Acos) X(Atan) X(Sinh) X(Cosh) X(Tanh) X(Asinh) X(Acosh) X(Atanh) X(Sigmoid)
// clang-format on
#define MICA_DECLARE(name) void Complex##name(double* out, const double* a, const double* b);
MICA_FORALL_COMPLEX_FUNCTIONS(MICA_DECLARE)
#undef MICA_DECLARE

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_COMPLEX_MATHS_H_
