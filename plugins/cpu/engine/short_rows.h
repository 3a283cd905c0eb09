// Rows of a few elements (boxes, colours, a column that repeats along them) between dense and
// strided memory: loops of a known length, where a call for each row would cost more than it.
#ifndef MICA_PLUGINS_CPU_ENGINE_SHORT_ROWS_H_
#define MICA_PLUGINS_CPU_ENGINE_SHORT_ROWS_H_

#include <cstdint>

namespace mica::cpu {

// A matrix in memory; distances count bytes, and a column may be 0 apart.
struct RowsOf {
  int64_t rows, width;
  int64_t row, column;
  int64_t size;  // of an element: 1, 2, 4, 8 or 16
};

// From the matrix to dense memory, and back.
void GatherRows(void* dst, const void* src, const RowsOf& matrix);
void ScatterRows(void* dst, const void* src, const RowsOf& matrix);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_SHORT_ROWS_H_
