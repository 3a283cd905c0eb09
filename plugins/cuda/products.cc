// Matrix products by cuBLAS: which layouts are one of its own, and what the settings let it round.
//
// cuBLAS knows matrices by columns: a column's elements lie side by side, and columns are `ld` elements
// apart. A matrix by rows is the transpose of such a one, so a product whose result lies by rows is computed
// as c^T = b^T a^T.
#include "plugins/cuda/products.h"

#include <algorithm>
#include <atomic>

#include <mica/plugin.h>

#include "plugins/cuda/context.h"
#include "plugins/cuda/cublas.h"
#include "plugins/cuda/host_memory.h"
#include "plugins/cuda/products_with_row.h"

namespace cuda {
namespace {

// How cuBLAS computes with a dtype, and what alpha and beta are for it.
struct Arithmetic {
  cudaDataType type;
  cublasComputeType_t compute;
  cublasMath_t mode = CUBLAS_DEFAULT_MATH;
  bool is_complex = false;
};

cublasComputeType_t SinglePrecision() {
  static const mica::plugin::Setting precision(MICA_SETTING_FLOAT32_MATMUL_PRECISION, 0);
  return precision.value() == 0 ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32;
}

// Sums of halves are float until the end, or, where a setting allows it, halves between the parts of a sum
// that several blocks of threads share.
cublasMath_t ModeOf(const mica::plugin::Setting& reduction) {
  return reduction.value() ? CUBLAS_DEFAULT_MATH : CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
}

bool ArithmeticOf(int32_t dtype, Arithmetic* arithmetic) {
  static const mica::plugin::Setting of_float16(MICA_SETTING_FLOAT16_REDUCTION, 1);
  static const mica::plugin::Setting of_bfloat16(MICA_SETTING_BFLOAT16_REDUCTION, 1);
  switch (dtype) {
    case MICA_F32:
      *arithmetic = {CUDA_R_32F, SinglePrecision()};
      return true;
    case MICA_F64:
      *arithmetic = {CUDA_R_64F, CUBLAS_COMPUTE_64F};
      return true;
    case MICA_F16:
      *arithmetic = {CUDA_R_16F, CUBLAS_COMPUTE_32F, ModeOf(of_float16)};
      return true;
    case MICA_BF16:
      *arithmetic = {CUDA_R_16BF, CUBLAS_COMPUTE_32F, ModeOf(of_bfloat16)};
      return true;
    case MICA_C64:
      *arithmetic = {CUDA_C_32F, SinglePrecision(), CUBLAS_DEFAULT_MATH, true};
      return true;
    case MICA_C128:
      *arithmetic = {CUDA_C_64F, CUBLAS_COMPUTE_64F, CUBLAS_DEFAULT_MATH, true};
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

// A product as cuBLAS takes it: c = alpha a b + beta c, or with a row of the result, a column of c, added.
struct Call {
  Arithmetic arithmetic;
  View a, b, c;
  Operand first, second;
};

bool CallOf(const gpu::GemmProblem& problem, Call* call) {
  if (!ArithmeticOf(problem.dtype, &call->arithmetic)) return false;
  if (!call->arithmetic.is_complex && (problem.alpha[1] != 0 || problem.beta[1] != 0)) return false;
  if (problem.k <= 0) return false;
  if (problem.batch > 1 &&
      (problem.a.batch_stride < 0 || problem.b.batch_stride < 0 || problem.c.batch_stride <= 0))
    return false;
  call->a = ViewOf(problem.a, problem.m, problem.k);
  call->b = ViewOf(problem.b, problem.k, problem.n);
  call->c = ViewOf(problem.c, problem.m, problem.n);
  if (problem.row ? call->c.Transposed().ByColumns() : IsBetterTransposed(call->c)) {
    call->c = call->c.Transposed();
    const View a_transposed = call->a.Transposed();
    call->a = call->b.Transposed();
    call->b = a_transposed;
  } else if (problem.row) {
    return false;
  }
  return call->c.ByColumns() && OperandOf(call->a, &call->first) && OperandOf(call->b, &call->second);
}

bool RunWithRow(const gpu::GemmProblem& problem, const Call& call) {
  if (problem.batch > 1 || call.arithmetic.is_complex) return false;
  ProductWithRow product;
  product.device = problem.device;
  product.type = call.arithmetic.type;
  product.compute = call.arithmetic.compute;
  product.is_exact = call.arithmetic.mode == CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  product.a_operation = call.first.operation, product.b_operation = call.second.operation;
  product.m = call.c.rows, product.n = call.c.columns, product.k = problem.k;
  product.lda = call.first.ld, product.ldb = call.second.ld, product.ldc = call.c.LeadingDimension();
  const Factor alpha(problem.alpha, call.arithmetic);
  return Run(product, {alpha.pointer, call.a.matrix->data, call.b.matrix->data, call.c.matrix->data,
                       problem.row, problem.stream});
}

bool RunProduct(const gpu::GemmProblem& problem, const Call& call) {
  const Arithmetic& arithmetic = call.arithmetic;
  const cublasHandle_t handle = CublasHandle(problem.device, problem.stream, arithmetic.mode);
  if (!handle) return false;
  const RecordedWorkspace recorded(handle, problem.device, problem.stream);
  const CublasApi& api = Cublas();
  const Factor alpha(problem.alpha, arithmetic), beta(problem.beta, arithmetic);
  const cudaDataType type = arithmetic.type;
  const View &a = call.a, &b = call.b, &c = call.c;
  if (problem.batch == 1)
    return CublasSucceeded(
        api.cublasGemmEx_64(handle, call.first.operation, call.second.operation, c.rows, c.columns, problem.k,
                            alpha.pointer, a.matrix->data, type, call.first.ld, b.matrix->data, type,
                            call.second.ld, beta.pointer, c.matrix->data, type, c.LeadingDimension(),
                            arithmetic.compute, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx_64", problem.device);
  return CublasSucceeded(
      api.cublasGemmStridedBatchedEx_64(
          handle, call.first.operation, call.second.operation, c.rows, c.columns, problem.k, alpha.pointer,
          a.matrix->data, type, call.first.ld, a.matrix->batch_stride, b.matrix->data, type, call.second.ld,
          b.matrix->batch_stride, beta.pointer, c.matrix->data, type, c.LeadingDimension(),
          c.matrix->batch_stride, problem.batch, arithmetic.compute, CUBLAS_GEMM_DEFAULT),
      "cublasGemmStridedBatchedEx_64", problem.device);
}

class CublasProducts final : public gpu::Products {
 public:
  bool Gemm(const gpu::GemmProblem& problem) override;
  int64_t Alignment(int32_t dtype) override;
};

bool CublasProducts::Gemm(const gpu::GemmProblem& problem) {
  static std::atomic<bool> warned{false};
  if (problem.m <= 0 || problem.n <= 0 || problem.batch <= 0) return true;  // an empty result
  Call call;
  if (!CallOf(problem, &call) || !HasCublas()) return false;
  Use(problem.device);
  const OutsideOfRecordings outside;
  return TryTwice(problem.device, warned,
                  [&] { return problem.row ? RunWithRow(problem, call) : RunProduct(problem, call); });
}

// Kernels on tensor cores read and write 16 bytes at once.
int64_t CublasProducts::Alignment(int32_t dtype) {
  Arithmetic arithmetic;
  if (!ArithmeticOf(dtype, &arithmetic) || !HasCublas()) return 0;
  const bool is_half = dtype == MICA_F16 || dtype == MICA_BF16;
  return is_half || (dtype == MICA_F32 && arithmetic.compute == CUBLAS_COMPUTE_32F_FAST_TF32) ? 16 : 1;
}

}  // namespace

gpu::Products& GetCublas() {
  static gpu::Products& products = *new CublasProducts;
  return products;
}

}  // namespace cuda
