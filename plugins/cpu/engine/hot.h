// Hot programs: pointwise and factory expressions with a loop of their own; see hot.cc.
#ifndef MICA_PLUGINS_CPU_ENGINE_HOT_H_
#define MICA_PLUGINS_CPU_ENGINE_HOT_H_

#include <cstdint>

#include <mica/program.h>

namespace mica::cpu {

inline constexpr int kMaxHotOperands = 20;

// operands: inputs (a factory's coordinate is one), numbers (one lane each), then the results. An input and
// a result may be the same memory or do not overlap.
using HotLoop = void (*)(void* const* operands, int64_t n);

// The loop of a pointwise or factory program in lanes of float32 or float64, or NULL.
HotLoop FindHotLoop(const MicaProgram& program, int32_t lane);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_HOT_H_
