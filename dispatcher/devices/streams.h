// Streams and events of devices, driven by the host: the current stream of each
// thread and device, and C++ owners of the handles that a device table gives out.
//
// Stream 0 is a device's default stream and always exists. The CPU has stream 0
// alone. A thread that never chose a stream pays one relaxed load for the question.
// Handles are shared by reference count. One that nobody holds waits in a pool for
// the next request of its device and priority, since memory and backward nodes still
// name it; the pool's streams are destroyed when their plugin is disabled or replaced,
// and at exit. One that is held then is left to the device's own end.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tensor/device.h"
#include "tensor/tensor.h"

namespace mica {

// Of this thread, for a device.
uint64_t CurrentStream(Device device);
uint64_t ExchangeStream(Device device, uint64_t stream);
// Whether any thread ever chose another stream than 0.
bool AnyStreamChosen();

struct StreamRef {
  Device device;
  uint64_t handle = 0;
  bool operator==(const StreamRef&) const = default;
};

// A counted handle. Copies share the stream.
class Stream {
 public:
  Stream() = default;  // stream 0 of the CPU
  // A stream that nobody else holds. A priority that the device does not have means the next that it has.
  static Stream Create(Device device, int priority);
  // The stream of that handle, shared. Stream 0, and one that a plugin made for
  // itself, counts nothing.
  static Stream Share(const StreamRef& ref);
  const StreamRef& ref() const { return ref_; }
  // False when the plugin that made it is replaced: nothing may go to it any more.
  bool live() const;

  struct Lease;  // streams.cc's own

 private:
  StreamRef ref_;
  std::shared_ptr<const Lease> lease_;
};
// The priorities of a device's streams, the lowest and the highest, which is the smaller number; throws a
// kNotImplemented Error where the device does not say.
std::pair<int, int> PriorityRange(Device device);
// Destroys the streams that wait in the pool: of one backend, or of all (-1).
void DestroyIdleStreams(int backend);

// Makes a stream current on this thread until it is destroyed.
class StreamGuard {
 public:
  explicit StreamGuard(const StreamRef& stream)
      : device_(stream.device), before_(ExchangeStream(stream.device, stream.handle)) {}
  ~StreamGuard() { ExchangeStream(device_, before_); }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  const Device device_;
  const uint64_t before_;
};

// The device's streams that the host knows, the default one and this thread's current one among them, but
// those that are recorded.
std::vector<StreamRef> StreamsOf(Device device);

void SynchronizeStream(const StreamRef& stream);
// Whether all work of the stream is done.
bool QueryStream(const StreamRef& stream);
// All streams of the device that the host knows, but those that are recorded.
void SynchronizeDevice(Device device);
// The same; keeps what the device says for who next waits for it.
void FinishDevice(Device device) noexcept;

// Another stream than the one that was current when the tensor was made uses its
// memory: it is not given out again before that use is done.
void RecordStream(const Tensor& t, uint64_t stream);

// A point in a stream's work. Made for a device by its first Record.
class Event {
 public:
  // Flags of MICA_EVENT_*, which say what it is for.
  explicit Event(uint64_t flags = 0) : flags_(flags) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();
  void Record(const StreamRef& stream);  // kRuntime Error on another device than before
  void Wait(const StreamRef& stream);    // the stream's later work comes after the event
  void Synchronize();                    // this thread waits
  // Waits, too, and keeps what the device says for who next waits for it.
  void Finish() noexcept;
  bool Query();                            // true, too, when never recorded
  double ElapsedMilliseconds(Event& end);  // kRuntime Error unless both are of MICA_EVENT_TIMED
  bool recorded() const { return recorded_; }
  Device device() const { return device_; }

 private:
  void Make(const MicaDeviceTable& table, Device device);
  void Destroy();
  const uint64_t flags_;
  Device device_;
  const MicaDeviceTable* giver_ =
      nullptr;  // that made it, and alone knows it, also when another build took its place
  uint64_t handle_ = 0;
  uint64_t recording_ = 0;  // the number of what its stream's work was recorded into
  bool recorded_ = false;
};

}  // namespace mica
