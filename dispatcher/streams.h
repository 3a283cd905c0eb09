// Streams and events of devices, driven by the host: the current stream of each
// thread and device, and C++ owners of the handles that a device table gives out.
//
// Stream 0 is a device's default stream and always exists. The CPU has stream 0
// alone. A thread that never chose a stream pays one relaxed load for the question.
// Handles are shared by reference count: a Stream that is current, or that a block
// of memory belongs to, is not destroyed before the process ends, since the
// allocator keeps its blocks by stream.
#pragma once

#include <cstdint>

#include "mica/tensor/device.h"
#include "mica/tensor/tensor.h"

namespace mica {

// Of this thread, for a device.
uint64_t CurrentStream(Device device);
uint64_t ExchangeStream(Device device, uint64_t stream);

struct StreamRef {
  Device device;
  uint64_t handle = 0;
  bool operator==(const StreamRef&) const = default;
};
// A new stream; it lives as long as the process.
StreamRef CreateStream(Device device, int priority);
void SynchronizeStream(const StreamRef& stream);
// Whether all work of the stream is done.
bool QueryStream(const StreamRef& stream);
// All streams of the device that the host knows.
void SynchronizeDevice(Device device);

// Another stream than the one that was current when the tensor was made uses its
// memory: it is not given out again before that use is done.
void RecordStream(const Tensor& t, uint64_t stream);

// A point in a stream's work. Made for a device by its first Record.
class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();
  void Record(const StreamRef& stream);  // kRuntime Error on another device than before
  void Wait(const StreamRef& stream);    // the stream's later work comes after the event
  void Synchronize();                    // this thread waits
  bool Query();                          // true, too, when never recorded
  double ElapsedMilliseconds(Event& end);
  bool recorded() const { return recorded_; }
  Device device() const { return device_; }

 private:
  Device device_;
  uint64_t handle_ = 0;
  bool recorded_ = false;
};

}  // namespace mica
