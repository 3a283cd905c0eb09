// The functions of NVIDIA's driver, run-time compiler, cuBLAS and cuDNN that Mica calls, declared here.
//
// No header of CUDA is there when Mica is built, so these are its own declarations of a stable C ABI: names
// are NVIDIA's, enumerations are `int`, handles are pointers to types that nobody defines. Every function
// stands by the name that the library exports ("cuMemAlloc_v2"; cuda.h's cuMemAlloc is a macro for it).
// A table is a struct of pointers to functions; SymbolsOf() lists what library.h is to fill in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/cuda/library.h"

namespace cuda {

// --- the driver, libcuda.so.1

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;

enum : CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_LAUNCH_FAILED = 719,
};

enum CUdevice_attribute : int {
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88,
  CU_DEVICE_ATTRIBUTE_MAX = 512,  // above the last of every driver so far
};
enum CUpointer_attribute : int { CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2 };
enum CUmemorytype : unsigned int { CU_MEMORYTYPE_HOST = 1 };
enum CUjit_option : int { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };
enum CUstream_flags : unsigned int { CU_STREAM_NON_BLOCKING = 1 };
enum CUevent_flags : unsigned int {
  CU_EVENT_DEFAULT = 0,
  CU_EVENT_BLOCKING_SYNC = 1,
  CU_EVENT_DISABLE_TIMING = 2,
};
enum CUstreamCaptureMode : unsigned int {
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
};
enum CUstreamCaptureStatus : unsigned int { CU_STREAM_CAPTURE_STATUS_NONE = 0 };
constexpr unsigned int kHostAllocPortable = 1;  // CU_MEMHOSTALLOC_PORTABLE

#define MICA_CUDA_DRIVER_FUNCTIONS(X)                                                                     \
  X(CUresult, cuInit, (unsigned int flags))                                                               \
  X(CUresult, cuDriverGetVersion, (int* version))                                                         \
  X(CUresult, cuGetErrorName, (CUresult error, const char** name))                                        \
  X(CUresult, cuGetErrorString, (CUresult error, const char** text))                                      \
  X(CUresult, cuDeviceGetCount, (int* count))                                                             \
  X(CUresult, cuDeviceGet, (CUdevice * device, int ordinal))                                              \
  X(CUresult, cuDeviceGetName, (char* name, int length, CUdevice device))                                 \
  X(CUresult, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                                     \
  X(CUresult, cuDeviceGetAttribute, (int* value, CUdevice_attribute attribute, CUdevice device))          \
  X(CUresult, cuDeviceCanAccessPeer, (int* can, CUdevice device, CUdevice peer))                          \
  X(CUresult, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                           \
  X(CUresult, cuCtxGetCurrent, (CUcontext * context))                                                     \
  X(CUresult, cuCtxSetCurrent, (CUcontext context))                                                       \
  X(CUresult, cuCtxGetDevice, (CUdevice * device))                                                        \
  X(CUresult, cuCtxGetStreamPriorityRange, (int* least, int* greatest))                                   \
  X(CUresult, cuCtxSynchronize, ())                                                                       \
  X(CUresult, cuMemGetInfo_v2, (size_t * free, size_t * total))                                           \
  X(CUresult, cuMemAlloc_v2, (CUdeviceptr * data, size_t bytes))                                          \
  X(CUresult, cuMemFree_v2, (CUdeviceptr data))                                                           \
  X(CUresult, cuMemHostAlloc, (void** data, size_t bytes, unsigned int flags))                            \
  X(CUresult, cuMemFreeHost, (void* data))                                                                \
  X(CUresult, cuPointerGetAttribute, (void* value, CUpointer_attribute attribute, CUdeviceptr data))      \
  X(CUresult, cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void* from, size_t bytes, CUstream stream))    \
  X(CUresult, cuMemcpyDtoHAsync_v2, (void* to, CUdeviceptr from, size_t bytes, CUstream stream))          \
  X(CUresult, cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))    \
  X(CUresult, cuMemcpyPeerAsync,                                                                          \
    (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,        \
     CUstream stream))                                                                                    \
  X(CUresult, cuMemsetD8Async, (CUdeviceptr data, unsigned char byte, size_t count, CUstream stream))     \
  X(CUresult, cuStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority))          \
  X(CUresult, cuStreamDestroy_v2, (CUstream stream))                                                      \
  X(CUresult, cuStreamSynchronize, (CUstream stream))                                                     \
  X(CUresult, cuStreamQuery, (CUstream stream))                                                           \
  X(CUresult, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags))                    \
  X(CUresult, cuEventCreate, (CUevent * event, unsigned int flags))                                       \
  X(CUresult, cuEventDestroy_v2, (CUevent event))                                                         \
  X(CUresult, cuEventRecord, (CUevent event, CUstream stream))                                            \
  X(CUresult, cuEventSynchronize, (CUevent event))                                                        \
  X(CUresult, cuEventQuery, (CUevent event))                                                              \
  X(CUresult, cuEventElapsedTime, (float* milliseconds, CUevent start, CUevent end))                      \
  X(CUresult, cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode))                       \
  X(CUresult, cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                     \
  X(CUresult, cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus * status))                     \
  X(CUresult, cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode))                            \
  X(CUresult, cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags)) \
  X(CUresult, cuGraphLaunch, (CUgraphExec exec, CUstream stream))                                         \
  X(CUresult, cuGraphExecDestroy, (CUgraphExec exec))                                                     \
  X(CUresult, cuGraphDestroy, (CUgraph graph))                                                            \
  X(CUresult, cuModuleLoadDataEx,                                                                         \
    (CUmodule * module, const void* image, unsigned int count, CUjit_option* options, void** values))     \
  X(CUresult, cuModuleGetFunction, (CUfunction * function, CUmodule module, const char* name))            \
  X(CUresult, cuLaunchKernel,                                                                             \
    (CUfunction function, unsigned int blocks_x, unsigned int blocks_y, unsigned int blocks_z,            \
     unsigned int threads_x, unsigned int threads_y, unsigned int threads_z, unsigned int shared_bytes,   \
     CUstream stream, void** arguments, void** extra))

// --- the run-time compiler, libnvrtc.so.13 or .12

using nvrtcResult = int;
using nvrtcProgram = struct _nvrtcProgram*;

enum : nvrtcResult { NVRTC_SUCCESS = 0, NVRTC_ERROR_OUT_OF_MEMORY = 1, NVRTC_ERROR_COMPILATION = 6 };

#define MICA_CUDA_COMPILER_FUNCTIONS(X)                                                                 \
  X(nvrtcResult, nvrtcVersion, (int* major, int* minor))                                                \
  X(nvrtcResult, nvrtcGetNumSupportedArchs, (int* count))                                               \
  X(nvrtcResult, nvrtcGetSupportedArchs, (int* architectures))                                          \
  X(const char*, nvrtcGetErrorString, (nvrtcResult result))                                             \
  X(nvrtcResult, nvrtcCreateProgram,                                                                    \
    (nvrtcProgram * program, const char* text, const char* name, int count, const char* const* headers, \
     const char* const* names))                                                                         \
  X(nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram * program))                                         \
  X(nvrtcResult, nvrtcCompileProgram, (nvrtcProgram program, int count, const char* const* options))    \
  X(nvrtcResult, nvrtcGetProgramLogSize, (nvrtcProgram program, size_t * size))                         \
  X(nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram program, char* log))                                 \
  X(nvrtcResult, nvrtcGetPTXSize, (nvrtcProgram program, size_t * size))                                \
  X(nvrtcResult, nvrtcGetPTX, (nvrtcProgram program, char* ptx))                                        \
  X(nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram program, size_t * size))                              \
  X(nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram program, char* cubin))

// --- matrix products, libcublas.so.13 or .12

using cublasStatus_t = int;
using cublasHandle_t = struct cublasContext*;

enum : cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
};
enum cublasOperation_t : int { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasMath_t : int { CUBLAS_DEFAULT_MATH = 0, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16 };
enum cublasComputeType_t : int {
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};
enum cublasGemmAlgo_t : int { CUBLAS_GEMM_DEFAULT = -1 };
enum cudaDataType : int {
  CUDA_R_32F = 0,
  CUDA_R_64F = 1,
  CUDA_R_16F = 2,
  CUDA_C_32F = 4,
  CUDA_C_64F = 5,
  CUDA_R_16BF = 14,
};

// cuBLAS 12 and later also have products with sizes of 64 bits.
#define MICA_CUBLAS_FUNCTIONS(X)                                                                      \
  X(cublasStatus_t, cublasCreate_v2, (cublasHandle_t * handle))                                       \
  X(cublasStatus_t, cublasDestroy_v2, (cublasHandle_t handle))                                        \
  X(cublasStatus_t, cublasSetStream_v2, (cublasHandle_t handle, CUstream stream))                     \
  X(cublasStatus_t, cublasSetWorkspace_v2, (cublasHandle_t handle, void* workspace, size_t size))     \
  X(cublasStatus_t, cublasSetMathMode, (cublasHandle_t handle, cublasMath_t mode))                    \
  X(const char*, cublasGetStatusName, (cublasStatus_t status))                                        \
  X(cublasStatus_t, cublasGemmEx_64,                                                                  \
    (cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int64_t m,  \
     int64_t n, int64_t k, const void* alpha, const void* a, cudaDataType a_type, int64_t lda,        \
     const void* b, cudaDataType b_type, int64_t ldb, const void* beta, void* c, cudaDataType c_type, \
     int64_t ldc, cublasComputeType_t compute, cublasGemmAlgo_t algorithm))                           \
  X(cublasStatus_t, cublasGemmStridedBatchedEx_64,                                                    \
    (cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int64_t m,  \
     int64_t n, int64_t k, const void* alpha, const void* a, cudaDataType a_type, int64_t lda,        \
     long long a_stride, const void* b, cudaDataType b_type, int64_t ldb, long long b_stride,         \
     const void* beta, void* c, cudaDataType c_type, int64_t ldc, long long c_stride, int64_t batch,  \
     cublasComputeType_t compute, cublasGemmAlgo_t algorithm))

// --- matrix products with something added, libcublasLt, which comes along with libcublas

using cublasLtHandle_t = struct cublasLtContext*;  // a cublasHandle_t is one too
using cublasLtMatmulDesc_t = struct cublasLtMatmulDescOpaque*;
using cublasLtMatrixLayout_t = struct cublasLtMatrixLayoutOpaque*;
using cublasLtMatmulPreference_t = struct cublasLtMatmulPreferenceOpaque*;

enum cublasLtMatmulDescAttributes_t : int {
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
};
enum cublasLtEpilogue_t : int { CUBLASLT_EPILOGUE_BIAS = 4 };
enum cublasLtMatmulPreferenceAttributes_t : int {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
};
// Partial sums in the type of the sums, not in that of the result.
enum cublasLtReductionScheme_t : uint32_t { CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2 };

struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

#define MICA_CUBLASLT_FUNCTIONS(X)                                                                         \
  X(cublasStatus_t, cublasLtMatmulDescCreate,                                                              \
    (cublasLtMatmulDesc_t * product, cublasComputeType_t compute, cudaDataType scale))                     \
  X(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t product))                             \
  X(cublasStatus_t, cublasLtMatmulDescSetAttribute,                                                        \
    (cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, const void* value,            \
     size_t size))                                                                                         \
  X(cublasStatus_t, cublasLtMatrixLayoutCreate,                                                            \
    (cublasLtMatrixLayout_t * layout, cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld))     \
  X(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout))                          \
  X(cublasStatus_t, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * preference))             \
  X(cublasStatus_t, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference))              \
  X(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,                                                  \
    (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,                \
     const void* value, size_t size))                                                                      \
  X(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,                                                        \
    (cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,                      \
     cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,                         \
     cublasLtMatmulPreference_t preference, int most, cublasLtMatmulHeuristicResult_t* found, int* count)) \
  X(cublasStatus_t, cublasLtMatmul,                                                                        \
    (cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha, const void* a,              \
     cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,    \
     const void* c, cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,             \
     const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_size, CUstream stream))

// --- convolutions and attention, libcudnn.so.9

using cudnnStatus_t = int;
using cudnnHandle_t = struct cudnnContext*;

// The thousands are the kind of a failure; single ones (3001: the graph pattern is not supported) come with
// every version.
enum : cudnnStatus_t {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS_NOT_INITIALIZED = 1001,
  CUDNN_STATUS_BAD_PARAM = 2000,
  CUDNN_STATUS_NOT_SUPPORTED = 3000,
  CUDNN_STATUS_INTERNAL_ERROR = 4000,
  CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED = 4004,
  CUDNN_STATUS_EXECUTION_FAILED = 5000,
};
enum cudnnDataType_t : int {
  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_DOUBLE = 1,
  CUDNN_DATA_HALF = 2,
  CUDNN_DATA_INT32 = 4,
  CUDNN_DATA_BFLOAT16 = 9,
  CUDNN_DATA_BOOLEAN = 11,
};
enum cudnnConvolutionMode_t : int { CUDNN_CROSS_CORRELATION = 1 };

// The graph API: descriptors of tensors and operations, which attributes fill in.
using cudnnBackendDescriptor_t = void*;
enum cudnnBackendDescriptorType_t : int {
  CUDNN_BACKEND_POINTWISE_DESCRIPTOR = 0,
  CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR = 1,
  CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2,
  CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3,
  CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4,
  CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR = 10,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR = 11,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR = 12,
  CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13,
  CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15,
  CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16,
  CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17,
  CUDNN_BACKEND_MATMUL_DESCRIPTOR = 18,
  CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR = 19,
  CUDNN_BACKEND_REDUCTION_DESCRIPTOR = 21,
  CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR = 22,
  CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR = 31,
};
enum cudnnBackendAttributeType_t : int {
  CUDNN_TYPE_HANDLE = 0,
  CUDNN_TYPE_DATA_TYPE = 1,
  CUDNN_TYPE_BOOLEAN = 2,
  CUDNN_TYPE_INT64 = 3,
  CUDNN_TYPE_FLOAT = 4,
  CUDNN_TYPE_DOUBLE = 5,
  CUDNN_TYPE_VOID_PTR = 6,
  CUDNN_TYPE_CONVOLUTION_MODE = 7,
  CUDNN_TYPE_HEUR_MODE = 8,
  CUDNN_TYPE_NUMERICAL_NOTE = 11,
  CUDNN_TYPE_POINTWISE_MODE = 14,
  CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,
  CUDNN_TYPE_REDUCTION_OPERATOR_TYPE = 18,
  CUDNN_TYPE_CHAR = 24,
};
enum cudnnBackendAttributeName_t : int {
  CUDNN_ATTR_POINTWISE_MODE = 0,
  CUDNN_ATTR_POINTWISE_MATH_PREC = 1,
  CUDNN_ATTR_POINTWISE_AXIS = 9,
  CUDNN_ATTR_CONVOLUTION_COMP_TYPE = 100,
  CUDNN_ATTR_CONVOLUTION_CONV_MODE = 101,
  CUDNN_ATTR_CONVOLUTION_DILATIONS = 102,
  CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES = 103,
  CUDNN_ATTR_CONVOLUTION_POST_PADDINGS = 104,
  CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS = 105,
  CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS = 106,
  CUDNN_ATTR_ENGINEHEUR_MODE = 200,
  CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201,
  CUDNN_ATTR_ENGINEHEUR_RESULTS = 202,
  CUDNN_ATTR_ENGINECFG_ENGINE = 300,
  CUDNN_ATTR_EXECUTION_PLAN_HANDLE = 400,
  CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
  CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
  CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION = 405,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA = 700,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA = 701,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC = 702,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W = 703,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X = 704,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y = 705,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA = 706,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA = 707,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC = 708,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W = 709,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX = 710,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY = 711,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA = 712,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA = 713,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC = 714,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW = 715,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X = 716,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY = 717,
  CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
  CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 751,
  CUDNN_ATTR_OPERATION_POINTWISE_BDESC = 752,
  CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 753,
  CUDNN_ATTR_OPERATION_POINTWISE_TDESC = 758,
  CUDNN_ATTR_OPERATIONGRAPH_HANDLE = 800,
  CUDNN_ATTR_OPERATIONGRAPH_OPS = 801,
  CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900,
  CUDNN_ATTR_TENSOR_DATA_TYPE = 901,
  CUDNN_ATTR_TENSOR_DIMENSIONS = 902,
  CUDNN_ATTR_TENSOR_STRIDES = 903,
  CUDNN_ATTR_TENSOR_UNIQUE_ID = 906,
  CUDNN_ATTR_TENSOR_IS_VIRTUAL = 907,
  CUDNN_ATTR_TENSOR_IS_BY_VALUE = 908,
  CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000,
  CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001,
  CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003,
  CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303,
  CUDNN_ATTR_MATMUL_COMP_TYPE = 1500,
  CUDNN_ATTR_OPERATION_MATMUL_ADESC = 1520,
  CUDNN_ATTR_OPERATION_MATMUL_BDESC = 1521,
  CUDNN_ATTR_OPERATION_MATMUL_CDESC = 1522,
  CUDNN_ATTR_OPERATION_MATMUL_DESC = 1523,
  CUDNN_ATTR_REDUCTION_OPERATOR = 1600,
  CUDNN_ATTR_REDUCTION_COMP_TYPE = 1601,
  CUDNN_ATTR_OPERATION_REDUCTION_XDESC = 1610,
  CUDNN_ATTR_OPERATION_REDUCTION_YDESC = 1611,
  CUDNN_ATTR_OPERATION_REDUCTION_DESC = 1612,
  CUDNN_ATTR_OPERATION_RESHAPE_XDESC = 2200,
  CUDNN_ATTR_OPERATION_RESHAPE_YDESC = 2201,
};
enum cudnnPointwiseMode_t : int {
  CUDNN_POINTWISE_ADD = 0,
  CUDNN_POINTWISE_MUL = 1,
  CUDNN_POINTWISE_DIV = 6,
  CUDNN_POINTWISE_SUB = 9,
  CUDNN_POINTWISE_EXP = 13,
  CUDNN_POINTWISE_LOG = 15,
  CUDNN_POINTWISE_IDENTITY = 21,
  CUDNN_POINTWISE_CMP_GE = 303,
  CUDNN_POINTWISE_GEN_INDEX = 501,
  CUDNN_POINTWISE_BINARY_SELECT = 601,
};
enum cudnnReduceTensorOp_t : int { CUDNN_REDUCE_TENSOR_ADD = 0, CUDNN_REDUCE_TENSOR_MAX = 3 };
enum cudnnBackendHeurMode_t : int { CUDNN_HEUR_MODE_FALLBACK = 2, CUDNN_HEUR_MODE_A = 3 };
enum cudnnBackendNumericalNote_t : int {
  CUDNN_NUMERICAL_NOTE_TENSOR_CORE = 0,
  CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS = 1,
  CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4,
};

#define MICA_CUDNN_FUNCTIONS(X)                                                          \
  X(size_t, cudnnGetVersion, ())                                                         \
  X(const char*, cudnnGetErrorString, (cudnnStatus_t status))                            \
  X(void, cudnnGetLastErrorString, (char* text, size_t size))                            \
  X(cudnnStatus_t, cudnnCreate, (cudnnHandle_t * handle))                                \
  X(cudnnStatus_t, cudnnSetStream, (cudnnHandle_t handle, CUstream stream))              \
  X(cudnnStatus_t, cudnnBackendCreateDescriptor,                                         \
    (cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t * made))                \
  X(cudnnStatus_t, cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t descriptor)) \
  X(cudnnStatus_t, cudnnBackendFinalize, (cudnnBackendDescriptor_t descriptor))          \
  X(cudnnStatus_t, cudnnBackendSetAttribute,                                             \
    (cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,              \
     cudnnBackendAttributeType_t type, int64_t count, const void* values))               \
  X(cudnnStatus_t, cudnnBackendGetAttribute,                                             \
    (cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,        \
     cudnnBackendAttributeType_t type, int64_t most, int64_t* count, void* values))      \
  X(cudnnStatus_t, cudnnBackendExecute,                                                  \
    (cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t variant_pack))

// --- the tables

#define MICA_CUDA_POINTER_(result, name, parameters) result(*name) parameters = nullptr;
struct DriverApi {
  MICA_CUDA_DRIVER_FUNCTIONS(MICA_CUDA_POINTER_)
};
struct CompilerApi {
  MICA_CUDA_COMPILER_FUNCTIONS(MICA_CUDA_POINTER_)
};
struct CublasApi {
  MICA_CUBLAS_FUNCTIONS(MICA_CUDA_POINTER_)
};
struct CublasLtApi {
  MICA_CUBLASLT_FUNCTIONS(MICA_CUDA_POINTER_)
};
struct CudnnApi {
  MICA_CUDNN_FUNCTIONS(MICA_CUDA_POINTER_)
};
#undef MICA_CUDA_POINTER_

#define MICA_CUDA_SYMBOL_(result, name, parameters) Symbol(#name, &api.name),
inline std::vector<Symbol> SymbolsOf(DriverApi& api) {
  return {MICA_CUDA_DRIVER_FUNCTIONS(MICA_CUDA_SYMBOL_)};
}
inline std::vector<Symbol> SymbolsOf(CompilerApi& api) {
  return {MICA_CUDA_COMPILER_FUNCTIONS(MICA_CUDA_SYMBOL_)};
}
inline std::vector<Symbol> SymbolsOf(CublasApi& api) { return {MICA_CUBLAS_FUNCTIONS(MICA_CUDA_SYMBOL_)}; }
inline std::vector<Symbol> SymbolsOf(CublasLtApi& api) {
  return {MICA_CUBLASLT_FUNCTIONS(MICA_CUDA_SYMBOL_)};
}
inline std::vector<Symbol> SymbolsOf(CudnnApi& api) { return {MICA_CUDNN_FUNCTIONS(MICA_CUDA_SYMBOL_)}; }
#undef MICA_CUDA_SYMBOL_

}  // namespace cuda
