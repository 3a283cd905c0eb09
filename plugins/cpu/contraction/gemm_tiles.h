// Products of matrices of which one has no dimension whose elements lie side by side: every
// second column, a broadcast row.
#ifndef MICA_PLUGINS_CPU_CONTRACTION_GEMM_TILES_H_
#define MICA_PLUGINS_CPU_CONTRACTION_GEMM_TILES_H_

#include "plugins/cpu/contraction/gemm.h"

namespace mica::cpu {

// Whether a library takes the matrix as it lies, by rows or by columns.
bool LiesByLines(const Strided& x, int64_t rows, int64_t cols);

// The product tile by tile: of a matrix that does not lie by lines, the part that a tile needs
// is packed into scratch memory. False where the libraries are missing.
bool TiledGemm(const Product& product, int32_t threads);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_CONTRACTION_GEMM_TILES_H_
