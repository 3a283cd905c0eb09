// Sums down the columns of a dense matrix; see column_loops.cc.
#ifndef MICA_PLUGINS_CPU_REDUCE_COLUMN_LOOPS_H_
#define MICA_PLUGINS_CPU_REDUCE_COLUMN_LOOPS_H_

#include "plugins/cpu/reduce/row_folds.h"
#include "plugins/cpu/reduce/space.h"

namespace mica::cpu {

// Sums (of what is not NaN), means and logsumexp of float32, float64 and, the first two, of complex
// dtypes along a dimension that is not the last, where what is kept lies together. False where the
// call is another.
bool RunColumnLoop(const ReduceCall& call, RowKind kind);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_COLUMN_LOOPS_H_
