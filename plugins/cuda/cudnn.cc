// Opening cuDNN, a pool of its handles, and its failures.
#include "plugins/cuda/cudnn.h"

#include <map>
#include <mutex>
#include <vector>

#include <mica/plugin.h>

#include "plugins/cuda/folders.h"
#include "plugins/cuda/host_memory.h"

namespace cuda {
namespace {

struct Opened {
  CudnnApi api;
  std::string missing;
};

std::string Missing(const std::string& reason) {
  return "cuDNN (libcudnn.so.9) is not available, so Mica's own kernels compute convolutions and attention: "
         "install the package nvidia-cudnn-cu13 (-cu12 for an older driver), or name its folder in "
         "MICA_CUDA_LIBRARIES (" +
         reason + ").";
}

// Opened at the first use, and never destroyed.
const Opened& Open() {
  static const Opened& opened = *[] {
    auto* made = new Opened;
    Library library;
    if (!library.Open(FileCandidates("libcudnn.so.9"), SymbolsOf(made->api)))
      made->missing = Missing(library.reason());
    return made;
  }();
  return opened;
}

// cuDNN's name of a status, and its words for the last failure.
std::string Describe(cudnnStatus_t status) {
  const char* name = Cudnn().cudnnGetErrorString(status);
  char words[1024] = "";
  Cudnn().cudnnGetLastErrorString(words, sizeof words);
  words[sizeof words - 1] = '\0';
  return std::string(name ? name : "a status without a name") + " (" + std::to_string(status) + ")" +
         (words[0] ? std::string(": ") + words : "");
}

// Handles that nobody uses at the moment, and whether cuDNN starts.
class Handles {
 public:
  cudnnHandle_t Take(int device) {
    if (failure_.happened()) return nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      std::vector<cudnnHandle_t>& idle = idle_[device];
      if (!idle.empty()) {
        const cudnnHandle_t handle = idle.back();
        idle.pop_back();
        return handle;
      }
    }
    cudnnHandle_t handle = nullptr;
    const cudnnStatus_t status = Cudnn().cudnnCreate(&handle);
    if (status == CUDNN_STATUS_SUCCESS) return handle;
    // Throws where there is no memory: that may be otherwise the next time.
    if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
      Succeeded(status, "cudnnCreate", device);
    Fail("cudnnCreate", status);
    return nullptr;
  }

  void Return(cudnnHandle_t handle, int device) {
    std::lock_guard<std::mutex> lock(mutex_);
    idle_[device].push_back(handle);
  }

  void Fail(const char* function, cudnnStatus_t status) {
    failure_.Set(Missing(std::string(function) + " failed with " + Describe(status)));
  }

  StartFailure& failure() { return failure_; }

 private:
  std::mutex mutex_;
  std::map<int, std::vector<cudnnHandle_t>> idle_;
  StartFailure failure_;
};

Handles& GetHandles() {
  static Handles& handles = *new Handles;
  return handles;
}

}  // namespace

std::string CudnnMissing() {
  const std::string& missing = Open().missing;
  return missing.empty() ? GetHandles().failure().sentence() : missing;
}

bool HasCudnn() { return Open().missing.empty() && !GetHandles().failure().happened(); }

const CudnnApi& Cudnn() { return Open().api; }

CudnnHandle::CudnnHandle(int device)
    : device_(device), handle_(HasCudnn() ? GetHandles().Take(device) : nullptr) {}

CudnnHandle::~CudnnHandle() {
  if (handle_) GetHandles().Return(handle_, device_);
}

bool Succeeded(cudnnStatus_t status, const char* function, int device) {
  if (__builtin_expect(status == CUDNN_STATUS_SUCCESS, 1)) return true;
  if (IsKind(status, CUDNN_STATUS_NOT_SUPPORTED)) return false;
  if (IsKind(status, CUDNN_STATUS_NOT_INITIALIZED)) {
    GetHandles().Fail(function, status);
    return false;
  }
  MICA_PLUGIN_THROW(status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ? MICA_ERROR_OUT_OF_MEMORY
                                                                                   : MICA_ERROR_RUNTIME,
                    std::string("cuDNN's ") + function + " failed on the device (cuda:" +
                        std::to_string(device) + ") with " + Describe(status) + ".");
}

bool SetStream(cudnnHandle_t handle, int device, uint64_t stream) {
  return Succeeded(Cudnn().cudnnSetStream(handle, reinterpret_cast<CUstream>(stream)), "cudnnSetStream",
                   device);
}

}  // namespace cuda
