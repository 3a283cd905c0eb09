// Opening the driver, its devices' primary contexts, and the sentences of its errors.
#include "plugins/cuda/context.h"

#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include <mica/plugin.h>

namespace cuda {
namespace {

struct Device {
  CUdevice handle = 0;
  std::atomic<CUcontext> context{nullptr};
};

struct Process {
  DriverApi api;
  int version = 0;
  int count = 0;
  std::string missing;
  std::unique_ptr<Device[]> devices;
  std::mutex contexts;  // held while one is made
};

// Set in a child of a process that had used the driver: nothing of the driver works there.
std::atomic<bool> g_forked{false};

thread_local int t_device = 0;

std::string ErrorText(const DriverApi& api, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (api.cuGetErrorName(result, &name) != CUDA_SUCCESS || !name) name = "an error without a name";
  if (api.cuGetErrorString(result, &text) != CUDA_SUCCESS || !text) text = "the driver says no more";
  return std::string(name) + " (" + std::to_string(result) + "): " + text;
}

// Fills everything but `missing`; returns that.
std::string Open(Process& process) {
  Library library;
  DriverApi& api = process.api;
  if (!library.Open({"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"},
                    SymbolsOf(api)))
    return "NVIDIA's driver (libcuda.so.1) does not open, so there is no CUDA device: " + library.reason() +
           ".";
  CUresult result = api.cuDriverGetVersion(&process.version);
  if (result == CUDA_SUCCESS) result = api.cuInit(0);
  int count = 0;
  if (result == CUDA_SUCCESS) {
    // From here on, a child of fork has a driver that believes to be initialized.
    pthread_atfork(nullptr, nullptr, [] { g_forked.store(true, std::memory_order_relaxed); });
    result = api.cuDeviceGetCount(&count);
  }
  if (result == CUDA_ERROR_NO_DEVICE || (result == CUDA_SUCCESS && count == 0))
    return "NVIDIA's driver (libcuda.so.1) is there, but it sees no device: the machine has none, or "
           "CUDA_VISIBLE_DEVICES hides them.";
  if (result != CUDA_SUCCESS)
    return "NVIDIA's driver (libcuda.so.1) does not start, with " + ErrorText(api, result) + ".";
  process.devices = std::make_unique<Device[]>(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    result = api.cuDeviceGet(&process.devices[static_cast<size_t>(i)].handle, i);
    if (result != CUDA_SUCCESS)
      return "NVIDIA's driver does not give the device (cuda:" + std::to_string(i) + "), with " +
             ErrorText(api, result) + ".";
  }
  process.count = count;
  return "";
}

// Opened at the first use, and never destroyed.
Process& GetProcess() {
  static Process& process = *[] {
    auto* made = new Process;
    made->missing = Open(*made);
    return made;
  }();
  return process;
}

Process& Working() {
  if (__builtin_expect(g_forked.load(std::memory_order_relaxed), 0))
    MICA_PLUGIN_THROW(
        MICA_ERROR_RUNTIME,
        "This process was forked from one that had used CUDA, and CUDA does not work in such a "
        "child: start it with multiprocessing's 'spawn' or 'forkserver', or use CUDA only after "
        "the fork.");
  return GetProcess();
}

Device& GetDevice(Process& process, int device) {
  if (__builtin_expect(device >= 0 && device < process.count, 1))
    return process.devices[static_cast<size_t>(device)];
  if (process.count == 0) MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME, process.missing);
  MICA_PLUGIN_THROW(MICA_ERROR_VALUE, "The device (cuda:" + std::to_string(device) +
                                          ") does not exist: this process sees (" +
                                          std::to_string(process.count) + ") CUDA devices.");
}

// Makes the context of the device if need be. `function` is the one that failed.
CUresult Retain(Process& process, Device& device, CUcontext* context, const char** function) {
  *context = device.context.load(std::memory_order_acquire);
  if (*context) return CUDA_SUCCESS;
  std::lock_guard<std::mutex> lock(process.contexts);
  *context = device.context.load(std::memory_order_relaxed);
  if (*context) return CUDA_SUCCESS;
  *function = "cuDevicePrimaryCtxRetain";
  const CUresult result = process.api.cuDevicePrimaryCtxRetain(context, device.handle);
  if (result == CUDA_SUCCESS) device.context.store(*context, std::memory_order_release);
  return result;
}

CUresult Enter(Process& process, Device& device, const char** function) {
  CUcontext wanted = nullptr;
  CUcontext current = nullptr;
  CUresult result = Retain(process, device, &wanted, function);
  if (result != CUDA_SUCCESS) return result;
  *function = "cuCtxGetCurrent";
  result = process.api.cuCtxGetCurrent(&current);
  if (result != CUDA_SUCCESS || current == wanted) return result;
  *function = "cuCtxSetCurrent";
  return process.api.cuCtxSetCurrent(wanted);
}

}  // namespace

int DeviceCount() { return Working().count; }

const std::string& DriverMissing() { return GetProcess().missing; }

int DriverVersion() { return GetProcess().version; }

const DriverApi& Api() {
  const Process& process = Working();
  if (process.count == 0) MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME, process.missing);
  return process.api;
}

CUdevice DeviceHandle(int device) { return GetDevice(Working(), device).handle; }

void Use(int device) {
  Process& process = Working();
  const char* function = "";
  const CUresult result = Enter(process, GetDevice(process, device), &function);
  if (__builtin_expect(result != CUDA_SUCCESS, 0)) Throw(result, function, device);
}

bool UseUnlessShutDown(int device) {
  if (g_forked.load(std::memory_order_relaxed)) return false;
  Process& process = GetProcess();
  const char* function = "";
  const CUresult result = Enter(process, GetDevice(process, device), &function);
  if (result == CUDA_ERROR_DEINITIALIZED) return false;
  Check(result, function, device);
  return true;
}

CUcontext ContextOf(int device) {
  Process& process = Working();
  const char* function = "";
  CUcontext context = nullptr;
  Check(Retain(process, GetDevice(process, device), &context, &function), function, device);
  return context;
}

int CurrentDevice() { return t_device; }

int ExchangeCurrentDevice(int device) {
  Process& process = Working();
  const CUcontext wanted = GetDevice(process, device).context.load(std::memory_order_acquire);
  CUcontext current = nullptr;
  Check(process.api.cuCtxGetCurrent(&current), "cuCtxGetCurrent", device);
  int before = t_device;
  CUdevice used = 0;
  if (current && process.api.cuCtxGetDevice(&used) == CUDA_SUCCESS)
    for (int i = 0; i < process.count; ++i)
      if (process.devices[static_cast<size_t>(i)].handle == used) before = i;
  // Of a device that nobody has used none is made: Use does that.
  if (wanted != current) Check(process.api.cuCtxSetCurrent(wanted), "cuCtxSetCurrent", device);
  t_device = device;
  return before;
}

void Throw(CUresult result, const char* function, int device, const std::string& more) {
  std::string name = function;
  if (name.size() > 3 && name.compare(name.size() - 3, 3, "_v2") == 0) name.resize(name.size() - 3);
  std::string message = "The CUDA driver's " + name +
                        " failed on the device (cuda:" + std::to_string(device) + ") with " +
                        ErrorText(GetProcess().api, result) + ".";
  if (!more.empty()) message += " " + more;
  const bool of_a_kernel = result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_LAUNCH_TIMEOUT ||
                           result == CUDA_ERROR_ASSERT ||
                           (result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_LAUNCH_FAILED);
  if (of_a_kernel)
    message +=
        " The fault may be of a kernel that was launched earlier; the device is lost for this process.";
  MICA_PLUGIN_THROW(of_a_kernel                          ? MICA_ERROR_DEVICE_LOST
                    : result == CUDA_ERROR_OUT_OF_MEMORY ? MICA_ERROR_OUT_OF_MEMORY
                                                         : MICA_ERROR_RUNTIME,
                    message);
}

namespace {
std::atomic<int> g_recordings{0};
}

void CountRecordings(int more) { g_recordings.fetch_add(more, std::memory_order_relaxed); }

OutsideOfRecordings::OutsideOfRecordings() {
  if (g_recordings.load(std::memory_order_relaxed) == 0) return;
  exchanged_ = Api().cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
}
OutsideOfRecordings::~OutsideOfRecordings() {
  if (exchanged_) Api().cuThreadExchangeStreamCaptureMode(&mode_);
}

}  // namespace cuda
