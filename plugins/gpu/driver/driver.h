// The only door to a GPU's driver and run-time compiler.
//
// CUDA, HIP and the simulation each derive from this; everything else of plugins/gpu is
// written against it. Handles are the driver's own, as 64 bits. Every function is called
// from many threads, and throws mica::plugin::Error with a sentence that names the
// driver's function, its error and the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <mica/plugin.h>

namespace gpu {

// What a device is, asked once.
struct DeviceInfo {
  std::string name;          // of the hardware
  std::string architecture;  // "sm_90", "gfx90a", "simt32": what kernels are compiled for
  int64_t total_memory = 0;  // bytes
  int warp_size = 32;
  int multiprocessors = 1;
  int max_threads_per_block = 1024;
};

// A launch: blocks, threads of a block, arguments as pointers to their values.
struct Launch {
  uint64_t function = 0;
  uint32_t blocks[3] = {1, 1, 1};
  uint32_t threads[3] = {1, 1, 1};
  void** arguments = nullptr;  // of the function's parameters, in order
  const size_t* sizes = nullptr;
  size_t count = 0;
  uint64_t stream = 0;
};

class Driver {
 public:
  virtual ~Driver() = default;

  // The name of the backend, "cuda".
  virtual const char* backend() const = 0;

  // --- devices
  // How many there are; 0 where there is no driver, and Missing() says what lacks.
  virtual int Count() = 0;
  // One sentence for each thing that is not there (a driver, a compiler, a library).
  virtual std::vector<std::string> Missing() = 0;
  virtual DeviceInfo Describe(int device) = 0;
  virtual int64_t FreeMemory(int device) = 0;
  // Makes `device` this thread's current one, and returns the one before.
  virtual int ExchangeDevice(int device) = 0;
  // Whether kernels of `device` can read memory of `peer`.
  virtual bool CanAccessPeer(int device, int peer) = 0;
  // MicaDeviceTable's attribute; false for a key that the driver does not know.
  virtual bool Attribute(int device, const std::string& key, int64_t* value) = 0;

  // --- memory
  virtual void* Allocate(int device, int64_t size) = 0;  // throws MICA_ERROR_OUT_OF_MEMORY
  virtual void Free(int device, void* data) = 0;
  virtual void* PinnedAllocate(int64_t size) = 0;
  virtual void PinnedFree(void* data) = 0;
  // Queued on `stream` of `device`. Host memory may be pageable: then what it holds has been
  // read, or written, when the call returns.
  virtual void CopyToDevice(int device, void* to, const void* from, int64_t size, uint64_t stream) = 0;
  virtual void CopyToHost(int device, void* to, const void* from, int64_t size, uint64_t stream) = 0;
  virtual void CopyOnDevice(int device, void* to, const void* from, int64_t size, uint64_t stream) = 0;
  // Between two devices; `stream` is the destination's.
  virtual void CopyToPeer(int to_device, void* to, int from_device, const void* from, int64_t size,
                          uint64_t stream) = 0;
  virtual void Fill(int device, void* data, uint8_t byte, int64_t size, uint64_t stream) = 0;

  // --- streams and events; stream 0 is the device's default one
  virtual void PriorityRange(int device, int32_t* least, int32_t* greatest) = 0;
  virtual uint64_t StreamCreate(int device, int priority) = 0;
  virtual void StreamDestroy(int device, uint64_t stream) = 0;
  virtual void StreamSync(int device, uint64_t stream) = 0;
  virtual bool StreamDone(int device, uint64_t stream) = 0;
  virtual void DeviceSync(int device) = 0;
  virtual uint64_t EventCreate(int device, uint64_t flags) = 0;  // of MICA_EVENT_*
  virtual void EventDestroy(int device, uint64_t event) = 0;
  virtual void EventRecord(int device, uint64_t event, uint64_t stream) = 0;
  virtual void EventWait(int device, uint64_t event, uint64_t stream) = 0;
  virtual void EventSync(int device, uint64_t event) = 0;
  virtual bool EventDone(int device, uint64_t event) = 0;
  virtual double EventElapsed(int device, uint64_t start, uint64_t end) = 0;  // milliseconds

  // --- recorded work, as MicaDeviceTable's functions of these names
  virtual void CaptureBegin(int device, uint64_t stream) = 0;
  virtual uint64_t CaptureEnd(int device, uint64_t stream) = 0;
  // Whether what is queued on the stream is recorded, so that it cannot be waited for.
  virtual bool Capturing(int device, uint64_t stream) = 0;
  virtual void GraphReplay(int device, uint64_t graph, uint64_t stream) = 0;
  virtual void GraphDestroy(int device, uint64_t graph) = 0;

  // --- kernels
  // What stands before every kernel text: the dialect's words (text/words).
  virtual const char* Prelude() const = 0;
  // Compiles a text (with its prelude) for an architecture; the result is what Load takes, on
  // this machine and any like it. Throws with the compiler's first lines. Needs no device.
  virtual std::string Compile(const std::string& text, const std::string& architecture,
                              const std::string& what) = 0;
  // The compiler and its version, for the key of what is kept on disk.
  virtual std::string Compiler() = 0;
  virtual uint64_t Load(int device, const std::string& binary) = 0;
  virtual uint64_t Function(uint64_t module, const std::string& name) = 0;
  virtual void Run(int device, const Launch& launch) = 0;
};

}  // namespace gpu
