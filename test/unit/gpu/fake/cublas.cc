// libcublas.so.13, imitated: products by columns as BLAS defines them, of the four types whose sums are
// exact for small integers; it refuses leading dimensions that are too small.
#include <algorithm>
#include <atomic>
#include <complex>
#include <cstdint>

#define FAKE(type) extern "C" __attribute__((visibility("default"))) type

namespace {

constexpr int kInvalid = 7, kNotSupported = 15;
std::atomic<int> g_handles{0};

template <typename T>
struct Matrix {
  T* data;
  int64_t ld;
  bool transposed;
  T& At(int64_t row, int64_t column) const {
    return transposed ? data[row * ld + column] : data[column * ld + row];
  }
};

template <typename T>
void Multiply(int64_t m, int64_t n, int64_t k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
              Matrix<T> c) {
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      T sum{};
      for (int64_t l = 0; l < k; ++l) sum += a.At(i, l) * b.At(l, j);
      T& to = c.At(i, j);
      to = alpha * sum + (beta == T{} ? T{} : beta * to);
    }
  }
}

}  // namespace

FAKE(int) FakeHandles() { return g_handles; }

FAKE(int) cublasCreate_v2(void** handle) {
  return *handle = reinterpret_cast<void*>(intptr_t{++g_handles}), 0;
}
FAKE(int) cublasDestroy_v2(void*) { return 0; }
FAKE(int) cublasSetStream_v2(void*, void*) { return 0; }
FAKE(int) cublasSetMathMode(void*, int mode) { return mode == 16 ? 0 : kInvalid; }
FAKE(const char*) cublasGetStatusName(int status) {
  return status == kInvalid ? "CUBLAS_STATUS_INVALID_VALUE" : nullptr;
}

FAKE(int)
cublasGemmStridedBatchedEx_64(void*, int a_transposed, int b_transposed, int64_t m, int64_t n, int64_t k,
                              const void* alpha, const void* a, int a_type, int64_t lda, long long a_stride,
                              const void* b, int b_type, int64_t ldb, long long b_stride, const void* beta,
                              void* c, int c_type, int64_t ldc, long long c_stride, int64_t batch,
                              int compute, int algorithm) {
  const auto least = [](int64_t rows) { return std::max<int64_t>(1, rows); };
  if (algorithm != -1 || m < 0 || n < 0 || k < 0 || a_type != b_type || a_type != c_type || a_stride < 0 ||
      b_stride < 0 || lda < least(a_transposed ? k : m) || ldb < least(b_transposed ? n : k) ||
      ldc < least(m))
    return kInvalid;
  const auto of_type = [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < batch; ++i)
      Multiply<T>(m, n, k, *static_cast<const T*>(alpha),
                  {static_cast<const T*>(a) + i * a_stride, lda, a_transposed != 0},
                  {static_cast<const T*>(b) + i * b_stride, ldb, b_transposed != 0},
                  *static_cast<const T*>(beta), {static_cast<T*>(c) + i * c_stride, ldc, false});
    return 0;
  };
  constexpr int kSingle = 68, kDouble = 70;
  if (a_type == 0 && compute == kSingle) return of_type(float{});
  if (a_type == 1 && compute == kDouble) return of_type(double{});
  if (a_type == 4 && compute == kSingle) return of_type(std::complex<float>{});
  if (a_type == 5 && compute == kDouble) return of_type(std::complex<double>{});
  return kNotSupported;
}
FAKE(int)
cublasGemmEx_64(void* handle, int a_transposed, int b_transposed, int64_t m, int64_t n, int64_t k,
                const void* alpha, const void* a, int a_type, int64_t lda, const void* b, int b_type,
                int64_t ldb, const void* beta, void* c, int c_type, int64_t ldc, int compute, int algorithm) {
  return cublasGemmStridedBatchedEx_64(handle, a_transposed, b_transposed, m, n, k, alpha, a, a_type, lda, 0,
                                       b, b_type, ldb, 0, beta, c, c_type, ldc, 0, 1, compute, algorithm);
}
