#include "dispatcher/devices/device_memory.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dispatcher/devices/devices.h"
#include "dispatcher/devices/graphs.h"
#include "dispatcher/devices/late_errors.h"
#include "dispatcher/devices/pinned_memory.h"
#include "dispatcher/devices/streams.h"
#include "dispatcher/plugins/status.h"
#include "tensor/allocator.h"
#include "tensor/error.h"
#include "tensor/key_set.h"

namespace mica {
namespace {

// Beyond it a copy from memory that is not pinned is waited for, since copying that aside would take as long
// and as much memory again.
constexpr int64_t kMostAside = int64_t{64} << 20;
// The most bytes of all such copies that have not come to their end.
constexpr int64_t kMostAsideAtOnce = 4 * kMostAside;

// Says that nothing is to be waited for.
constexpr uint64_t kDone = UINT64_MAX;

// The raw memory of one backend. Asks for the table at each call, since a plugin
// may be replaced and devices end before the last tensor does. A block goes back
// to the table that gave it.
class PluginMemory : public RawMemory {
 public:
  explicit PluginMemory(int backend) : backend_(backend) {}

  void* Allocate(int index, int64_t size, uint64_t stream) override {
    const MicaDeviceTable& table = DeviceTableOf(At(index));
    // What is recorded would be allocated anew by each replay.
    const bool in_order = table.stream_allocate && table.stream_free && !IsRecorded({At(index), stream});
    void* data = nullptr;
    const MicaStatus s = in_order ? table.stream_allocate(table.context, index, size, stream, &data)
                                  : table.allocate(table.context, index, size, &data);
    if (!s) {
      std::lock_guard lock(mutex_);
      givers_[data] = {&table, in_order};
      return data;
    }
    if (CodeOf(s) != MICA_ERROR_OUT_OF_MEMORY) RaiseReported(At(index), s);
    DropStatus(s);
    GiveBackUnused();
    return nullptr;
  }
  void Free(int index, void* data, int64_t size, uint64_t stream) override {
    if (!Table())
      return;  // ended, or of before a fork, which another thread's hold of the mutex may have come through
    Giver giver;
    {
      std::lock_guard lock(mutex_);
      if (auto it = givers_.find(data); it != givers_.end()) {
        giver = it->second;
        givers_.erase(it);
      }
    }
    const MicaDeviceTable* const t = giver.table;
    if (!t) return;
    if (giver.in_order) return KeepLate(At(index), t->stream_free(t->context, index, data, stream));
    if (!IsRecorded({At(index), stream}))  // else it runs nothing
      KeepLate(At(index), t->stream_sync(t->context, index, stream));
    KeepLate(At(index), t->free(t->context, index, data, size));
  }
  uint64_t CurrentStream(int index) override { return mica::CurrentStream(At(index)); }
  uint64_t PoolOf(int index, uint64_t stream) override {
    const RecordedWork* const recording = RecordingOf({At(index), stream});
    return recording ? recording->pool().key() : 0;
  }
  // These run while memory is freed: an error there is kept for the next call that can raise. It may be of
  // earlier work and told once, so that what was to be waited for later is waited for at once.
  uint64_t RecordEvent(int index, uint64_t stream) override {
    const MicaDeviceTable* t = Table();
    uint64_t event = 0;
    if (!t) return kDone;
    if (!Failed(index, t->event_create_with(t->context, index, 0, &event))) {
      if (!Failed(index, t->event_record(t->context, index, event, stream)))
        return reinterpret_cast<uint64_t>(new GivenEvent{t, event});
      KeepLate(At(index), t->event_destroy(t->context, index, event));
    }
    KeepLate(At(index), t->stream_sync(t->context, index, stream));
    return kDone;
  }
  bool TakeIfDone(int index, uint64_t number) override {
    if (number != kDone && Table()) {
      const GivenEvent& e = *reinterpret_cast<GivenEvent*>(number);
      const auto query = e.giver->event_query;
      int32_t done = 0;
      const bool answered = query && !Failed(index, query(e.giver->context, index, e.event, &done));
      if (answered && !done) return false;
      if (!answered) KeepLate(At(index), e.giver->event_sync(e.giver->context, index, e.event));
    }
    Take(index, number);
    return true;
  }
  void WaitAndTake(int index, uint64_t number) override {
    if (number != kDone && Table()) {
      const GivenEvent& e = *reinterpret_cast<GivenEvent*>(number);
      KeepLate(At(index), e.giver->event_sync(e.giver->context, index, e.event));
    }
    Take(index, number);
  }
  void SynchronizeDevice(int index) override { FinishDevice(At(index)); }
  void Copy(int index, void* to, const void* from, int64_t size) override {
    const Device place = At(index);
    const MicaDeviceTable& table = DeviceTableOf(place);
    const uint64_t stream = CurrentStream(index);
    RaiseLate(place);
    RaiseReported(place, table.copy(table.context, to, place.ToAbi(), from, place.ToAbi(), size, stream));
    Launched(place, "copy_", stream);
  }

 private:
  // The table that a piece of memory came from, and whether in the order of a stream.
  struct Giver {
    const MicaDeviceTable* table = nullptr;
    bool in_order = false;
  };
  // An event and the table that alone knows it, also when another build has taken its place.
  struct GivenEvent {
    const MicaDeviceTable* giver;
    uint64_t event;
  };
  void Take(int index, uint64_t number) {
    if (number == kDone) return;
    const std::unique_ptr<GivenEvent> e(reinterpret_cast<GivenEvent*>(number));
    if (Table()) KeepLate(At(index), e->giver->event_destroy(e->giver->context, index, e->event));
  }
  bool Failed(int index, MicaStatus s) const {
    KeepLate(At(index), s);
    return s != nullptr;
  }
  Device At(int index) const { return {static_cast<int16_t>(backend_), static_cast<int16_t>(index)}; }
  const MicaDeviceTable* Table() const { return LiveDeviceTable(backend_); }

  const int backend_;
  std::mutex mutex_;
  std::unordered_map<void*, Giver> givers_;
};

}  // namespace

void RegisterDeviceMemory(int backend) {
  static std::mutex mutex;
  static std::array<RawMemory*, keys::kBackendCount> memory{};
  std::lock_guard lock(mutex);
  RawMemory*& slot = memory[static_cast<size_t>(backend)];
  if (!slot) RegisterRawMemory(backend, slot = new PluginMemory(backend));
}

namespace {

void Queue(void* to, Device to_device, const void* from, Device from_device, int64_t size) {
  const Device runs = to_device.is_cpu() ? from_device : to_device;
  const MicaDeviceTable& table = DeviceTableOf(runs);
  const uint64_t stream = CurrentStream(runs);
  RaiseLate(runs);
  RaiseReported(runs,
                table.copy(table.context, to, to_device.ToAbi(), from, from_device.ToAbi(), size, stream));
  Launched(runs, "copy_", stream);
}

// Memory that work of a device still uses: what is called once the events have passed gives it back.
struct InUse {
  Device device;
  std::vector<std::unique_ptr<Event>> until;  // none: not recorded yet
  std::function<void()> give_back;
};
struct AllInUse {
  std::mutex mutex;
  std::vector<InUse> list;
};
AllInUse& MemoryInUse() {
  static AllInUse* in_use = new AllInUse();  // never destroyed: devices end first
  return *in_use;
}

void Add(InUse memory) {
  AllInUse& all = MemoryInUse();
  const std::lock_guard lock(all.mutex);
  all.list.push_back(std::move(memory));
}

}  // namespace

void LockMemoryInUseAtFork() {
  pthread_atfork([] { MemoryInUse().mutex.lock(); }, [] { MemoryInUse().mutex.unlock(); },
                 [] { MemoryInUse().mutex.unlock(); });
}

void CopyBytes(void* to, Device to_device, const void* from, Device from_device, int64_t size) {
  if (to_device.is_cpu() || from_device.is_cpu())
    RefuseWhileRecording(to_device.is_cpu() ? from_device : to_device,
                         "A copy between the host and a device that is waited for");
  const bool waits = to_device.is_cpu() || from_device.is_cpu();
  const Device runs = to_device.is_cpu() ? from_device : to_device;
  try {
    Queue(to, to_device, from, from_device, size);
    if (waits) SynchronizeStream({runs, CurrentStream(runs)});
  } catch (...) {
    if (waits) FinishDevice(runs);  // the error may be of earlier work, and the copy queued behind it
    throw;
  }
}

namespace {

// Queues the copy; `give_back`, which owns both ends, is called once it has ended.
void CopyAndKeep(const Tensor& to, const Tensor& from, std::function<void()> give_back) {
  const Device runs = to.device().is_cpu() ? from.device() : to.device();
  RecordedWork* const recording = RecordingOn(runs);
  const auto queue = [&] {
    Queue(to.data(), to.device(), from.data(), from.device(), to.numel() * to.itemsize());
  };
  if (recording) {  // each replay copies again
    queue();
    recording->Keep(to);
    recording->Keep(from);
    return;
  }
  InUse memory{runs, {}, std::move(give_back)};
  auto until = std::make_unique<Event>();
  try {
    queue();
    until->Record({runs, CurrentStream(runs)});
  } catch (...) {  // the error may be of earlier work, and the copy queued behind it
    Add(std::move(memory));
    throw;
  }
  memory.until.push_back(std::move(until));
  Add(std::move(memory));
  GiveBackUnused();
}

std::atomic<int64_t> g_bytes_aside{0};

// Counts bytes aside while it lives; NULL where there are too many already.
std::shared_ptr<void> CountAside(int64_t size) {
  if (g_bytes_aside.load() + size > kMostAsideAtOnce) GiveBackUnused();
  if (g_bytes_aside.fetch_add(size) + size > kMostAsideAtOnce) {
    g_bytes_aside.fetch_sub(size);
    return nullptr;
  }
  static char counted;
  return {&counted, [size](void*) { g_bytes_aside.fetch_sub(size); }};
}

// Memory like that of `from` for a copy aside; none where the host has no pinned memory left.
std::optional<Tensor> MemoryAside(const Tensor& from, int backend) {
  if (!HasPinnedMemory(backend)) return EmptyStrided(from.sizes(), from.strides(), from.dtype(), Device{});
  try {
    return EmptyPinned(from, backend);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kOutOfMemory) throw;
    return std::nullopt;
  }
}

}  // namespace

void CopyBytesAside(const Tensor& to, const Tensor& from, bool aside_already) {
  const int64_t size = to.numel() * to.itemsize();
  const std::shared_ptr<void> counted = size > kMostAside && !aside_already ? nullptr : CountAside(size);
  std::optional<Tensor> aside;
  if (counted) aside = aside_already ? from : MemoryAside(from, to.device().backend);
  if (!aside) return CopyBytes(to.data(), to.device(), from.data(), from.device(), size);
  if (!aside_already) std::memcpy(aside->data(), from.data(), static_cast<size_t>(size));
  CopyAndKeep(to, *aside, [to, aside, counted] {});
}

void CopyBytesLater(const Tensor& to, const Tensor& from) {
  CopyAndKeep(to, from, [to, from] {});
}

void AfterQueuedWork(Device device, std::function<void()> give_back) {
  Add({device, {}, std::move(give_back)});
  GiveBackUnused();
}

namespace {
// Raises nothing that was kept, which is of other work.
bool IsIdle(const StreamRef& stream) {
  const MicaDeviceTable& table = DeviceTableOf(stream.device);
  int32_t done = 0;
  if (table.stream_query)
    RaiseReported(stream.device,
                  table.stream_query(table.context, stream.device.index, stream.handle, &done));
  return done != 0;
}

// Whether nothing is to be waited for. A device that has ended, or is lost, does nothing more.
bool IsUnused(InUse& memory) {
  if (!LiveDeviceTable(memory.device.backend) || IsLost(memory.device)) return true;
  bool unused = true;
  const MicaStatus failed = CatchAll([&] {
    if (memory.until.empty())
      for (const StreamRef& stream : StreamsOf(memory.device)) {
        if (IsIdle(stream)) continue;
        memory.until.push_back(std::make_unique<Event>());
        memory.until.back()->Record(stream);
      }
    for (const auto& event : memory.until) unused = unused && event->Query();
  });
  if (!failed) return unused;
  if (CodeOf(failed) == MICA_ERROR_DEVICE_LOST) NobodyWasTold(memory.device);
  KeepLate(memory.device, failed);
  // It may have been of earlier work, with this one still queued; events may be of another build than the
  // device's.
  for (const auto& event : memory.until) event->Finish();
  FinishDevice(memory.device);
  return true;
}
}  // namespace

void GiveBackUnused() {
  if (Recording()) return;
  AllInUse& all = MemoryInUse();
  std::vector<InUse> asked, unused;  // asked, and given back, without the lock
  {
    const std::lock_guard lock(all.mutex);
    asked.swap(all.list);
  }
  const auto used =
      std::partition(asked.begin(), asked.end(), [](InUse& memory) { return !IsUnused(memory); });
  std::move(used, asked.end(), std::back_inserter(unused));
  {
    const std::lock_guard lock(all.mutex);
    std::move(asked.begin(), used, std::back_inserter(all.list));
  }
  for (InUse& memory : unused) memory.give_back();
}

bool FillBytes(void* data, Device device, uint8_t byte, int64_t size) {
  const MicaDeviceTable& table = DeviceTableOf(device);
  const uint64_t stream = CurrentStream(device);
  RaiseLate(device);
  const MicaStatus s = table.fill(table.context, device.index, data, byte, size, stream);
  if (Declined(s)) return false;
  RaiseReported(device, s);
  Launched(device, "fill_", stream);
  return true;
}

bool CopyBetweenPeers(void* to, Device to_device, const void* from, Device from_device, int64_t size) {
  if (to_device.backend != from_device.backend) return false;
  const MicaDeviceTable& table = DeviceTableOf(to_device);
  for (const Device device : {to_device, from_device})
    RefuseWhileRecording(device, "A copy between two devices");
  if (!table.peer_copy) return false;
  const StreamRef writer{to_device, CurrentStream(to_device)};
  const StreamRef reader{from_device, CurrentStream(from_device)};
  Event ready, done;
  ready.Record(reader);
  ready.Wait(writer);
  RaiseLate(to_device);
  const MicaStatus copied =
      table.peer_copy(table.context, to, to_device.index, from, from_device.index, size, writer.handle);
  if (Declined(copied)) return false;
  if (copied) FinishDevice(to_device);  // the error may be of earlier work, and the copy queued behind it
  RaiseReported(to_device, copied);
  Launched(to_device, "copy_", writer.handle);
  done.Record(writer);
  done.Wait(reader);
  return true;
}

}  // namespace mica
