// plugins/gpu's Driver, of NVIDIA's devices.
//
// context.h holds what the process knows of the driver, compiler.h the run-time compiler; this maps the
// interface onto the driver's functions, one to one. It keeps nothing between calls but which device a
// module was loaded on.
#pragma once

#include <mutex>
#include <unordered_map>

#include "plugins/gpu/driver/driver.h"

namespace cuda {

class CudaDriver final : public gpu::Driver {
 public:
  const char* backend() const override { return "cuda"; }

  int Count() override;
  // Opens the compiler, cuBLAS and cuDNN to see whether they are there, which takes some milliseconds.
  std::vector<std::string> Missing() override;
  gpu::DeviceInfo Describe(int device) override;
  int64_t FreeMemory(int device) override;
  int ExchangeDevice(int device) override;
  bool CanAccessPeer(int device, int peer) override;
  bool Attribute(int device, const std::string& key, int64_t* value) override;

  void* Allocate(int device, int64_t size) override;  // null for 0 bytes
  // Waits for what the device still does, as cuMemFree does; an allocator keeps blocks to avoid that.
  void Free(int device, void* data) override;
  void* PinnedAllocate(int64_t size) override;
  void PinnedFree(void* data) override;
  void CopyToDevice(int device, void* to, const void* from, int64_t size, uint64_t stream) override;
  void CopyToHost(int device, void* to, const void* from, int64_t size, uint64_t stream) override;
  void CopyOnDevice(int device, void* to, const void* from, int64_t size, uint64_t stream) override;
  void CopyToPeer(int to_device, void* to, int from_device, const void* from, int64_t size,
                  uint64_t stream) override;
  void Fill(int device, void* data, uint8_t byte, int64_t size, uint64_t stream) override;

  // Streams do not wait for stream 0, nor it for them. A priority out of the device's range is moved into it.
  void PriorityRange(int device, int32_t* least, int32_t* greatest) override;
  uint64_t StreamCreate(int device, int priority) override;
  void StreamDestroy(int device, uint64_t stream) override;
  void StreamSync(int device, uint64_t stream) override;
  bool StreamDone(int device, uint64_t stream) override;
  void DeviceSync(int device) override;
  uint64_t EventCreate(int device, uint64_t flags) override;
  void EventDestroy(int device, uint64_t event) override;
  void EventRecord(int device, uint64_t event, uint64_t stream) override;
  void EventWait(int device, uint64_t event, uint64_t stream) override;
  void EventSync(int device, uint64_t event) override;
  bool EventDone(int device, uint64_t event) override;
  double EventElapsed(int device, uint64_t start, uint64_t end) override;

  void CaptureBegin(int device, uint64_t stream) override;
  uint64_t CaptureEnd(int device, uint64_t stream) override;
  bool Capturing(int device, uint64_t stream) override;
  void GraphReplay(int device, uint64_t graph, uint64_t stream) override;
  void GraphDestroy(int device, uint64_t graph) override;

  const char* Prelude() const override;
  std::string Compile(const std::string& text, const std::string& architecture,
                      const std::string& what) override;
  std::string Compiler() override;
  uint64_t Load(int device, const std::string& binary) override;
  uint64_t Function(uint64_t module, const std::string& name) override;
  void Run(int device, const gpu::Launch& launch) override;

 private:
  std::mutex mutex_;                           // of devices_
  std::unordered_map<uint64_t, int> devices_;  // of a module, where it was loaded
};

// The driver of this process; never destroyed.
CudaDriver& GetCudaDriver();

}  // namespace cuda
