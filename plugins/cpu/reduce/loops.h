// Loops of their own for the hints of frequent programs. Each returns false when
// it does not cover the call's dtypes or layout; the program runs then.
#ifndef MICA_PLUGINS_CPU_REDUCE_LOOPS_H_
#define MICA_PLUGINS_CPU_REDUCE_LOOPS_H_

#include "plugins/cpu/reduce/space.h"

namespace mica::cpu {

bool RunReductionLoop(const ReduceCall& call);
bool RunScanLoop(const ReduceCall& call);
bool RunRowLoop(const ReduceCall& call);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_LOOPS_H_
