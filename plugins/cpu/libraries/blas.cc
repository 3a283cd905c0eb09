#include "plugins/cpu/libraries/blas.h"

#include <cblas.h>

#include <mica/abi.h>

namespace mica::cpu {
namespace {

CBLAS_TRANSPOSE Order(const MatrixView& matrix) { return matrix.transposed ? CblasTrans : CblasNoTrans; }
int Int(int64_t n) { return static_cast<int>(n); }

}  // namespace

void PrepareBlas() { scipy_openblas_set_num_threads(1); }

void BlasGemm(const GemmTask& t) {
  const CBLAS_TRANSPOSE ta = Order(t.a), tb = Order(t.b);
  const int m = Int(t.m), n = Int(t.n), k = Int(t.k), lda = Int(t.a.stride), ldb = Int(t.b.stride),
            ldc = Int(t.c_stride);
  switch (t.dtype) {
    case MICA_F32:
      scipy_cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, static_cast<float>(t.alpha[0]),
                        static_cast<const float*>(t.a.data), lda, static_cast<const float*>(t.b.data), ldb,
                        static_cast<float>(t.beta[0]), static_cast<float*>(t.c), ldc);
      return;
    case MICA_F64:
      scipy_cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, t.alpha[0], static_cast<const double*>(t.a.data), lda,
                        static_cast<const double*>(t.b.data), ldb, t.beta[0], static_cast<double*>(t.c), ldc);
      return;
    case MICA_C64: {
      const float alpha[2] = {static_cast<float>(t.alpha[0]), static_cast<float>(t.alpha[1])};
      const float beta[2] = {static_cast<float>(t.beta[0]), static_cast<float>(t.beta[1])};
      scipy_cblas_cgemm(CblasRowMajor, ta, tb, m, n, k, alpha, t.a.data, lda, t.b.data, ldb, beta, t.c, ldc);
      return;
    }
    case MICA_C128:
      scipy_cblas_zgemm(CblasRowMajor, ta, tb, m, n, k, t.alpha, t.a.data, lda, t.b.data, ldb, t.beta, t.c,
                        ldc);
      return;
    default:
      __builtin_unreachable();  // GemmTask states the four dtypes
  }
}

void BlasGemv(int32_t dtype, int64_t m, int64_t n, const MatrixView& a, const void* x, int64_t x_stride,
              void* y, int64_t y_stride, double factor, double old) {
  // A transposed matrix lies as rows of length m.
  const int rows = Int(a.transposed ? n : m), cols = Int(a.transposed ? m : n);
  const int lda = Int(a.stride), incx = Int(x_stride), incy = Int(y_stride);
  const CBLAS_TRANSPOSE ta = Order(a);
  if (dtype == MICA_F32) {
    scipy_cblas_sgemv(CblasRowMajor, ta, rows, cols, static_cast<float>(factor),
                      static_cast<const float*>(a.data), lda, static_cast<const float*>(x), incx,
                      static_cast<float>(old), static_cast<float*>(y), incy);
  } else {
    scipy_cblas_dgemv(CblasRowMajor, ta, rows, cols, factor, static_cast<const double*>(a.data), lda,
                      static_cast<const double*>(x), incx, old, static_cast<double*>(y), incy);
  }
}

}  // namespace mica::cpu
