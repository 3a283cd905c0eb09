#include "dispatcher/devices/driven_table.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "dispatcher/devices/late_errors.h"
#include "dispatcher/plugins/status.h"
#include "tensor/device.h"

namespace mica {
namespace {

struct Driven {
  MicaDeviceTable table{};  // whose context is this struct
  MicaDeviceTable own{};    // the plugin's, in today's size: what an older one did not have is NULL
  std::atomic<int> backend{-1};
  std::atomic<int32_t> count{-1};
  std::array<std::atomic<bool>, INT16_MAX + 1> lost{};  // by number of the device; never cleared
  std::atomic<bool>& Lost(int index) { return lost[static_cast<size_t>(index) % lost.size()]; }
  Device At(int index) const {
    return {static_cast<int16_t>(backend.load(std::memory_order_relaxed)), static_cast<int16_t>(index)};
  }
};

Driven& Of(void* context) { return *static_cast<Driven*>(context); }

// A backend whose devices cannot be counted says so in the call itself.
bool HasSeveral(Driven& driven) {
  int32_t count = driven.count.load(std::memory_order_acquire);
  if (count < 0) {
    if (const MicaStatus failed = driven.own.count(driven.own.context, &count)) {
      DropStatus(failed);
      return false;
    }
    driven.count.store(count, std::memory_order_release);
  }
  return count > 1;
}

MicaStatus Noted(Driven& driven, int32_t index, MicaStatus status) {
  if (status && CodeOf(status) == MICA_ERROR_DEVICE_LOST) NoteLost(driven.table, driven.At(index), status);
  return status;
}

// Calls f with the device current in this thread.
template <typename F>
MicaStatus On(Driven& driven, int32_t index, F&& f) {
  if (driven.Lost(index).load(std::memory_order_relaxed)) return BareStatus(MICA_ERROR_DEVICE_LOST);
  const MicaDeviceTable& own = driven.own;
  const bool several = HasSeveral(driven);
  int32_t before = index, ours = 0;
  if (several)
    if (const MicaStatus s = own.exchange_device(own.context, index, &before)) return Noted(driven, index, s);
  const MicaStatus status = Noted(driven, index, f(own));
  if (several)
    KeepLate(driven.At(before), Noted(driven, before, own.exchange_device(own.context, before, &ours)));
  return status;
}

// A function whose first argument is the device.
template <auto kFunction>
struct OnDevice;
template <typename... A, MicaStatus (*MicaDeviceTable::*kFunction)(void*, int32_t, A...)>
struct OnDevice<kFunction> {
  static MicaStatus Call(void* context, int32_t device, A... a) {
    return On(Of(context), device,
              [&](const MicaDeviceTable& own) { return (own.*kFunction)(own.context, device, a...); });
  }
};
// One that names none.
template <auto kFunction>
struct AsItIs;
template <typename... A, MicaStatus (*MicaDeviceTable::*kFunction)(void*, A...)>
struct AsItIs<kFunction> {
  static MicaStatus Call(void* context, A... a) {
    const MicaDeviceTable& own = Of(context).own;
    return (own.*kFunction)(own.context, a...);
  }
};
// The device of a function that names none: the one that the program has set, or the first that is not lost.
int32_t Unnamed(Driven& driven) {
  const int32_t current = CurrentDeviceNumber(driven.At(0).backend);
  if (!driven.Lost(current).load(std::memory_order_relaxed) || !HasSeveral(driven)) return current;
  for (int32_t i = 0; i < driven.count.load(std::memory_order_acquire); ++i)
    if (!driven.Lost(i).load(std::memory_order_relaxed)) return i;
  return current;
}
// Pinned memory is of the host, but drivers book it on the current device.
template <auto kFunction>
struct OnCurrent;
template <typename... A, MicaStatus (*MicaDeviceTable::*kFunction)(void*, A...)>
struct OnCurrent<kFunction> {
  static MicaStatus Call(void* context, A... a) {
    return On(Of(context), Unnamed(Of(context)),
              [&](const MicaDeviceTable& own) { return (own.*kFunction)(own.context, a...); });
  }
};

// Where the plugin has `event_create` alone, which makes every event.
MicaStatus EventCreateWith(void* context, int32_t device, uint64_t, uint64_t* out) {
  return OnDevice<&MicaDeviceTable::event_create>::Call(context, device, out);
}

// What asks for and changes the current device itself. To a lost one, too: the thread's number of it may have
// to be put back.
MicaStatus ExchangeDevice(void* context, int32_t index, int32_t* previous) {
  Driven& driven = Of(context);
  return Noted(driven, index, driven.own.exchange_device(driven.own.context, index, previous));
}

MicaStatus Copy(void* context, void* to, MicaDevice to_device, const void* from, MicaDevice from_device,
                int64_t size, uint64_t stream) {
  const int32_t runs = to_device.backend ? to_device.index : from_device.index;
  return On(Of(context), runs, [&](const MicaDeviceTable& own) {
    return own.copy(own.context, to, to_device, from, from_device, size, stream);
  });
}

MicaStatus PeerCopy(void* context, void* to, int32_t to_device, const void* from, int32_t from_device,
                    int64_t size, uint64_t stream) {
  return On(Of(context), to_device, [&](const MicaDeviceTable& own) {
    return own.peer_copy(own.context, to, to_device, from, from_device, size, stream);
  });
}

}  // namespace

MicaDeviceTable* DriveTable(const MicaDeviceTable& plugins) {
  auto* driven = new Driven;
  MicaDeviceTable& own = driven->own;
  std::memcpy(&own, &plugins, std::min<size_t>(plugins.struct_size, sizeof(own)));
  MicaDeviceTable& table = driven->table;
  table.struct_size = sizeof(table);
  table.major = own.major;
  table.minor = own.minor;
  table.context = driven;
  table.dlpack_type = own.dlpack_type;
#define MICA_DRIVE(how, function) \
  if (own.function) table.function = &how<&MicaDeviceTable::function>::Call
  MICA_DRIVE(AsItIs, count);
  MICA_DRIVE(OnDevice, properties);
  MICA_DRIVE(OnDevice, allocate);
  MICA_DRIVE(OnDevice, free);
  MICA_DRIVE(OnDevice, stream_create);
  MICA_DRIVE(OnDevice, stream_destroy);
  MICA_DRIVE(OnDevice, stream_sync);
  MICA_DRIVE(OnDevice, event_destroy);
  MICA_DRIVE(OnDevice, event_record);
  MICA_DRIVE(OnDevice, event_wait);
  MICA_DRIVE(OnDevice, event_sync);
  MICA_DRIVE(OnDevice, fill);
  MICA_DRIVE(OnDevice, event_query);
  MICA_DRIVE(OnDevice, stream_query);
  MICA_DRIVE(OnDevice, event_elapsed);
  MICA_DRIVE(OnDevice, device_sync);
  MICA_DRIVE(OnCurrent, pinned_allocate);
  MICA_DRIVE(OnCurrent, pinned_free);
  MICA_DRIVE(OnDevice, capture_begin);
  MICA_DRIVE(OnDevice, capture_end);
  MICA_DRIVE(OnDevice, graph_replay);
  MICA_DRIVE(OnDevice, graph_destroy);
  MICA_DRIVE(OnDevice, stream_allocate);
  MICA_DRIVE(OnDevice, stream_free);
  MICA_DRIVE(AsItIs, supports);
  MICA_DRIVE(AsItIs, quiesce);
  MICA_DRIVE(AsItIs, detach);
  MICA_DRIVE(OnDevice, priority_range);
  MICA_DRIVE(OnDevice, peer_access);
  MICA_DRIVE(OnDevice, attribute);
#undef MICA_DRIVE
  table.event_create_with =
      own.event_create_with ? &OnDevice<&MicaDeviceTable::event_create_with>::Call : &EventCreateWith;
  table.exchange_device = &ExchangeDevice;
  table.copy = &Copy;
  if (own.peer_copy) table.peer_copy = &PeerCopy;
  return &table;
}

void SetBackendOf(const MicaDeviceTable& driven, int backend) {
  Of(driven.context).backend.store(backend, std::memory_order_relaxed);
}

Device DeviceOfPinned(const MicaDeviceTable& driven) {
  Driven& of = Of(driven.context);
  return of.At(Unnamed(of));
}

bool SetLost(const MicaDeviceTable& driven, int index) {
  return !Of(driven.context).Lost(index).exchange(true);
}

bool IsLost(const MicaDeviceTable& driven, int index) {
  return Of(driven.context).Lost(index).load(std::memory_order_relaxed);
}

bool AnyLost(const MicaDeviceTable& driven) {
  const auto& lost = Of(driven.context).lost;
  return std::any_of(lost.begin(), lost.end(), [](const auto& of_device) { return of_device.load(); });
}

}  // namespace mica
