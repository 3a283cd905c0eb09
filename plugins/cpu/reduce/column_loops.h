// Sums down the columns of a dense matrix; see column_loops.cc.
#ifndef MICA_PLUGINS_CPU_REDUCE_COLUMN_LOOPS_H_
#define MICA_PLUGINS_CPU_REDUCE_COLUMN_LOOPS_H_

#include "plugins/cpu/reduce/row_folds.h"
#include "plugins/cpu/reduce/space.h"

namespace mica::cpu {

// What `rows` rows of n columns, `stride` bytes apart, come to.
using ColumnLoop = void (*)(const char* data, int64_t stride, int64_t rows, int64_t n, double divisor,
                            void* out);

// The loop of a call's dtypes: sums (of what is not NaN), means and logsumexp of float32, float64 and, the
// first two, of complex dtypes; else NULL.
ColumnLoop ColumnLoopOf(const ReduceCall& call, RowKind kind);
// Runs it along a dimension that is not the last, where what is kept lies together; false where the layout
// is another.
bool RunColumnLoop(const ReduceCall& call, RowKind kind, ColumnLoop loop, const Space& space);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_COLUMN_LOOPS_H_
