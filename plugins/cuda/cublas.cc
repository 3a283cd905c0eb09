// Opening cuBLAS, its handles by thread and stream, and its failures.
#include "plugins/cuda/cublas.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <mica/plugin.h>

#include "plugins/cuda/context.h"
#include "plugins/cuda/driver.h"
#include "plugins/cuda/folders.h"
#include "plugins/cuda/host_memory.h"

namespace cuda {
namespace {

struct Opened {
  CublasApi api;
  CublasLtApi lt;
  bool has_lt = false;
  std::string missing;
};

std::string Missing(const std::string& reason) {
  return "NVIDIA's matrix products (libcublas.so.13 or .12) are not available, so Mica's own kernels compute "
         "them: install CUDA's toolkit or the package nvidia-cublas, or name its folder in "
         "MICA_CUDA_LIBRARIES (" +
         reason + ").";
}

// Opened at the first use, and never destroyed.
const Opened& Open() {
  static const Opened& opened = *[] {
    auto* made = new Opened;
    Library library;
    if (library.Open(LibraryCandidates("libcublas.so", DriverVersion()), SymbolsOf(made->api)))
      made->has_lt = library.Find(SymbolsOf(made->lt));
    else
      made->missing = Missing(library.reason());
    return made;
  }();
  return opened;
}

std::string Describe(cublasStatus_t status) {
  const char* name = Cublas().cublasGetStatusName(status);
  return std::string(name ? name : "a status without a name") + " (" + std::to_string(status) + ")";
}

// A handle, and what was set of it.
struct Handle {
  cublasHandle_t handle = nullptr;
  int device = -1;
  uint64_t stream = 0;
  cublasMath_t mode = CUBLAS_DEFAULT_MATH;
};

// Handles that no thread keeps at the moment, and whether cuBLAS starts.
class Handles {
 public:
  // A stream gets the handle that it had before, if that is free.
  Handle Take(int device, uint64_t stream) {
    if (failure_.happened()) return {};
    {
      std::lock_guard<std::mutex> lock(mutex_);
      Idle& idle = idle_[device];
      auto found = std::find_if(idle.handles.begin(), idle.handles.end(),
                                [&](const Handle& entry) { return entry.stream == stream; });
      if (found == idle.handles.end() && idle.made >= kMost && !idle.handles.empty())
        found = idle.handles.begin();
      if (found != idle.handles.end()) {
        const Handle handle = *found;
        idle.handles.erase(found);
        return handle;
      }
    }
    return Make(device);
  }

  void Return(const Handle& handle) {
    if (!handle.handle) return;
    std::lock_guard<std::mutex> lock(mutex_);
    idle_[handle.device].handles.push_back(handle);
  }

  StartFailure& failure() { return failure_; }

 private:
  static constexpr int kMost = 8;  // of a device: a workspace takes up to 32 MiB
  struct Idle {
    int made = 0;
    std::vector<Handle> handles;
  };

  Handle Make(int device) {
    Handle made;
    const cublasStatus_t status = Cublas().cublasCreate_v2(&made.handle);
    if (status == CUBLAS_STATUS_ALLOC_FAILED) CublasSucceeded(status, "cublasCreate", device);  // throws
    if (status != CUBLAS_STATUS_SUCCESS) {
      failure_.Set(Missing("cublasCreate failed with " + Describe(status)));
      return {};
    }
    made.device = device;
    std::lock_guard<std::mutex> lock(mutex_);
    ++idle_[device].made;
    return made;
  }

  std::mutex mutex_;
  std::map<int, Idle> idle_;
  StartFailure failure_;
};

Handles& GetHandles() {
  static Handles& handles = *new Handles;
  return handles;
}

// What a thread keeps until it uses another stream, or ends.
struct Kept {
  Handle handle;
  ~Kept() { GetHandles().Return(handle); }
};
thread_local Kept t_kept;

}  // namespace

std::string CublasMissing() {
  const std::string& missing = Open().missing;
  return missing.empty() ? GetHandles().failure().sentence() : missing;
}

bool HasCublas() { return Open().missing.empty() && !GetHandles().failure().happened(); }

const CublasApi& Cublas() { return Open().api; }

const CublasLtApi* CublasLt() { return Open().has_lt ? &Open().lt : nullptr; }

cublasHandle_t CublasHandle(int device, uint64_t stream, cublasMath_t mode) {
  if (!Open().missing.empty()) return nullptr;
  Handle& kept = t_kept.handle;
  if (__builtin_expect(kept.device != device || kept.stream != stream, 0)) {
    GetHandles().Return(std::exchange(kept, {}));
    kept = GetHandles().Take(device, stream);
    if (!kept.handle) return nullptr;
  }
  // A new handle has stream 0 and the default mode.
  if (kept.stream != stream) {
    const auto to = reinterpret_cast<CUstream>(stream);
    CublasSucceeded(Cublas().cublasSetStream_v2(kept.handle, to), "cublasSetStream", device);
    kept.stream = stream;
  }
  if (kept.mode != mode) {
    CublasSucceeded(Cublas().cublasSetMathMode(kept.handle, mode), "cublasSetMathMode", device);
    kept.mode = mode;
  }
  return kept.handle;
}

RecordedWorkspace::RecordedWorkspace(cublasHandle_t handle, int device, uint64_t stream)
    : handle_(handle), stream_(stream) {
  constexpr size_t kSize = size_t{32} << 20;  // what NVIDIA recommends for sm_90
  if (!GetCudaDriver().Capturing(device, stream)) return;
  memory_.emplace(device, kSize, stream);
  CublasSucceeded(Cublas().cublasSetWorkspace_v2(handle, memory_->data(), kSize), "cublasSetWorkspace",
                  device);
}

// Setting a stream gives the handle its own workspace again.
RecordedWorkspace::~RecordedWorkspace() {
  if (memory_) Cublas().cublasSetStream_v2(handle_, reinterpret_cast<CUstream>(stream_));
}

bool CublasSucceeded(cublasStatus_t status, const char* function, int device) {
  if (__builtin_expect(status == CUBLAS_STATUS_SUCCESS, 1)) return true;
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH) return false;
  MICA_PLUGIN_THROW(status == CUBLAS_STATUS_ALLOC_FAILED ? MICA_ERROR_OUT_OF_MEMORY : MICA_ERROR_RUNTIME,
                    std::string("cuBLAS's ") + function + " failed on the device (cuda:" +
                        std::to_string(device) + ") with " + Describe(status) + ".");
}

}  // namespace cuda
