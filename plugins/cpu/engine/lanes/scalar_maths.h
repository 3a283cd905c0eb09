// The functions of mica/maths/ as primitives, one element after the other; maths.cc puts those
// that have a vector form in the place of these.
#ifndef MICA_PLUGINS_CPU_ENGINE_SCALAR_MATHS_H_
#define MICA_PLUGINS_CPU_ENGINE_SCALAR_MATHS_H_

#include "plugins/cpu/engine/lanes/lanes.h"

namespace mica::cpu {

// Puts them into the table of float32 or float64 lanes.
void AddScalarMaths(int32_t dtype, PrimitiveTable* table);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_SCALAR_MATHS_H_
