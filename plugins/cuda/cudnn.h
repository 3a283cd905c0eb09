// cuDNN as this process has it: its functions, handles, and what its failures mean.
//
// It is opened at the first use. Where it does not start (it is for a newer driver, or one of its own
// libraries is missing), there is none from then on.
#pragma once

#include <string>

#include "plugins/cuda/api.h"

namespace cuda {

// Why there is no cuDNN, as a sentence; empty where there is one. Throws nothing.
std::string CudnnMissing();
// Whether CudnnMissing() is empty, for every call.
bool HasCudnn();

// The functions, which are there where CudnnMissing() was once empty.
const CudnnApi& Cudnn();

// A handle for the time of a call: one serves one thread at a time.
class CudnnHandle {
 public:
  // `device` is current.
  explicit CudnnHandle(int device);
  ~CudnnHandle();
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;
  // NULL where there is no cuDNN.
  cudnnHandle_t get() const { return handle_; }

 private:
  int device_;
  cudnnHandle_t handle_;
};

// Whether a status is of one kind with another: the thousands are the same.
inline bool IsKind(cudnnStatus_t status, cudnnStatus_t kind) { return status / 1000 == kind / 1000; }

// Whether cuDNN failed to build, load or launch a kernel, for another reason than memory: other kernels may
// do.
inline bool FailedToLaunch(cudnnStatus_t status) {
  return status != CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED &&
         (IsKind(status, CUDNN_STATUS_INTERNAL_ERROR) || IsKind(status, CUDNN_STATUS_EXECUTION_FAILED));
}

// Whether a function did its work; false where cuDNN does not support what it was asked for, or does not
// start. Throws what another failure means: MICA_ERROR_OUT_OF_MEMORY, or MICA_ERROR_RUNTIME.
bool Succeeded(cudnnStatus_t status, const char* function, int device);

// Lets a handle queue on a stream of the device; false where cuDNN does not start.
bool SetStream(cudnnHandle_t handle, int device, uint64_t stream);

}  // namespace cuda
