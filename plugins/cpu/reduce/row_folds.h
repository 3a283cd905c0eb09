// Reductions of dense rows, many rows a call: sums, products, extremes, moments.
//
// The loops of a dtype for the best instruction set; elements of a row lie side by side. A long
// row asks whether to stop (threads.h), and has no result then.
// Floats compute in their lane and carry their sums in double; sums and products of bool and
// the integers are those of int64. Used where a program's hint and the layout allow (loops.cc).
#ifndef MICA_PLUGINS_CPU_REDUCE_ROW_FOLDS_H_
#define MICA_PLUGINS_CPU_REDUCE_ROW_FOLDS_H_

#include <cstdint>

namespace mica::cpu {

enum class RowKind { kSum, kNanSum, kProduct, kMean, kMax, kMin, kNorm, kLogSumExp, kVar, kStd, kVarMean };
inline constexpr int kNumRowKinds = 11;

struct DenseRows {
  const char* data;
  int64_t distance;  // bytes from row to row
  int64_t rows, n;
  double correction;  // of the variances: what is taken off n
};

// Writes a lane for each row, and its mean to `means` (kVarMean alone).
using RowFold = void (*)(const DenseRows& rows, void* out, void* means);

// The lane of the results of rows of `dtype`.
int32_t FoldLane(int32_t dtype, RowKind kind);
// The loop; NULL where there is none.
RowFold RowFoldOf(int32_t dtype, RowKind kind);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_ROW_FOLDS_H_
