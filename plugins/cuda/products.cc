// Matrix products by cuBLAS: which layouts are one of its own, and a pool of its handles.
//
// cuBLAS knows matrices by columns: a column's elements lie side by side, and columns are `ld` elements
// apart. A matrix by rows is the transpose of such a one, so a product whose result lies by rows is computed
// as c^T = b^T a^T.
#include "plugins/cuda/products.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <mica/plugin.h>

#include "plugins/cuda/api.h"
#include "plugins/cuda/context.h"
#include "plugins/cuda/folders.h"

namespace cuda {
namespace {

struct Cublas {
  CublasApi api;
  std::string missing;
};

// Opened at the first use, and never destroyed.
const Cublas& OpenCublas() {
  static const Cublas& cublas = *[] {
    auto* made = new Cublas;
    Library library;
    if (!library.Open(LibraryCandidates("libcublas.so", DriverVersion()), SymbolsOf(made->api)))
      made->missing =
          "NVIDIA's matrix products (libcublas.so.13 or .12) are not found, so Mica's own kernels compute "
          "them: "
          "install CUDA's toolkit or the package nvidia-cublas, or name its folder in MICA_CUDA_LIBRARIES (" +
          library.reason() + ").";
    return made;
  }();
  return cublas;
}

void CheckCublas(cublasStatus_t status, const char* function, int device) {
  if (__builtin_expect(status == CUBLAS_STATUS_SUCCESS, 1)) return;
  const char* name = OpenCublas().api.cublasGetStatusName(status);
  MICA_PLUGIN_THROW(status == CUBLAS_STATUS_ALLOC_FAILED ? MICA_ERROR_OUT_OF_MEMORY : MICA_ERROR_RUNTIME,
                    std::string("cuBLAS's ") + function +
                        " failed on the device (cuda:" + std::to_string(device) + ") with " +
                        (name ? name : "a status without a name") + " (" + std::to_string(status) + ").");
}

// Handles that nobody uses at the moment. A handle serves one thread at a time, and has a workspace that the
// products of one stream share: a stream gets the handle that it had before, if that is free.
class Handles {
 public:
  cublasHandle_t Take(const CublasApi& api, int device, uint64_t stream) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      Idle& idle = idle_[device];
      auto found = std::find_if(idle.handles.begin(), idle.handles.end(),
                                [&](const auto& entry) { return entry.first == stream; });
      // Past some handles, another stream's serves, as cuBLAS allows; last bits may vary then.
      if (found == idle.handles.end() && idle.made >= kMost && !idle.handles.empty())
        found = idle.handles.begin();
      if (found != idle.handles.end()) {
        const cublasHandle_t handle = found->second;
        idle.handles.erase(found);
        return handle;
      }
      ++idle.made;
    }
    cublasHandle_t handle = nullptr;
    CheckCublas(api.cublasCreate_v2(&handle), "cublasCreate", device);
    // Sums of halves stay float until the end, also where several blocks of threads share one.
    CheckCublas(api.cublasSetMathMode(handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
                "cublasSetMathMode", device);
    return handle;
  }

  void Return(cublasHandle_t handle, int device, uint64_t stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    idle_[device].handles.emplace_back(stream, handle);
  }

 private:
  static constexpr int kMost = 8;  // a workspace takes up to 32 MiB of the device
  struct Idle {
    int made = 0;
    std::vector<std::pair<uint64_t, cublasHandle_t>> handles;  // with the stream of the last use
  };
  std::mutex mutex_;
  std::map<int, Idle> idle_;
};

Handles& GetHandles() {
  static Handles& handles = *new Handles;
  return handles;
}

// How cuBLAS computes with a dtype, and what alpha and beta are for it.
struct Arithmetic {
  cudaDataType type;
  cublasComputeType_t compute;
  bool is_complex;
};

bool ArithmeticOf(int32_t dtype, Arithmetic* arithmetic) {
  switch (dtype) {
    case MICA_F32:
      *arithmetic = {CUDA_R_32F, CUBLAS_COMPUTE_32F, false};
      return true;
    case MICA_F64:
      *arithmetic = {CUDA_R_64F, CUBLAS_COMPUTE_64F, false};
      return true;
    case MICA_F16:
      *arithmetic = {CUDA_R_16F, CUBLAS_COMPUTE_32F, false};
      return true;
    case MICA_BF16:
      *arithmetic = {CUDA_R_16BF, CUBLAS_COMPUTE_32F, false};
      return true;
    case MICA_C64:
      *arithmetic = {CUDA_C_32F, CUBLAS_COMPUTE_32F, true};
      return true;
    case MICA_C128:
      *arithmetic = {CUDA_C_64F, CUBLAS_COMPUTE_64F, true};
      return true;
    default:
      return false;
  }
}

// alpha or beta in the type of the sums: the real part, and behind it the imaginary one.
struct Factor {
  Factor(const double (&value)[2], const Arithmetic& arithmetic) {
    for (int i = 0; i < 2; ++i) {
      single[i] = static_cast<float>(value[i]);
      twice[i] = value[i];
    }
    pointer = arithmetic.compute == CUBLAS_COMPUTE_64F ? static_cast<const void*>(twice) : single;
  }
  Factor(const Factor&) = delete;
  Factor& operator=(const Factor&) = delete;
  float single[2];
  double twice[2];
  const void* pointer;
};

// A matrix as its sizes and strides.
struct View {
  const gpu::GemmMatrix* matrix;
  int64_t rows, columns, row_stride, column_stride;

  View Transposed() const { return {matrix, columns, rows, column_stride, row_stride}; }
  // Whether cuBLAS takes it as it is; the stride of a dimension of size 1 does not matter.
  bool ByColumns() const {
    return (row_stride == 1 || rows == 1) && (columns == 1 || column_stride >= std::max<int64_t>(1, rows));
  }
  int64_t LeadingDimension() const { return columns == 1 ? std::max<int64_t>(1, rows) : column_stride; }
};

View ViewOf(const gpu::GemmMatrix& matrix, int64_t rows, int64_t columns) {
  return {&matrix, rows, columns, matrix.row_stride, matrix.column_stride};
}

// Whether a matrix is taken transposed: of the two ways that a vector has, the one with long columns.
bool IsBetterTransposed(const View& view) {
  const bool by_rows = view.Transposed().ByColumns();
  return by_rows && (!view.ByColumns() || view.columns > view.rows);
}

// An operand as cuBLAS takes it.
struct Operand {
  cublasOperation_t operation;
  int64_t ld;
};

bool OperandOf(const View& view, Operand* operand) {
  const bool transposed = IsBetterTransposed(view);
  const View stored = transposed ? view.Transposed() : view;
  *operand = {transposed ? CUBLAS_OP_T : CUBLAS_OP_N, stored.LeadingDimension()};
  return stored.ByColumns();
}

class CublasProducts final : public gpu::Products {
 public:
  bool Gemm(const gpu::GemmProblem& problem) override;
};

bool CublasProducts::Gemm(const gpu::GemmProblem& problem) {
  Arithmetic arithmetic{};
  if (!ArithmeticOf(problem.dtype, &arithmetic)) return false;
  if (!arithmetic.is_complex && (problem.alpha[1] != 0 || problem.beta[1] != 0)) return false;
  if (problem.m <= 0 || problem.n <= 0 || problem.batch <= 0) return true;  // an empty result
  if (problem.k <= 0) return false;
  const bool is_batch = problem.batch > 1;
  if (is_batch && (problem.a.batch_stride < 0 || problem.b.batch_stride < 0 || problem.c.batch_stride <= 0))
    return false;

  View a = ViewOf(problem.a, problem.m, problem.k);
  View b = ViewOf(problem.b, problem.k, problem.n);
  View c = ViewOf(problem.c, problem.m, problem.n);
  if (IsBetterTransposed(c)) {
    c = c.Transposed();
    const View a_transposed = a.Transposed();
    a = b.Transposed();
    b = a_transposed;
  }
  Operand first{}, second{};
  if (!c.ByColumns() || !OperandOf(a, &first) || !OperandOf(b, &second)) return false;

  const Cublas& cublas = OpenCublas();
  if (!cublas.missing.empty()) return false;
  Use(problem.device);
  const CublasApi& api = cublas.api;
  const cublasHandle_t handle = GetHandles().Take(api, problem.device, problem.stream);
  const Factor alpha(problem.alpha, arithmetic), beta(problem.beta, arithmetic);
  const cudaDataType type = arithmetic.type;
  cublasStatus_t status = api.cublasSetStream_v2(handle, reinterpret_cast<CUstream>(problem.stream));
  const char* function = "cublasSetStream";
  if (status == CUBLAS_STATUS_SUCCESS && !is_batch) {
    function = "cublasGemmEx_64";
    status = api.cublasGemmEx_64(handle, first.operation, second.operation, c.rows, c.columns, problem.k,
                                 alpha.pointer, a.matrix->data, type, first.ld, b.matrix->data, type,
                                 second.ld, beta.pointer, c.matrix->data, type, c.LeadingDimension(),
                                 arithmetic.compute, CUBLAS_GEMM_DEFAULT);
  } else if (status == CUBLAS_STATUS_SUCCESS) {
    function = "cublasGemmStridedBatchedEx_64";
    status = api.cublasGemmStridedBatchedEx_64(
        handle, first.operation, second.operation, c.rows, c.columns, problem.k, alpha.pointer,
        a.matrix->data, type, first.ld, a.matrix->batch_stride, b.matrix->data, type, second.ld,
        b.matrix->batch_stride, beta.pointer, c.matrix->data, type, c.LeadingDimension(),
        c.matrix->batch_stride, problem.batch, arithmetic.compute, CUBLAS_GEMM_DEFAULT);
  }
  GetHandles().Return(handle, problem.device, problem.stream);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH) return false;
  CheckCublas(status, function, problem.device);
  return true;
}

}  // namespace

gpu::Products& GetCublas() {
  static gpu::Products& products = *new CublasProducts;
  return products;
}

const std::string& CublasMissing() { return OpenCublas().missing; }

}  // namespace cuda
