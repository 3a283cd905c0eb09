// A product whose rows get a row added, by cuBLASLt: a linear layer with its bias in one kernel.
//
// cuBLAS alone takes two passes: the bias is first spread over the result, which the product then reads and
// adds to (64 MB written and read for 8192 rows of 4096 halves, 25 of 395 us on an H100).
#pragma once

#include <cstdint>

#include "plugins/cuda/api.h"

namespace cuda {

// c = alpha op(a) op(b) + the same column for each column of c, by columns as in products.cc: m x n, and k
// deep. Its bytes are a key.
struct ProductWithRow {
  int64_t device = 0, m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  cudaDataType type = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasOperation_t a_operation = CUBLAS_OP_N, b_operation = CUBLAS_OP_N;
  int32_t is_exact = 0;   // sums stay in the type of `compute`
  int32_t alignment = 0;  // in bytes, of all four; Run sets it
};

struct ProductMemory {
  const void* alpha;  // a float's or a double's
  const void* a;
  const void* b;
  void* c;
  const void* column;
  uint64_t stream;
};

// Queues it; false where cuBLASLt is missing or does not take it. Throws what CublasSucceeded does.
bool Run(ProductWithRow product, const ProductMemory& memory);

}  // namespace cuda
