// libcublas.so.13, imitated: products by columns as BLAS defines them, of the four types whose sums are
// exact for small integers; it refuses leading dimensions that are too small. libcublasLt's functions are in
// it, as the true one brings that library along.
#include <algorithm>
#include <atomic>
#include <complex>
#include <cstdint>
#include <cstring>

#define FAKE(type) extern "C" __attribute__((visibility("default"))) type

namespace {

constexpr int kInvalid = 7, kNotSupported = 15;
std::atomic<int> g_handles{0}, g_sets{0}, g_heuristics{0};
std::atomic<int> g_status{0}, g_failures{0};
int g_compute = 0, g_mode = 0;

// What the next functions that may fail return, as FakeFail said.
int Failure() { return g_failures > 0 && g_failures-- > 0 ? g_status.load() : 0; }

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
FAKE(int) FakeSets() { return g_sets; }              // calls that set something of a handle
FAKE(int) FakeHeuristics() { return g_heuristics; }  // calls that choose an algorithm
FAKE(int) FakeCompute() { return g_compute; }        // how the last product was computed
FAKE(int) FakeMode() { return g_mode; }              // the mode that was set last
FAKE(void) FakeFail(int status, int times) { g_status = status, g_failures = times; }

FAKE(int) cublasCreate_v2(void** handle) {
  if (const int failure = Failure()) return failure;
  return *handle = reinterpret_cast<void*>(intptr_t{++g_handles}), 0;
}
FAKE(int) cublasDestroy_v2(void*) { return 0; }
FAKE(int) cublasSetStream_v2(void*, void*) { return ++g_sets, 0; }
FAKE(int) cublasSetWorkspace_v2(void*, void*, size_t) { return ++g_sets, 0; }
FAKE(int) cublasSetMathMode(void*, int mode) {
  return ++g_sets, g_mode = mode, mode == 0 || mode == 16 ? 0 : kInvalid;
}
FAKE(const char*) cublasGetStatusName(int status) {
  return status == kInvalid ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == 3      ? "CUBLAS_STATUS_ALLOC_FAILED"
                            : nullptr;
}

FAKE(int)
cublasGemmStridedBatchedEx_64(void*, int a_transposed, int b_transposed, int64_t m, int64_t n, int64_t k,
                              const void* alpha, const void* a, int a_type, int64_t lda, long long a_stride,
                              const void* b, int b_type, int64_t ldb, long long b_stride, const void* beta,
                              void* c, int c_type, int64_t ldc, long long c_stride, int64_t batch,
                              int compute, int algorithm) {
  if (const int failure = Failure()) return failure;
  g_compute = compute;
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
  constexpr int kSingle = 68, kDouble = 70, kTf32 = 77;
  if (a_type == 0 && (compute == kSingle || compute == kTf32)) return of_type(float{});
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

// --- cublasLt: products with a column added

namespace {

struct Description {
  int compute, scale, a_operation, b_operation, epilogue;
  const void* column;
};
struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t ld;
};
constexpr size_t kWorkspace = 1000;

// What a description's attribute is, and its size in bytes.
void* Attribute(Description* description, int attribute, size_t* size) {
  *size = attribute == 8 ? sizeof(void*) : sizeof(int);
  switch (attribute) {
    case 3:
      return &description->a_operation;
    case 4:
      return &description->b_operation;
    case 7:
      return &description->epilogue;
    case 8:
      return &description->column;
    default:
      return nullptr;
  }
}

}  // namespace

FAKE(int) cublasLtMatmulDescCreate(Description** description, int compute, int scale) {
  return *description = new Description{compute, scale, 0, 0, 1, nullptr}, 0;
}
FAKE(int) cublasLtMatmulDescDestroy(Description* description) { return delete description, 0; }
FAKE(int)
cublasLtMatmulDescSetAttribute(Description* description, int attribute, const void* value, size_t size) {
  size_t expected = 0;
  void* to = Attribute(description, attribute, &expected);
  if (!to || size != expected) return kInvalid;
  return std::memcpy(to, value, size), 0;
}
FAKE(int) cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  return *layout = new Layout{type, rows, columns, ld}, 0;
}
FAKE(int) cublasLtMatrixLayoutDestroy(Layout* layout) { return delete layout, 0; }
FAKE(int) cublasLtMatmulPreferenceCreate(void** preference) { return *preference = new char, 0; }
FAKE(int) cublasLtMatmulPreferenceDestroy(void* preference) {
  return delete static_cast<char*>(preference), 0;
}
FAKE(int) cublasLtMatmulPreferenceSetAttribute(void*, int attribute, const void*, size_t size) {
  return size == (attribute == 1 ? 8 : 4) ? 0 : kInvalid;
}
FAKE(int)
cublasLtMatmulAlgoGetHeuristic(void*, Description* description, Layout* a, Layout*, Layout*, Layout*, void*,
                               int most, uint64_t* found, int* count) {
  ++g_heuristics;
  *count = 0;
  if (most < 1 || description->epilogue != 4 || !description->column) return kInvalid;
  if (a->type != 0) return kNotSupported;
  std::memset(found, 0, 8 * 8 + 8 + 4 + 4 + 16);
  found[0] = 42, found[8] = kWorkspace;  // the algorithm, and its workspace
  return *count = 1, 0;
}
FAKE(int)
cublasLtMatmul(void* handle, Description* description, const void* alpha, const void* a, Layout* a_layout,
               const void* b, Layout* b_layout, const void* beta, const void* c, Layout*, void* d,
               Layout* d_layout, const uint64_t* algorithm, void* workspace, size_t size, void*) {
  if (algorithm[0] != 42 || !workspace || size != kWorkspace || c != d || description->scale != 0)
    return kInvalid;
  std::memset(workspace, 1, size);
  const auto m = static_cast<int64_t>(d_layout->rows), n = static_cast<int64_t>(d_layout->columns);
  const bool transposed = description->a_operation != 0;
  const auto k = static_cast<int64_t>(transposed ? a_layout->rows : a_layout->columns);
  const int status = cublasGemmEx_64(handle, description->a_operation, description->b_operation, m, n, k,
                                     alpha, a, a_layout->type, a_layout->ld, b, b_layout->type, b_layout->ld,
                                     beta, d, d_layout->type, d_layout->ld, description->compute, -1);
  if (status != 0) return status;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i)
      static_cast<float*>(d)[j * d_layout->ld + i] += static_cast<const float*>(description->column)[i];
  return 0;
}
