// A vendor's matrix products, as plugins/gpu calls them.
//
// CUDA has cuBLAS behind it, HIP rocBLAS; where a library is missing or does not take a layout, Gemm says
// so, and the caller copies the operands into one that it takes, or uses a kernel of its own.
#pragma once

#include <cstdint>

namespace gpu {

// A batch of matrices in a device's memory. Strides are in elements, and of any size: none, one or the
// other may be 1, and those of a dimension of size 1 mean nothing.
struct GemmMatrix {
  void* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
  int64_t batch_stride = 0;  // 0 lends `a` or `b` one matrix to the whole batch
};

// c = alpha * a b + beta * c, for matrices a (m, k), b (k, n) and c (m, n).
struct GemmProblem {
  int device = 0;
  uint64_t stream = 0;
  int32_t dtype = 0;  // MICA_F32, F64, F16, BF16, C64 or C128; of all three
  int64_t m = 0, n = 0, k = 0, batch = 1;
  double alpha[2] = {1, 0};  // real and imaginary part, which real dtypes leave out
  double beta[2] = {0, 0};   // 0: what `c` holds is not read
  GemmMatrix a, b, c;
  // Not NULL: this row of n elements, side by side, is added to each row, in place of beta * c.
  const void* row = nullptr;
};

class Products {
 public:
  virtual ~Products() = default;

  // Queues the product on the problem's stream. Returns false, and does nothing, where the library is
  // missing, has no memory left or does not take the problem. Halves are summed as float. How exact the rest
  // is, the host's settings say (<mica/settings.h>).
  virtual bool Gemm(const GemmProblem& problem) = 0;

  // What addresses of matrices, the distances between their rows and those rows' lengths have to be multiples
  // of, in bytes, for Gemm to be fast: 1 where it does not matter, 0 where there is no library for the dtype.
  virtual int64_t Alignment(int32_t dtype) = 0;
};

}  // namespace gpu
