// The table of what mica_cpu.so takes from oneDNN and OpenBLAS.
//
// libraries/*.cc become mica_cpu_libraries.so, the only object that links the two;
// mica_cpu.so opens it on the first call that needs it (contraction/open_libraries.h),
// so that `import mica` does not pay for 80 MB of library. Both sides are built
// together: the table is no ABI. Tasks are plain data, sizes and strides count
// elements, and nothing throws across: a function answers false where its library
// does not support the task.
#ifndef MICA_PLUGINS_CPU_LIBRARIES_LIBRARIES_H_
#define MICA_PLUGINS_CPU_LIBRARIES_LIBRARIES_H_

#include <cstdint>

namespace mica::cpu {

// How a matrix lies in memory: rows of `stride` elements, as it is or transposed.
struct MatrixView {
  const void* data;
  int64_t stride;
  bool transposed;
};

// c = alpha * a @ b + beta * c, with c of m x n in rows of c_stride elements. `dtype`
// (f32, f64, c64, c128 of abi.h) is that of all three. With beta zero c is only written.
struct GemmTask {
  int32_t dtype;
  int64_t m, n, k;
  MatrixView a, b;
  void* c;
  int64_t c_stride;
  double alpha[2], beta[2];  // real and imaginary part
};

enum class ConvolutionKind : int32_t { kForward, kBackwardInput, kBackwardWeight };

// An operand of a convolution: its sizes follow from the task. Strides are
// of batch, channel, space (weights: output channel, input channel of a group, space).
struct ConvolutionOperand {
  void* data = nullptr;
  int64_t strides[5] = {};
};

// dst[b][c][r] = src[b][r][c] for `batch` dense matrices of rows × columns.
using TransposeMatrices = void (*)(float* dst, const float* src, int64_t batch, int64_t rows, int64_t columns,
                                   int32_t threads);

// A convolution of 1 to 3 spatial dimensions, read as an ordinary (not transposed)
// one: `output` is what the forward direction makes of `input`. The kind says which
// of input, weight and output is written; `bias` (forward only) may be NULL, and its
// elements are adjacent. What a task does not use stays zero: its bytes are the key
// of the primitives' cache.
struct ConvolutionTask {
  ConvolutionKind kind = ConvolutionKind::kForward;
  int32_t spatial = 0;  // number of spatial dimensions
  int32_t threads = 1;
  int32_t dtype = 0;  // of every operand; libraries take float32
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  int64_t in[3] = {}, out[3] = {}, kernel[3] = {}, stride[3] = {}, padding[3] = {}, dilation[3] = {};
  ConvolutionOperand input, weight, output;
  const void* bias = nullptr;
  TransposeMatrices transpose = nullptr;  // for reorders between channels first and last
};

// What LAPACK does with one matrix; lapack.cc says for each which operands it has.
enum class Core : int32_t {
  kCholesky,
  kLu,
  kInverse,
  kTriangularSolve,
  kLuSolve,
  kQr,
  kHouseholderProduct,
  kMultiplyByQ,
  kEigh,
  kEig,
  kSvd,
  kLeastSquares,
  kLdl,
  kLdlSolve,
};

// One matrix of each operand, column-major, its columns adjacent, in dtype f32, f64,
// c64 or c128. Each core reads those of the sizes and choices that it names.
struct CoreTask {
  Core core;
  int32_t dtype;
  int64_t m = 0, n = 0, k = 0;
  bool upper = false, left = true, adjoint = false, unit = false, hermitian = false, vectors = true,
       full = false;
  char driver = 'd';  // of least squares: gel(s), gels(y), gels(d), gels(s) as 'l', 'y', 'd', 's'
  double rcond = -1;
  void* operands[5] = {};
  int32_t info = 0;  // LAPACK's, 0 if all is well
};

struct LibraryTable {
  // OpenBLAS on the calling thread alone.
  void (*blas_gemm)(const GemmTask& task);
  // y = factor * a @ x + old * y on the calling thread, for a of m x n in f32 or f64.
  void (*blas_gemv)(int32_t dtype, int64_t m, int64_t n, const MatrixView& a, const void* x, int64_t x_stride,
                    void* y, int64_t y_stride, double factor, double old);
  // oneDNN, on the task's threads.
  bool (*convolution)(const ConvolutionTask& task);
  // LAPACK on the calling thread; false where memory for its work is lacking.
  bool (*lapack)(CoreTask& task);
};

}  // namespace mica::cpu

// The one symbol of mica_cpu_libraries.so.
#define MICA_CPU_LIBRARIES_SYMBOL "mica_cpu_libraries"
extern "C" __attribute__((visibility("default"))) const mica::cpu::LibraryTable* mica_cpu_libraries();

#endif  // MICA_PLUGINS_CPU_LIBRARIES_LIBRARIES_H_
