// The functions of plugins/gpu's Driver, each on the driver's function of the same purpose.
#include "plugins/cuda/driver.h"

#include <cstdio>

#include "plugins/cuda/compiler.h"
#include "plugins/cuda/context.h"
#include "plugins/cuda/cublas.h"
#include "plugins/cuda/cudnn.h"

namespace cuda {
namespace {

CUstream Stream(uint64_t stream) {
  return reinterpret_cast<CUstream>(stream);
}  // 0 is the legacy default one
CUevent Event(uint64_t event) { return reinterpret_cast<CUevent>(event); }
CUdeviceptr Address(const void* data) { return reinterpret_cast<CUdeviceptr>(data); }
uint64_t Handle(const void* handle) { return reinterpret_cast<uint64_t>(handle); }
size_t Bytes(int64_t size) { return static_cast<size_t>(size); }

int AttributeOf(int device, CUdevice_attribute attribute) {
  int value = 0;
  Check(Api().cuDeviceGetAttribute(&value, attribute, DeviceHandle(device)), "cuDeviceGetAttribute", device);
  return value;
}

// Whether the driver can copy without its own staging: memory of PinnedAllocate, or pinned by others.
bool IsPinned(const void* data) {
  CUmemorytype type{};
  return Api().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, Address(data)) ==
             CUDA_SUCCESS &&
         type == CU_MEMORYTYPE_HOST;
}

// The end of a function that destroys something: nothing is left to destroy once the driver is shut down.
void CheckDestroyed(CUresult result, const char* function, int device) {
  if (result != CUDA_ERROR_DEINITIALIZED) Check(result, function, device);
}

[[noreturn]] void ThrowOutOfMemory(CUresult result, const char* function, int device, int64_t size) {
  std::string more = "It was asked for (" + std::to_string(size) + ") bytes";
  size_t free = 0, total = 0;
  if (Api().cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS)
    more += ", of (" + std::to_string(total) + ") that the device has and (" + std::to_string(free) +
            ") that are free";
  Throw(result, function, device, more + ".");
}

}  // namespace

CudaDriver& GetCudaDriver() {
  static CudaDriver& driver = *new CudaDriver;
  return driver;
}

// --- devices

int CudaDriver::Count() { return DeviceCount(); }

std::vector<std::string> CudaDriver::Missing() {
  if (!DriverMissing().empty()) return {DriverMissing()};  // the libraries need it
  std::vector<std::string> missing;
  for (const std::string& sentence : {DriverMissing(), CompilerMissing(), CublasMissing(), CudnnMissing()})
    if (!sentence.empty()) missing.push_back(sentence);
  return missing;
}

gpu::DeviceInfo CudaDriver::Describe(int device) {
  const CUdevice handle = DeviceHandle(device);
  gpu::DeviceInfo info;
  char name[256] = "";
  Check(Api().cuDeviceGetName(name, static_cast<int>(sizeof name), handle), "cuDeviceGetName", device);
  info.name = name;
  info.architecture = "sm_" +
                      std::to_string(AttributeOf(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)) +
                      std::to_string(AttributeOf(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  size_t total = 0;
  Check(Api().cuDeviceTotalMem_v2(&total, handle), "cuDeviceTotalMem_v2", device);
  info.total_memory = static_cast<int64_t>(total);
  info.warp_size = AttributeOf(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  info.multiprocessors = AttributeOf(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  info.max_threads_per_block = AttributeOf(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  return info;
}

int64_t CudaDriver::FreeMemory(int device) {
  Use(device);
  size_t free = 0, total = 0;
  Check(Api().cuMemGetInfo_v2(&free, &total), "cuMemGetInfo_v2", device);
  return static_cast<int64_t>(free);
}

int CudaDriver::ExchangeDevice(int device) { return ExchangeCurrentDevice(device); }

bool CudaDriver::CanAccessPeer(int device, int peer) {
  int can = 0;
  Check(Api().cuDeviceCanAccessPeer(&can, DeviceHandle(device), DeviceHandle(peer)), "cuDeviceCanAccessPeer",
        device);
  return can != 0;
}

// "cuda.16" is the driver's CUdevice_attribute of that number: here how many multiprocessors there are.
bool CudaDriver::Attribute(int device, const std::string& key, int64_t* value) {
  int number = 0, read = 0, found = 0;
  if (key == MICA_ATTRIBUTE_CAPABILITY_MAJOR)
    number = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
  else if (key == MICA_ATTRIBUTE_CAPABILITY_MINOR)
    number = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
  else if (std::sscanf(key.c_str(), "cuda.%4d%n", &number, &read) != 1 ||
           static_cast<size_t>(read) != key.size() || number < 1 || number > CU_DEVICE_ATTRIBUTE_MAX)
    return false;
  const CUresult result =
      Api().cuDeviceGetAttribute(&found, static_cast<CUdevice_attribute>(number), DeviceHandle(device));
  if (result == CUDA_ERROR_INVALID_VALUE) return false;
  Check(result, "cuDeviceGetAttribute", device);
  return *value = found, true;
}

// --- memory

void* CudaDriver::Allocate(int device, int64_t size) {
  if (size <= 0) return nullptr;
  Use(device);
  const OutsideOfRecordings outside;
  CUdeviceptr data = 0;
  const CUresult result = Api().cuMemAlloc_v2(&data, Bytes(size));
  if (result == CUDA_ERROR_OUT_OF_MEMORY) ThrowOutOfMemory(result, "cuMemAlloc_v2", device, size);
  Check(result, "cuMemAlloc_v2", device);
  return reinterpret_cast<void*>(data);
}

void CudaDriver::Free(int device, void* data) {
  if (!data || !UseUnlessShutDown(device)) return;
  const OutsideOfRecordings outside;
  CheckDestroyed(Api().cuMemFree_v2(Address(data)), "cuMemFree_v2", device);
}

// Pinned for every device; the context is only where the driver books it.
void* CudaDriver::PinnedAllocate(int64_t size) {
  if (size <= 0) return nullptr;
  const int device = CurrentDevice();
  Use(device);
  const OutsideOfRecordings outside;
  void* data = nullptr;
  const CUresult result = Api().cuMemHostAlloc(&data, Bytes(size), kHostAllocPortable);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    Throw(result, "cuMemHostAlloc", device,
          "It was asked for (" + std::to_string(size) + ") bytes of the host.");
  Check(result, "cuMemHostAlloc", device);
  return data;
}

void CudaDriver::PinnedFree(void* data) {
  const int device = CurrentDevice();
  if (!data || !UseUnlessShutDown(device)) return;
  const OutsideOfRecordings outside;
  CheckDestroyed(Api().cuMemFreeHost(data), "cuMemFreeHost", device);
}

// The driver copies pageable memory into a buffer of its own before it returns, except, as its
// documentation leaves open, where the device reaches pageable memory by itself: there it is waited for.
void CudaDriver::CopyToDevice(int device, void* to, const void* from, int64_t size, uint64_t stream) {
  if (size <= 0) return;
  Use(device);
  Check(Api().cuMemcpyHtoDAsync_v2(Address(to), from, Bytes(size), Stream(stream)), "cuMemcpyHtoDAsync_v2",
        device);
  if (AttributeOf(device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0 && !IsPinned(from))
    StreamSync(device, stream);
}

// The driver waits itself for a copy into pageable memory, but no longer promises to, so this makes sure.
void CudaDriver::CopyToHost(int device, void* to, const void* from, int64_t size, uint64_t stream) {
  if (size <= 0) return;
  Use(device);
  Check(Api().cuMemcpyDtoHAsync_v2(to, Address(from), Bytes(size), Stream(stream)), "cuMemcpyDtoHAsync_v2",
        device);
  if (!IsPinned(to)) StreamSync(device, stream);
}

void CudaDriver::CopyOnDevice(int device, void* to, const void* from, int64_t size, uint64_t stream) {
  if (size <= 0) return;
  Use(device);
  Check(Api().cuMemcpyDtoDAsync_v2(Address(to), Address(from), Bytes(size), Stream(stream)),
        "cuMemcpyDtoDAsync_v2", device);
}

// Needs no access of one device to the other's memory: the driver then goes through the host's.
void CudaDriver::CopyToPeer(int to_device, void* to, int from_device, const void* from, int64_t size,
                            uint64_t stream) {
  if (size <= 0) return;
  const CUcontext from_context = ContextOf(from_device);
  Use(to_device);
  Check(Api().cuMemcpyPeerAsync(Address(to), ContextOf(to_device), Address(from), from_context, Bytes(size),
                                Stream(stream)),
        "cuMemcpyPeerAsync", to_device);
}

void CudaDriver::Fill(int device, void* data, uint8_t byte, int64_t size, uint64_t stream) {
  if (size <= 0) return;
  Use(device);
  Check(Api().cuMemsetD8Async(Address(data), byte, Bytes(size), Stream(stream)), "cuMemsetD8Async", device);
}

// --- streams and events

void CudaDriver::PriorityRange(int device, int32_t* least, int32_t* greatest) {
  Use(device);
  Check(Api().cuCtxGetStreamPriorityRange(least, greatest), "cuCtxGetStreamPriorityRange", device);
}

uint64_t CudaDriver::StreamCreate(int device, int priority) {
  Use(device);
  CUstream stream = nullptr;
  Check(Api().cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority),
        "cuStreamCreateWithPriority", device);
  return Handle(stream);
}

void CudaDriver::StreamDestroy(int device, uint64_t stream) {
  if (!stream || !UseUnlessShutDown(device)) return;
  CheckDestroyed(Api().cuStreamDestroy_v2(Stream(stream)), "cuStreamDestroy_v2", device);
}

void CudaDriver::StreamSync(int device, uint64_t stream) {
  Use(device);
  const OutsideOfRecordings outside;
  Check(Api().cuStreamSynchronize(Stream(stream)), "cuStreamSynchronize", device);
}

bool CudaDriver::StreamDone(int device, uint64_t stream) {
  Use(device);
  const OutsideOfRecordings outside;
  const CUresult result = Api().cuStreamQuery(Stream(stream));
  if (result == CUDA_ERROR_NOT_READY) return false;
  Check(result, "cuStreamQuery", device);
  return true;
}

void CudaDriver::DeviceSync(int device) {
  Use(device);
  Check(Api().cuCtxSynchronize(), "cuCtxSynchronize", device);
}

uint64_t CudaDriver::EventCreate(int device, uint64_t flags) {
  Use(device);
  CUevent event = nullptr;
  const unsigned int timing = flags & MICA_EVENT_TIMED ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  const unsigned int waiting = flags & MICA_EVENT_SLEEPS ? CU_EVENT_BLOCKING_SYNC : CU_EVENT_DEFAULT;
  Check(Api().cuEventCreate(&event, timing | waiting), "cuEventCreate", device);
  return Handle(event);
}

void CudaDriver::EventDestroy(int device, uint64_t event) {
  if (!event || !UseUnlessShutDown(device)) return;
  CheckDestroyed(Api().cuEventDestroy_v2(Event(event)), "cuEventDestroy_v2", device);
}

void CudaDriver::EventRecord(int device, uint64_t event, uint64_t stream) {
  Use(device);
  Check(Api().cuEventRecord(Event(event), Stream(stream)), "cuEventRecord", device);
}

void CudaDriver::EventWait(int device, uint64_t event, uint64_t stream) {
  Use(device);
  Check(Api().cuStreamWaitEvent(Stream(stream), Event(event), 0), "cuStreamWaitEvent", device);
}

void CudaDriver::EventSync(int device, uint64_t event) {
  Use(device);
  const OutsideOfRecordings outside;
  Check(Api().cuEventSynchronize(Event(event)), "cuEventSynchronize", device);
}

bool CudaDriver::EventDone(int device, uint64_t event) {
  Use(device);
  const OutsideOfRecordings outside;
  const CUresult result = Api().cuEventQuery(Event(event));
  if (result == CUDA_ERROR_NOT_READY) return false;
  Check(result, "cuEventQuery", device);
  return true;
}

double CudaDriver::EventElapsed(int device, uint64_t start, uint64_t end) {
  Use(device);
  float milliseconds = 0;
  const CUresult result = Api().cuEventElapsedTime(&milliseconds, Event(start), Event(end));
  if (result == CUDA_ERROR_NOT_READY)
    Throw(result, "cuEventElapsedTime", device,
          "Both events must have passed: synchronize the second first.");
  Check(result, "cuEventElapsedTime", device);
  return static_cast<double>(milliseconds);
}

// --- recorded work

// What other threads do is no matter of the recording's; what Mica does in this one it does outside of it.
void CudaDriver::CaptureBegin(int device, uint64_t stream) {
  Use(device);
  CountRecordings(1);
  const CUresult result = Api().cuStreamBeginCapture_v2(Stream(stream), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  if (result != CUDA_SUCCESS) CountRecordings(-1);
  Check(result, "cuStreamBeginCapture_v2", device);
}

uint64_t CudaDriver::CaptureEnd(int device, uint64_t stream) {
  Use(device);
  const bool recorded = Capturing(device, stream);
  CUgraph graph = nullptr;
  const CUresult ended = Api().cuStreamEndCapture(Stream(stream), &graph);
  if (recorded) CountRecordings(-1);
  if (ended != CUDA_SUCCESS)
    Throw(ended, "cuStreamEndCapture", device,
          "What was recorded is lost: a call that cannot be recorded was made, or another stream that the "
          "recording went to was not waited for at its end.");
  const OutsideOfRecordings outside;
  CUgraphExec exec = nullptr;
  const CUresult made = Api().cuGraphInstantiateWithFlags(&exec, graph, 0);
  Api().cuGraphDestroy(graph);  // the other holds what it needs
  Check(made, "cuGraphInstantiateWithFlags", device);
  return Handle(exec);
}

bool CudaDriver::Capturing(int device, uint64_t stream) {
  if (!stream) return false;  // the driver records no legacy default stream
  Use(device);                // others in the process record, too
  CUstreamCaptureStatus status{};
  return Api().cuStreamIsCapturing(Stream(stream), &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void CudaDriver::GraphReplay(int device, uint64_t graph, uint64_t stream) {
  Use(device);
  Check(Api().cuGraphLaunch(reinterpret_cast<CUgraphExec>(graph), Stream(stream)), "cuGraphLaunch", device);
}

void CudaDriver::GraphDestroy(int device, uint64_t graph) {
  if (!UseUnlessShutDown(device)) return;
  const OutsideOfRecordings outside;
  CheckDestroyed(Api().cuGraphExecDestroy(reinterpret_cast<CUgraphExec>(graph)), "cuGraphExecDestroy",
                 device);
}

// --- kernels

const char* CudaDriver::Prelude() const { return KernelPrelude(); }

std::string CudaDriver::Compile(const std::string& text, const std::string& architecture,
                                const std::string& what) {
  return CompileKernel(text, architecture, what);
}

std::string CudaDriver::Compiler() { return CompilerVersion(); }

uint64_t CudaDriver::Load(int device, const std::string& binary) {
  Use(device);
  const OutsideOfRecordings outside;
  CUmodule module = nullptr;
  // A PTX text is compiled by the driver now, which says here why it cannot.
  char log[2048] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  // Text ends with a zero, which a string's data does.
  const CUresult result = Api().cuModuleLoadDataEx(&module, binary.data(), 2, options, values);
  log[sizeof log - 1] = '\0';
  if (result != CUDA_SUCCESS)
    Throw(result, "cuModuleLoadDataEx", device, log[0] ? std::string("Its log says: ") + log : "");
  std::lock_guard<std::mutex> lock(mutex_);
  devices_[Handle(module)] = device;
  return Handle(module);
}

uint64_t CudaDriver::Function(uint64_t module, const std::string& name) {
  int device = CurrentDevice();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = devices_.find(module);
    if (found != devices_.end()) device = found->second;
  }
  Use(device);
  const OutsideOfRecordings outside;
  CUfunction function = nullptr;
  const CUresult result =
      Api().cuModuleGetFunction(&function, reinterpret_cast<CUmodule>(module), name.c_str());
  if (result != CUDA_SUCCESS)
    Throw(result, "cuModuleGetFunction", device, "It was asked for the kernel (" + name + ").");
  return Handle(function);
}

void CudaDriver::Run(int device, const gpu::Launch& launch) {
  if (launch.blocks[0] == 0 || launch.blocks[1] == 0 || launch.blocks[2] == 0) return;
  Use(device);
  const CUresult result =
      Api().cuLaunchKernel(reinterpret_cast<CUfunction>(launch.function), launch.blocks[0], launch.blocks[1],
                           launch.blocks[2], launch.threads[0], launch.threads[1], launch.threads[2], 0,
                           Stream(launch.stream), launch.arguments, nullptr);
  if (__builtin_expect(result != CUDA_SUCCESS, 0)) {
    const auto sizes = [](const uint32_t(&n)[3]) {
      return "(" + std::to_string(n[0]) + ", " + std::to_string(n[1]) + ", " + std::to_string(n[2]) + ")";
    };
    Throw(result, "cuLaunchKernel", device,
          "The launch has " + sizes(launch.blocks) + " blocks of " + sizes(launch.threads) + " threads.");
  }
}

}  // namespace cuda
