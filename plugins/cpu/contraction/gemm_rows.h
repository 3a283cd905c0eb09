// Products of float32 with few rows or few columns: a small matrix times a wide one.
#ifndef MICA_PLUGINS_CPU_CONTRACTION_GEMM_ROWS_H_
#define MICA_PLUGINS_CPU_CONTRACTION_GEMM_ROWS_H_

#include "plugins/cpu/contraction/gemm.h"

namespace mica::cpu {

// c = alpha * x @ w + beta * c for x of m × k with few rows, w of k × n which lies by lines.
// c may lie anyhow; with beta zero it is only written.
struct RowsTask {
  int64_t m, n, k;
  Strided x, w, c;
  float alpha, beta;
};

// Most rows that a task may have.
inline constexpr int64_t kMostRows = 64;

// Throws on a Ctrl-C.
void GemmRows(const RowsTask& task, int32_t threads);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_CONTRACTION_GEMM_ROWS_H_
