// A GPU backend as the host's device table asks for it (mica/device.h), over a Driver.
#pragma once

#include <mica/device.h>

#include "plugins/gpu/devices.h"

namespace gpu {

class Table {
 public:
  explicit Table(Devices& devices) : devices_(devices), driver_(devices.driver()) {}

  int32_t Count() { return devices_.Count(); }
  void Properties(int32_t device, MicaDeviceProperties* out);
  int32_t ExchangeDevice(int32_t device);
  bool PeerAccess(int32_t device, int32_t peer) { return driver_.CanAccessPeer(device, peer); }
  int64_t Attribute(int32_t device, MicaStr key);

  void* Allocate(int32_t device, int64_t size);
  void Free(int32_t device, void* data, int64_t size);
  void* PinnedAllocate(int64_t size) { return driver_.PinnedAllocate(size); }
  void PinnedFree(void* data, int64_t) { driver_.PinnedFree(data); }
  void Copy(void* to, MicaDevice to_device, const void* from, MicaDevice from_device, int64_t size,
            uint64_t stream);
  void PeerCopy(void* to, int32_t to_device, const void* from, int32_t from_device, int64_t size,
                uint64_t stream);
  void Fill(int32_t device, void* data, uint8_t byte, int64_t size, uint64_t stream);

  void PriorityRange(int32_t device, int32_t* least, int32_t* greatest) {
    driver_.PriorityRange(device, least, greatest);
  }
  uint64_t StreamCreate(int32_t device, int32_t priority) { return driver_.StreamCreate(device, priority); }
  void StreamDestroy(int32_t device, uint64_t stream) { driver_.StreamDestroy(device, stream); }
  void StreamSync(int32_t device, uint64_t stream);
  bool StreamQuery(int32_t device, uint64_t stream) { return driver_.StreamDone(device, stream); }
  void DeviceSync(int32_t device);
  uint64_t EventCreate(int32_t device) { return driver_.EventCreate(device, MICA_EVENT_TIMED); }
  uint64_t EventCreateWith(int32_t device, uint64_t flags) { return driver_.EventCreate(device, flags); }
  void EventDestroy(int32_t device, uint64_t event) { driver_.EventDestroy(device, event); }
  void EventRecord(int32_t device, uint64_t event, uint64_t stream) {
    driver_.EventRecord(device, event, stream);
  }
  void EventWait(int32_t device, uint64_t event, uint64_t stream) {
    driver_.EventWait(device, event, stream);
  }
  void EventSync(int32_t device, uint64_t event);
  bool EventQuery(int32_t device, uint64_t event) { return driver_.EventDone(device, event); }
  double EventElapsed(int32_t device, uint64_t start, uint64_t end) {
    return driver_.EventElapsed(device, start, end);
  }
  void CaptureBegin(int32_t device, uint64_t stream) { driver_.CaptureBegin(device, stream); }
  uint64_t CaptureEnd(int32_t device, uint64_t stream) { return driver_.CaptureEnd(device, stream); }
  void GraphReplay(int32_t device, uint64_t graph, uint64_t stream) {
    driver_.GraphReplay(device, graph, stream);
  }
  void GraphDestroy(int32_t device, uint64_t graph) { driver_.GraphDestroy(device, graph); }
  void Quiesce();

 private:
  Devices& devices_;
  Driver& driver_;
};

}  // namespace gpu
