// Numbers of a call (Scalar, int, float and bool arguments, program constants)
// as lanes of a plan.
#ifndef MICA_PLUGINS_CPU_ENGINE_NUMBERS_H_
#define MICA_PLUGINS_CPU_ENGINE_NUMBERS_H_

#include <cstdint>

#include <mica/program.h>

namespace mica::cpu {

// A number in the kind it was written in.
struct Number {
  enum Kind : int32_t { kInteger, kReal, kComplex } kind;
  int64_t i;
  double re, im;
};

// The number in an argument; an absent optional is NaN (0 in integer lanes).
Number NumberOf(const MicaValue& value);
inline Number NumberOf(int64_t i) { return {Number::kInteger, i, static_cast<double>(i), 0}; }

// Writes n lanes (both planes of a complex lane) of `dtype`. An integer that the dtype
// cannot hold is an error, or with `wraps` gives its low bits.
void FillLanes(const Number& number, int32_t dtype, void* dst, int64_t n, bool wraps = false);

// The same for a constant of a program, which saturates: `inf` in an integer
// lane is the largest value, `-inf` the smallest.
void FillConstant(const MicaConstant& constant, int32_t dtype, void* dst, int64_t n);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_NUMBERS_H_
