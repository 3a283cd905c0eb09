// cuBLAS as this process has it: its functions, each thread's handle, and what its failures mean.
//
// It is opened at the first use. Where it does not start, there is none from then on, and a warning says why.
#pragma once

#include <optional>
#include <string>

#include "plugins/cuda/api.h"
#include "plugins/cuda/host_memory.h"

namespace cuda {

// Why there is no cuBLAS, as a sentence; empty where there is one. Throws nothing.
std::string CublasMissing();
// Whether CublasMissing() is empty, for every call.
bool HasCublas();

// The functions, which are there where CublasMissing() was once empty.
const CublasApi& Cublas();

// Those of cuBLASLt, which came along with cuBLAS; NULL where it lacks some.
const CublasLtApi* CublasLt();

// This thread's handle, for a stream of a device that is current, and in a mode of arithmetic; NULL where
// cuBLAS does not start. It also serves as one of cuBLASLt's. A thread keeps the handle that it used last, so
// that calls in a series neither lock nor set anything. A handle's workspace serves one stream, and products
// are the same in every run; past some handles they are lent to other streams, and last bits may vary.
cublasHandle_t CublasHandle(int device, uint64_t stream, cublasMath_t mode);

// A workspace for the products that a stream records: the handle's own serves what others queue meanwhile.
// Nothing where the stream runs.
class RecordedWorkspace {
 public:
  RecordedWorkspace(cublasHandle_t handle, int device, uint64_t stream);
  ~RecordedWorkspace();
  RecordedWorkspace(const RecordedWorkspace&) = delete;

 private:
  const cublasHandle_t handle_;
  const uint64_t stream_;
  std::optional<Scratch> memory_;
};

// Whether a function did its work; false where cuBLAS does not support what it was asked for. Throws what
// another failure means: MICA_ERROR_OUT_OF_MEMORY, or MICA_ERROR_RUNTIME.
bool CublasSucceeded(cublasStatus_t status, const char* function, int device);

}  // namespace cuda
