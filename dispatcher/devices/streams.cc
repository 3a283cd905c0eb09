#include "dispatcher/devices/streams.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "dispatcher/devices/device_memory.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/devices/graphs.h"
#include "dispatcher/devices/late_errors.h"
#include "dispatcher/plugins/status.h"
#include "tensor/allocator.h"
#include "tensor/error.h"

namespace mica {
namespace {

// Whether any thread ever made another stream than 0 current.
std::atomic<bool> g_any_chosen{false};

std::vector<Stream>& Chosen() {
  static thread_local std::vector<Stream> chosen;  // one entry a device
  return chosen;
}

}  // namespace

// One holding of a stream, shared by the copies of a Stream.
struct Stream::Lease {
  StreamRef ref;
  const MicaDeviceTable* giver;
  Lease(const StreamRef& r, const MicaDeviceTable* g) : ref(r), giver(g) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();
};

namespace {

// A stream that the host asked for.
struct Made {
  StreamRef ref;
  int priority;
  const MicaDeviceTable* giver;
  std::weak_ptr<const Stream::Lease> lease;  // expired: it waits in the pool
};
struct Streams {
  std::mutex mutex;
  std::vector<Made> made;
};
Streams& AllStreams() {
  static Streams* streams = new Streams();  // never destroyed: threads may outlive statics
  return *streams;
}

// Gives the waiting streams that `pick` takes back to the tables that made them, with
// nothing left to do in them.
template <typename Pick>
void DestroyIdle(Pick&& pick) {
  std::vector<Made> taken;
  {
    Streams& all = AllStreams();
    std::lock_guard lock(all.mutex);
    std::erase_if(all.made, [&](const Made& m) {
      if (!m.lease.expired() || !pick(m)) return false;
      taken.push_back(m);
      return true;
    });
  }
  for (const Made& m : taken) {
    if (!LiveDeviceTable(m.ref.device.backend)) continue;  // ended, or of before a fork
    KeepLate(m.ref.device, m.giver->stream_sync(m.giver->context, m.ref.device.index, m.ref.handle));
    AllocatorFor(m.ref.device).EndStream(m.ref.handle);
    KeepLate(m.ref.device, m.giver->stream_destroy(m.giver->context, m.ref.device.index, m.ref.handle));
  }
}

}  // namespace

Stream::Lease::~Lease() {
  // Of a plugin that was replaced since: nobody will ask for it again.
  if (giver != DeviceTable(ref.device.backend))
    DestroyIdle([this](const Made& m) { return m.giver == giver; });
}

void DestroyIdleStreams(int backend) {
  DestroyIdle([backend](const Made& m) { return backend < 0 || m.ref.device.backend == backend; });
}

bool Stream::live() const { return !lease_ || lease_->giver == DeviceTable(ref_.device.backend); }

Stream Stream::Share(const StreamRef& ref) {
  Stream stream;
  stream.ref_ = ref;
  if (ref.handle == 0) return stream;
  const MicaDeviceTable* table = DeviceTable(ref.device.backend);
  Streams& all = AllStreams();
  std::lock_guard lock(all.mutex);
  for (Made& m : all.made) {
    if (!(m.ref == ref) || m.giver != table) continue;
    stream.lease_ = m.lease.lock();
    if (!stream.lease_) m.lease = stream.lease_ = std::make_shared<const Lease>(ref, table);
  }
  return stream;
}

Stream Stream::Create(Device device, int priority) {
  Stream stream;
  stream.ref_.device = device;
  if (device.backend < 2) return stream;
  const MicaDeviceTable& table = DeviceTableOf(device);
  if (table.priority_range) {
    const auto [least, greatest] = PriorityRange(device);
    priority = std::min(std::max(priority, greatest), least);
  }
  Streams& all = AllStreams();
  {
    std::lock_guard lock(all.mutex);
    for (Made& m : all.made) {
      if (!(m.ref.device == device) || m.priority != priority || m.giver != &table || !m.lease.expired())
        continue;
      stream.ref_ = m.ref;
      m.lease = stream.lease_ = std::make_shared<const Lease>(m.ref, &table);
      return stream;
    }
  }
  RaiseReported(device, table.stream_create(table.context, device.index, priority, &stream.ref_.handle));
  stream.lease_ = std::make_shared<const Lease>(stream.ref_, &table);
  std::lock_guard lock(all.mutex);
  all.made.push_back({stream.ref_, priority, &table, stream.lease_});
  return stream;
}

std::pair<int, int> PriorityRange(Device device) {
  MICA_CHECK_IMPLEMENTED(device.backend >= 2 && DeviceTableOf(device).priority_range, "The device (",
                         device.ToString(),
                         ") does not say which priorities its streams have: `priority_range` lacks in its "
                         "table; leave `priority` at 0.");
  const MicaDeviceTable& table = DeviceTableOf(device);
  int32_t least = 0, greatest = 0;
  RaiseReported(device, table.priority_range(table.context, device.index, &least, &greatest));
  MICA_CHECK(greatest <= least, "The device (", device.ToString(),
             ") says that its streams' priorities go from (", least, "), the lowest, to (", greatest,
             "); the highest is the smaller number.");
  return {least, greatest};
}

bool AnyStreamChosen() { return g_any_chosen.load(std::memory_order_relaxed); }

uint64_t CurrentStream(Device device) {
  if (device.backend < 2 || !g_any_chosen.load(std::memory_order_relaxed)) return 0;
  for (const Stream& s : Chosen())
    if (s.ref().device == device) return s.live() ? s.ref().handle : 0;
  return 0;
}

uint64_t ExchangeStream(Device device, uint64_t stream) {
  MICA_CHECK(device.backend >= 2 || stream == 0, "The device (", device.ToString(),
             ") has its default stream alone; expected stream 0.");
  const uint64_t before = CurrentStream(device);
  if (stream == before) return before;
  g_any_chosen.store(true, std::memory_order_relaxed);
  Stream chosen = Stream::Share({device, stream});
  for (Stream& s : Chosen()) {
    if (!(s.ref().device == device)) continue;
    std::swap(s, chosen);  // what it was may be the last of its stream, and ends after this
    return before;
  }
  Chosen().push_back(std::move(chosen));
  return before;
}

void SynchronizeStream(const StreamRef& stream) {
  if (stream.device.backend < 2) return;
  RefuseWhileRecording(stream.device, "Waiting for a stream");
  const MicaDeviceTable& table = DeviceTableOf(stream.device);
  {
    const WaitedFor waited(stream.device, stream.handle);
    RaiseReported(stream.device, table.stream_sync(table.context, stream.device.index, stream.handle));
  }
  GiveBackUnused();
  RaiseLate(stream.device);
}

bool QueryStream(const StreamRef& stream) {
  if (stream.device.backend < 2) return true;
  RefuseWhileRecording(stream.device, "Asking whether a stream has work left");
  const MicaDeviceTable& table = DeviceTableOf(stream.device);
  if (table.stream_query) {
    int32_t done = 0;
    RaiseLate(stream.device);
    RaiseReported(stream.device,
                  table.stream_query(table.context, stream.device.index, stream.handle, &done));
    return done != 0;
  }
  Event now;
  now.Record(stream);
  return now.Query();
}

std::vector<StreamRef> StreamsOf(Device device) {
  const MicaDeviceTable* const table = DeviceTable(device.backend);
  std::vector<StreamRef> streams{{device, 0}};
  const uint64_t current = CurrentStream(device);
  if (current) streams.push_back({device, current});
  {
    Streams& all = AllStreams();
    std::lock_guard lock(all.mutex);
    for (const Made& m : all.made)
      if (m.ref.device == device && m.giver == table && m.ref.handle != current) streams.push_back(m.ref);
  }
  std::erase_if(streams, [](const StreamRef& s) { return IsRecorded(s); });
  return streams;
}

namespace {
// Calls f with what the device says to each wait that is needed.
template <typename F>
void WaitForAll(Device device, const MicaDeviceTable& table, F&& f) {
  const DeviceWait waits(device);
  if (table.device_sync && !AnyRecordingOn(device)) return f(table.device_sync(table.context, device.index));
  for (const StreamRef& s : StreamsOf(device)) f(table.stream_sync(table.context, device.index, s.handle));
}
}  // namespace

void SynchronizeDevice(Device device) {
  if (device.backend < 2) return;
  RefuseWhileRecording(device, "Waiting for all work");
  {
    const WaitedFor waited(device);
    WaitForAll(device, DeviceTableOf(device), [&](MicaStatus s) { RaiseReported(device, s); });
  }
  GiveBackUnused();
  RaiseLate(device);
}

void FinishDevice(Device device) noexcept {
  const MicaDeviceTable* const table = LiveDeviceTable(device.backend);
  if (!table) return;
  const WaitedFor waited(device);
  WaitForAll(device, *table, [&](MicaStatus s) { KeepLate(device, s); });
}

void RecordStream(const Tensor& t, uint64_t stream) {
  if (t.device().backend >= 2) AllocatorFor(t.device()).RecordStream(t.storage()->data(), stream);
}

Event::~Event() { Destroy(); }

void Event::Make(const MicaDeviceTable& table, Device device) {
  Destroy();
  RaiseReported(device, table.event_create_with(table.context, device.index, flags_, &handle_));
  giver_ = &table;
}

void Event::Destroy() {
  if (giver_ && LiveDeviceTable(device_.backend))
    KeepLate(device_, giver_->event_destroy(giver_->context, device_.index, handle_));
  giver_ = nullptr;
}

void Event::Record(const StreamRef& stream) {
  const RecordedWork* const recording = RecordingOf(stream);
  MICA_CHECK(!recorded_ || device_ == stream.device, "The event belongs to the device (", device_.ToString(),
             "), and the stream to (", stream.device.ToString(), "); make an event for each device.");
  if (stream.device.backend >= 2) {
    const MicaDeviceTable& table = DeviceTableOf(stream.device);
    if (giver_ != &table) Make(table, stream.device);
    recorded_ = true;
    device_ = stream.device;
    recording_ = recording ? recording->number() : 0;
    RaiseReported(device_, table.event_record(table.context, device_.index, handle_, stream.handle));
  }
  recorded_ = true;
  device_ = stream.device;
}

void Event::Wait(const StreamRef& stream) {
  if (!recorded_ || device_.backend < 2) return;
  if (stream.device.backend != device_.backend || giver_ != &DeviceTableOf(stream.device))
    return Synchronize();
  RaiseReported(stream.device,
                giver_->event_wait(giver_->context, stream.device.index, handle_, stream.handle));
  JoinRecording(recording_, stream);
}

void Event::Synchronize() {
  if (!recorded_ || device_.backend < 2) return;
  RefuseWhileRecording(device_, "Waiting for an event");
  static_cast<void>(DeviceTableOf(device_));  // that it lives
  RaiseReported(device_, giver_->event_sync(giver_->context, device_.index, handle_));
  GiveBackUnused();
  RaiseLate(device_);
}

void Event::Finish() noexcept {
  if (giver_ && LiveDeviceTable(device_.backend))
    KeepLate(device_, giver_->event_sync(giver_->context, device_.index, handle_));
}

bool Event::Query() {
  if (!recorded_ || device_.backend < 2) return true;
  static_cast<void>(DeviceTableOf(device_));
  RefuseWhileRecording(device_, "Asking whether an event has passed");
  if (!giver_->event_query) {
    Synchronize();
    return true;
  }
  int32_t done = 0;
  RaiseReported(device_, giver_->event_query(giver_->context, device_.index, handle_, &done));
  return done != 0;
}

double Event::ElapsedMilliseconds(Event& end) {
  MICA_CHECK(recorded_ && end.recorded_ && device_ == end.device_,
             "The time between two events needs both to be recorded on one device.");
  MICA_CHECK(giver_ == end.giver_, "The two events are of two builds of the plugin of the device (",
             device_.ToString(), "), one of which took the other's place.");
  if (device_.backend >= 2) static_cast<void>(DeviceTableOf(device_));  // not ended, nor of before a fork
  MICA_CHECK_IMPLEMENTED(device_.backend >= 2 && giver_->event_elapsed, "The device (", device_.ToString(),
                         ") has no `event_elapsed` in its table; measure on the host.");
  MICA_CHECK(flags_ & end.flags_ & MICA_EVENT_TIMED,
             "The time between two events needs both to be made to be timed; make them with "
             "enable_timing=True.");
  double milliseconds = 0;
  RaiseReported(device_,
                giver_->event_elapsed(giver_->context, device_.index, handle_, end.handle_, &milliseconds));
  return milliseconds;
}

}  // namespace mica
