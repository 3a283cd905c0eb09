// Whether all, or any, elements of dense rows are other than zero.
#ifndef MICA_PLUGINS_CPU_REDUCE_TRUTH_ROWS_H_
#define MICA_PLUGINS_CPU_REDUCE_TRUTH_ROWS_H_

#include "plugins/cpu/reduce/row_folds.h"

namespace mica::cpu {

// Writes a byte, 0 or 1, for each row; NULL where there is no loop (complex and float8 dtypes).
RowFold TruthFoldOf(int32_t dtype, bool all);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_TRUTH_ROWS_H_
