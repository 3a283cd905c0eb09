#include "mica/dispatcher/streams.h"

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "mica/dispatcher/devices.h"
#include "mica/dispatcher/status.h"
#include "mica/tensor/allocator.h"
#include "mica/tensor/error.h"

namespace mica {
namespace {

// Whether any thread ever made another stream than 0 current.
std::atomic<bool> g_any_chosen{false};

std::vector<StreamRef>& Chosen() {
  static thread_local std::vector<StreamRef> chosen;  // one entry a device
  return chosen;
}

struct Streams {
  std::mutex mutex;
  std::vector<StreamRef> made;
};
Streams& AllStreams() {
  static Streams* streams = new Streams();  // never destroyed: threads may outlive statics
  return *streams;
}

}  // namespace

uint64_t CurrentStream(Device device) {
  if (device.backend < 2 || !g_any_chosen.load(std::memory_order_relaxed)) return 0;
  for (const StreamRef& s : Chosen())
    if (s.device == device) return s.handle;
  return 0;
}

uint64_t ExchangeStream(Device device, uint64_t stream) {
  MICA_CHECK(device.backend >= 2 || stream == 0, "The device (", device.ToString(),
             ") has its default stream alone; expected stream 0.");
  if (stream != 0) g_any_chosen.store(true, std::memory_order_relaxed);
  for (StreamRef& s : Chosen())
    if (s.device == device) return std::exchange(s.handle, stream);
  if (stream != 0) Chosen().push_back({device, stream});
  return 0;
}

StreamRef CreateStream(Device device, int priority) {
  if (device.backend < 2) return {device, 0};
  const MicaDeviceTable& table = DeviceTableOf(device);
  StreamRef stream{device, 0};
  ThrowIfError(table.stream_create(table.context, device.index, priority, &stream.handle));
  Streams& all = AllStreams();
  std::lock_guard lock(all.mutex);
  all.made.push_back(stream);
  return stream;
}

void SynchronizeStream(const StreamRef& stream) {
  if (stream.device.backend < 2) return;
  const MicaDeviceTable& table = DeviceTableOf(stream.device);
  ThrowIfError(table.stream_sync(table.context, stream.device.index, stream.handle));
}

bool QueryStream(const StreamRef& stream) {
  if (stream.device.backend < 2) return true;
  const MicaDeviceTable& table = DeviceTableOf(stream.device);
  if (table.stream_query) {
    int32_t done = 0;
    ThrowIfError(table.stream_query(table.context, stream.device.index, stream.handle, &done));
    return done != 0;
  }
  Event now;
  now.Record(stream);
  return now.Query();
}

void SynchronizeDevice(Device device) {
  if (device.backend < 2) return;
  const MicaDeviceTable& table = DeviceTableOf(device);
  if (table.device_sync) {
    ThrowIfError(table.device_sync(table.context, device.index));
    return;
  }
  std::vector<StreamRef> streams{{device, 0}};
  {
    Streams& all = AllStreams();
    std::lock_guard lock(all.mutex);
    for (const StreamRef& s : all.made)
      if (s.device == device) streams.push_back(s);
  }
  for (const StreamRef& s : streams) SynchronizeStream(s);
}

void RecordStream(const Tensor& t, uint64_t stream) {
  if (t.device().backend >= 2) AllocatorFor(t.device()).RecordStream(t.storage()->data(), stream);
}

Event::~Event() {
  if (!recorded_ || device_.backend < 2) return;
  if (const MicaDeviceTable* table = LiveDeviceTable(device_.backend))
    DropStatus(table->event_destroy(table->context, device_.index, handle_));
}

void Event::Record(const StreamRef& stream) {
  MICA_CHECK(!recorded_ || device_ == stream.device, "The event belongs to the device (", device_.ToString(),
             "), and the stream to (", stream.device.ToString(), "); make an event for each device.");
  if (stream.device.backend >= 2) {
    const MicaDeviceTable& table = DeviceTableOf(stream.device);
    if (!recorded_) ThrowIfError(table.event_create(table.context, stream.device.index, &handle_));
    recorded_ = true;
    device_ = stream.device;
    ThrowIfError(table.event_record(table.context, device_.index, handle_, stream.handle));
  }
  recorded_ = true;
  device_ = stream.device;
}

void Event::Wait(const StreamRef& stream) {
  if (!recorded_ || device_.backend < 2) return;
  if (stream.device.backend != device_.backend) return Synchronize();
  const MicaDeviceTable& table = DeviceTableOf(stream.device);
  ThrowIfError(table.event_wait(table.context, stream.device.index, handle_, stream.handle));
}

void Event::Synchronize() {
  if (!recorded_ || device_.backend < 2) return;
  const MicaDeviceTable& table = DeviceTableOf(device_);
  ThrowIfError(table.event_sync(table.context, device_.index, handle_));
}

bool Event::Query() {
  if (!recorded_ || device_.backend < 2) return true;
  const MicaDeviceTable& table = DeviceTableOf(device_);
  if (!table.event_query) {
    Synchronize();
    return true;
  }
  int32_t done = 0;
  ThrowIfError(table.event_query(table.context, device_.index, handle_, &done));
  return done != 0;
}

double Event::ElapsedMilliseconds(Event& end) {
  MICA_CHECK(recorded_ && end.recorded_ && device_ == end.device_,
             "The time between two events needs both to be recorded on one device.");
  MICA_CHECK_IMPLEMENTED(device_.backend >= 2 && DeviceTableOf(device_).event_elapsed, "The device (",
                         device_.ToString(), ") has no `event_elapsed` in its table; measure on the host.");
  const MicaDeviceTable& table = DeviceTableOf(device_);
  double milliseconds = 0;
  ThrowIfError(table.event_elapsed(table.context, device_.index, handle_, end.handle_, &milliseconds));
  return milliseconds;
}

}  // namespace mica
