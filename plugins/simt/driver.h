// A simulated GPU: plugins/gpu's driver on the CPU, for machines and tests without one.
//
// It runs the very kernel texts that a GPU runs, stricter than hardware: work is late, memory
// is poisoned and cannot be reached by the host, the order of work-items is shuffled, and
// arguments, copies and barriers are checked (memory.h, fibers.h, streams.h say how). What a
// kernel does wrong is kept by its device, and thrown by the next function that waits for it.
// MICA_SIMT_DEVICES (2) devices have MICA_SIMT_MEMORY (2 GiB) bytes each. Not for speed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plugins/gpu/driver/driver.h"

namespace simt {

class SimtDriver final : public gpu::Driver {
 public:
  const char* backend() const override { return "simt"; }

  int Count() override;  // throws in the child of a fork
  std::vector<std::string> Missing() override;
  gpu::DeviceInfo Describe(int device) override;
  int64_t FreeMemory(int device) override;
  int ExchangeDevice(int device) override;
  bool CanAccessPeer(int device, int peer) override;
  bool Attribute(int device, const std::string& key, int64_t* value) override;

  void* Allocate(int device, int64_t size) override;
  void Free(int device, void* data) override;
  void* PinnedAllocate(int64_t size) override;
  void PinnedFree(void* data) override;
  void CopyToDevice(int device, void* to, const void* from, int64_t size, uint64_t stream) override;
  void CopyToHost(int device, void* to, const void* from, int64_t size, uint64_t stream) override;
  void CopyOnDevice(int device, void* to, const void* from, int64_t size, uint64_t stream) override;
  void CopyToPeer(int to_device, void* to, int from_device, const void* from, int64_t size,
                  uint64_t stream) override;
  void Fill(int device, void* data, uint8_t byte, int64_t size, uint64_t stream) override;

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
};

// Never destroyed: threads may outlive statics.
SimtDriver& GetSimtDriver();

}  // namespace simt
