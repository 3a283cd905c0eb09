// Products of float16 and bfloat16, computed in float32 and rounded once.
#ifndef MICA_PLUGINS_CPU_CONTRACTION_GEMM_HALF_H_
#define MICA_PLUGINS_CPU_CONTRACTION_GEMM_HALF_H_

#include "plugins/cpu/contraction/gemm.h"
#include "plugins/cpu/libraries/libraries.h"

namespace mica::cpu {

// A product of MICA_F16 or MICA_BF16; false where the libraries are missing.
bool HalfGemm(const Product& product, int32_t threads);

// A matrix and a vector, for HalfGemm: y = factor * w @ x + old * y for w of
// rows × columns. Only y's elements may be anywhere, y_step apart.
struct HalfVectorTask {
  int32_t dtype;
  int64_t rows, columns;
  MatrixView w;
  const float* x;
  void* y;
  int64_t y_step;
  float factor, old;
};
void HalfVector(const HalfVectorTask& task, int32_t threads);

// For gemm.cc and gemm_half.cc: x as BLAS takes it, which must lie by lines; and
// c^T = b^T @ a^T, for a c that lies column by column.
MatrixView View(const Strided& x, int64_t rows, int64_t cols);
Product Transposed(const Product& product);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_CONTRACTION_GEMM_HALF_H_
