// OpenBLAS behind the table of libraries.h. scipy-openblas32 comes with a pool of its
// own (pthreads); Mica has one pool, OpenMP's, so OpenBLAS is held to one thread and
// the caller divides the work.
#ifndef MICA_PLUGINS_CPU_LIBRARIES_BLAS_H_
#define MICA_PLUGINS_CPU_LIBRARIES_BLAS_H_

#include "plugins/cpu/libraries/libraries.h"

namespace mica::cpu {

void PrepareBlas();  // once, before the other two
void BlasGemm(const GemmTask& task);
void BlasGemv(int32_t dtype, int64_t m, int64_t n, const MatrixView& a, const void* x, int64_t x_stride,
              void* y, int64_t y_stride, double factor, double old);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_LIBRARIES_BLAS_H_
