// Sums down the columns of a dense matrix; see column_loops.cc.
#ifndef MICA_PLUGINS_CPU_REDUCE_COLUMN_LOOPS_H_
#define MICA_PLUGINS_CPU_REDUCE_COLUMN_LOOPS_H_

#include "mica/plugins/cpu/reduce/space.h"

namespace mica::cpu {

// The sum, or the mean, of float32 or float64 along dimensions that are not the last,
// where what is kept lies together. False where the call is another.
bool RunColumnSums(const ReduceCall& call, bool mean);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_COLUMN_LOOPS_H_
