// libcuda.so.1, imitated in host memory: two devices of 1 MiB, one stream, one event, one kernel.
//
// It refuses what the true driver does: calls without a current context, from the child of a fork,
// and after its own end. FAKE_INIT says what cuInit returns. The functions named Fake are for the tests.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

using Address = unsigned long long;
using Handle = void*;

namespace {

constexpr int kInvalid = 1, kNoMemory = 2, kNotInitialized = 3, kShutDown = 4, kNoContext = 201;
constexpr int kNotFound = 500, kNotReady = 600, kIllegalAddress = 700, kNotPermitted = 800;
constexpr size_t kMemory = 1 << 20;

const Handle kStream = reinterpret_cast<Handle>(0x77), kEvent = reinterpret_cast<Handle>(0x88);
const Handle kGraph = reinterpret_cast<Handle>(0xbb);
const Handle kModule = reinterpret_cast<Handle>(0x99), kFunction = reinterpret_cast<Handle>(0xaa);

thread_local Handle t_current = nullptr;
int g_contexts[2];
bool g_down = false;
pid_t g_process = 0;
size_t g_used = 0;
bool g_recording = false;
int g_recorded = 0, g_graphs = 0;
thread_local unsigned t_mode = 0;
int g_waits = 0, g_launched = 0, g_in_child = 0;

// Events that pass, once a test has started the clock: a handle is a place among the times.
bool g_has_clock = false, g_is_idle = true, g_others_record = false;
double g_clock = 0, g_times[64];
size_t g_events = 0;
size_t Place(Handle event) { return reinterpret_cast<size_t>(event) - 1; }

void* Data(Address address) { return reinterpret_cast<void*>(address); }

int Ready() {
  if (g_down) return kShutDown;
  if (getpid() == g_process) return 0;
  ++g_in_child;
  return kNotInitialized;
}

int InContext() {
  if (const int error = Ready()) return error;
  return t_current ? 0 : kNoContext;
}

}  // namespace

#define FAKE(type) extern "C" __attribute__((visibility("default"))) type
#define READY \
  if (const int error = Ready()) return error
#define IN_CONTEXT \
  if (const int error = InContext()) return error

FAKE(void) FakeShutDown() { g_down = true; }
FAKE(void) FakeOtherContext() { t_current = nullptr; }
FAKE(int) FakeWaits() { return g_waits; }
FAKE(int) FakeLaunched() { return g_launched; }  // the argument of the last launch
// A kernel's time, and what the device waits for it where it has nothing to do.
FAKE(void) FakeClock(double milliseconds, double idle) {
  g_clock += milliseconds + (g_is_idle ? idle : 0);
  g_has_clock = true, g_is_idle = false;
}
FAKE(void) FakeRecord() { g_others_record = true; }  // by others in the process
FAKE(void) FakeRecordNoMore() { g_others_record = false; }
FAKE(int) FakeCallsInChild() { return g_in_child; }

FAKE(int) cuInit(unsigned) {
  g_process = getpid();
  const char* result = std::getenv("FAKE_INIT");
  return result ? std::atoi(result) : 0;
}
FAKE(int) cuDriverGetVersion(int* version) { return *version = 13000, 0; }
FAKE(int) cuGetErrorName(int error, const char** name) {
  *name = error == kInvalid          ? "CUDA_ERROR_INVALID_VALUE"
          : error == kNoMemory       ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == kNotReady       ? "CUDA_ERROR_NOT_READY"
          : error == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                     : nullptr;
  return *name ? 0 : kInvalid;
}
FAKE(int) cuGetErrorString(int error, const char** text) {
  *text = error == kNoMemory         ? "out of memory"
          : error == kIllegalAddress ? "an illegal memory access was encountered"
                                     : nullptr;
  return *text ? 0 : kInvalid;
}
FAKE(int) cuDeviceGetCount(int* count) {
  READY;
  return *count = 2, 0;
}
FAKE(int) cuDeviceGet(int* device, int ordinal) {
  READY;
  return *device = ordinal, 0;
}
FAKE(int) cuDeviceGetName(char* name, int length, int) {
  READY;
  return std::snprintf(name, static_cast<size_t>(length), "Fake H100"), 0;
}
FAKE(int) cuDeviceTotalMem_v2(size_t* bytes, int) {
  READY;
  return *bytes = kMemory, 0;
}
FAKE(int) cuDeviceGetAttribute(int* value, int attribute, int) {
  READY;
  switch (attribute) {
    case 1:
      return *value = 1024, 0;
    case 10:
      return *value = 32, 0;
    case 16:
      return *value = 132, 0;
    case 75:
      return *value = 9, 0;
    case 76:
      return *value = 0, 0;
    case 88:  // whether the device reaches pageable memory
      return *value = std::getenv("FAKE_PAGEABLE") != nullptr, 0;
    default:
      return kInvalid;
  }
}
FAKE(int) cuDevicePrimaryCtxRetain(Handle* context, int device) {
  READY;
  return *context = &g_contexts[device], 0;
}
FAKE(int) cuCtxGetCurrent(Handle* context) {
  READY;
  return *context = t_current, 0;
}
FAKE(int) cuCtxSetCurrent(Handle context) {
  READY;
  return t_current = context, 0;
}
FAKE(int) cuCtxGetDevice(int* device) {
  IN_CONTEXT;
  return *device = static_cast<int>(static_cast<int*>(t_current) - g_contexts), 0;
}
FAKE(int) cuDeviceCanAccessPeer(int* can, int device, int peer) {
  READY;
  return *can = device == 1 && peer == 0, 0;
}
FAKE(int) cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  IN_CONTEXT;
  *least = 0;
  return *greatest = -5, 0;
}
FAKE(int) cuCtxSynchronize() { return InContext(); }
FAKE(int) cuMemGetInfo_v2(size_t* free, size_t* total) {
  IN_CONTEXT;
  *free = kMemory - g_used;
  return *total = kMemory, 0;
}
FAKE(int) cuMemAlloc_v2(Address* data, size_t bytes) {
  IN_CONTEXT;
  if (g_recording && t_mode != 2) return kNotPermitted;
  if (g_used + bytes > kMemory) return kNoMemory;
  g_used += bytes;
  return *data = reinterpret_cast<Address>(std::malloc(bytes)), 0;
}
FAKE(int) cuMemFree_v2(Address data) {
  IN_CONTEXT;
  return std::free(Data(data)), 0;
}
FAKE(int) cuMemHostAlloc(void** data, size_t bytes, unsigned) {
  IN_CONTEXT;
  if (bytes > kMemory) return kNoMemory;
  return *data = std::malloc(bytes), 0;
}
FAKE(int) cuMemFreeHost(void* data) {
  IN_CONTEXT;
  return std::free(data), 0;
}
FAKE(int) cuPointerGetAttribute(void*, int, Address) { return kInvalid; }  // as for pageable memory
FAKE(int) cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, Handle) {
  IN_CONTEXT;
  return std::memcpy(Data(to), from, bytes), 0;
}
FAKE(int) cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, Handle) {
  IN_CONTEXT;
  return std::memcpy(to, Data(from), bytes), 0;
}
FAKE(int) cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Handle) {
  IN_CONTEXT;
  return std::memmove(Data(to), Data(from), bytes), 0;
}
FAKE(int)
cuMemcpyPeerAsync(Address to, Handle to_context, Address from, Handle from_context, size_t bytes, Handle) {
  IN_CONTEXT;
  if (to_context != &g_contexts[1] || from_context != &g_contexts[0] || t_current != to_context)
    return kInvalid;
  return std::memcpy(Data(to), Data(from), bytes), 0;
}
FAKE(int) cuMemsetD8Async(Address data, unsigned char byte, size_t count, Handle) {
  IN_CONTEXT;
  return std::memset(Data(data), byte, count), 0;
}
FAKE(int) cuStreamCreateWithPriority(Handle* stream, unsigned flags, int) {
  IN_CONTEXT;
  if (flags != 1) return kInvalid;
  return *stream = kStream, 0;
}
FAKE(int) cuStreamDestroy_v2(Handle) { return InContext(); }
FAKE(int) cuStreamSynchronize(Handle) {
  IN_CONTEXT;
  return ++g_waits, 0;
}
FAKE(int) cuStreamQuery(Handle stream) {
  IN_CONTEXT;
  return stream ? kNotReady : 0;
}
FAKE(int) cuStreamWaitEvent(Handle, Handle, unsigned) { return InContext(); }
FAKE(int) cuEventCreate(Handle* event, unsigned flags) {
  IN_CONTEXT;
  if (flags > 3) return kInvalid;
  if (g_has_clock) return *event = reinterpret_cast<Handle>(g_events++ % 64 + 1), 0;
  return *event = kEvent, 0;
}
FAKE(int) cuEventDestroy_v2(Handle) { return InContext(); }
FAKE(int) cuEventRecord(Handle event, Handle) {
  if (g_has_clock) g_times[Place(event)] = g_clock;
  return InContext();
}
FAKE(int) cuEventSynchronize(Handle) {  // a kernel before it has failed
  IN_CONTEXT;
  g_is_idle = true;
  return g_has_clock ? 0 : kIllegalAddress;
}
FAKE(int) cuEventQuery(Handle) {
  IN_CONTEXT;
  return kNotReady;
}
FAKE(int) cuEventElapsedTime(float* milliseconds, Handle start, Handle end) {
  IN_CONTEXT;
  if (g_has_clock) return *milliseconds = static_cast<float>(g_times[Place(end)] - g_times[Place(start)]), 0;
  if (start == end) return kNotReady;
  return *milliseconds = 2.5F, 0;
}
// A graph holds the argument of its launches' last one.
FAKE(int) cuStreamBeginCapture_v2(Handle stream, unsigned mode) {
  IN_CONTEXT;
  if (stream != kStream || mode > 2 || g_recording) return kInvalid;
  return g_recording = true, 0;
}
FAKE(int) cuStreamEndCapture(Handle, Handle* graph) {
  IN_CONTEXT;
  if (!g_recording) return kInvalid;
  return g_recording = false, *graph = kGraph, 0;
}
FAKE(int) cuStreamIsCapturing(Handle stream, unsigned* status) {
  IN_CONTEXT;
  return *status = (stream == kStream && g_recording) || (stream && g_others_record), 0;
}
FAKE(int) cuThreadExchangeStreamCaptureMode(unsigned* mode) {
  const unsigned before = t_mode;
  t_mode = *mode;
  return *mode = before, 0;
}
FAKE(int) cuGraphInstantiateWithFlags(Handle* made, Handle graph, unsigned long long flags) {
  IN_CONTEXT;
  if (graph != kGraph || flags != 0) return kInvalid;
  ++g_graphs;
  return *made = kGraph, 0;
}
FAKE(int) cuGraphLaunch(Handle graph, Handle) {
  IN_CONTEXT;
  if (graph != kGraph || g_recording) return kInvalid;
  return g_launched = g_recorded, 0;
}
FAKE(int) cuGraphExecDestroy(Handle) {
  READY;
  return --g_graphs, 0;
}
FAKE(int) cuGraphDestroy(Handle) { return InContext(); }
FAKE(int) FakeGraphs() { return g_graphs; }
FAKE(unsigned) FakeCaptureMode() { return t_mode; }

FAKE(int)
cuModuleLoadDataEx(Handle* module, const void* image, unsigned count, const int* options, void** values) {
  IN_CONTEXT;
  if (count != 2 || options[0] != 5 || options[1] != 6) return kInvalid;
  if (*static_cast<const char*>(image) == 'X') {
    std::snprintf(static_cast<char*>(values[0]), reinterpret_cast<size_t>(values[1]), "bad image");
    return kInvalid;
  }
  return *module = kModule, 0;
}
FAKE(int) cuModuleGetFunction(Handle* function, Handle module, const char* name) {
  IN_CONTEXT;
  if (module != kModule) return kInvalid;
  if (*name == 'x') return kNotFound;
  return *function = kFunction, 0;
}
FAKE(int)
cuLaunchKernel(Handle function, unsigned blocks, unsigned, unsigned, unsigned, unsigned, unsigned,
               unsigned shared, Handle, void** arguments, void** extra) {
  IN_CONTEXT;
  if (function != kFunction || shared != 0 || extra || blocks > 100) return kInvalid;
  return (g_recording ? g_recorded : g_launched) = *static_cast<int*>(arguments[0]), 0;
}
