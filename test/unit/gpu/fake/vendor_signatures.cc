// Prints NVIDIA's functions that plugins/cuda calls as the vendor's own headers declare them, for
// signatures.txt. Not part of the build, which has no such headers; by hand, with the packages nvidia-cublas,
// nvidia-cudnn-cu13, nvidia-cuda-runtime and nvidia-cuda-crt unpacked:
//
//   g++ -std=c++20 -I. -Isdk/include -I<folders of headers> test/unit/gpu/fake/vendor_signatures.cc &&
//   ./a.out
#include "plugins/cuda/api.h"

#include <cstdio>

#include "test/unit/gpu/signatures.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>

// The structs that the two sides share.
static_assert(sizeof(cuda::cublasLtMatmulHeuristicResult_t) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(cuda::cublasLtMatmulHeuristicResult_t, workspaceSize) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(cuda::cublasLtMatmulHeuristicResult_t, state) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(sizeof(cuda::ConvolutionAlgoPerf) == sizeof(cudnnConvolutionFwdAlgoPerf_t));
static_assert(sizeof(cuda::ConvolutionAlgoPerf) == sizeof(cudnnConvolutionBwdDataAlgoPerf_t));
static_assert(sizeof(cuda::ConvolutionAlgoPerf) == sizeof(cudnnConvolutionBwdFilterAlgoPerf_t));
static_assert(offsetof(cuda::ConvolutionAlgoPerf, determinism) ==
              offsetof(cudnnConvolutionFwdAlgoPerf_t, determinism));
static_assert(offsetof(cuda::ConvolutionAlgoPerf, mathType) ==
              offsetof(cudnnConvolutionFwdAlgoPerf_t, mathType));

// The constants.
#define SAME(name) static_assert(static_cast<int>(cuda::name) == static_cast<int>(::name))
SAME(CUBLAS_STATUS_NOT_INITIALIZED);
SAME(CUBLAS_STATUS_ALLOC_FAILED);
SAME(CUBLAS_STATUS_ARCH_MISMATCH);
SAME(CUBLAS_STATUS_NOT_SUPPORTED);
SAME(CUBLAS_OP_N);
SAME(CUBLAS_OP_T);
SAME(CUBLAS_DEFAULT_MATH);
SAME(CUBLAS_COMPUTE_32F);
SAME(CUBLAS_COMPUTE_64F);
SAME(CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(CUBLAS_GEMM_DEFAULT);
SAME(CUDA_R_32F);
SAME(CUDA_R_64F);
SAME(CUDA_C_32F);
SAME(CUDA_C_64F);
SAME(CUDA_R_16BF);
SAME(CUBLASLT_MATMUL_DESC_TRANSA);
SAME(CUBLASLT_MATMUL_DESC_TRANSB);
SAME(CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(CUBLASLT_EPILOGUE_BIAS);
SAME(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(CUDNN_STATUS_NOT_INITIALIZED);
SAME(CUDNN_STATUS_BAD_PARAM);
SAME(CUDNN_STATUS_NOT_SUPPORTED);
SAME(CUDNN_STATUS_INTERNAL_ERROR);
SAME(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
SAME(CUDNN_DATA_FLOAT);
SAME(CUDNN_DATA_DOUBLE);
SAME(CUDNN_DATA_HALF);
SAME(CUDNN_DATA_BFLOAT16);
SAME(CUDNN_TENSOR_OP_MATH);
SAME(CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION);
SAME(CUDNN_FMA_MATH);
SAME(CUDNN_TENSOR_NCHW);
SAME(CUDNN_TENSOR_NHWC);
SAME(CUDNN_NON_DETERMINISTIC);
SAME(CUDNN_DETERMINISTIC);
SAME(CUDNN_CROSS_CORRELATION);

int main() {
#define PRINT(result, name, parameters) \
  std::printf("%s %s\n", #name, cuda::test::Letters(decltype(&::name){}).c_str());
  MICA_CUBLAS_FUNCTIONS(PRINT)
  MICA_CUBLASLT_FUNCTIONS(PRINT)
  MICA_CUDNN_FUNCTIONS(PRINT)
}
