#include "dispatcher/devices/devices.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dispatcher/devices/device_memory.h"
#include "dispatcher/devices/driven_table.h"
#include "dispatcher/devices/late_errors.h"
#include "dispatcher/devices/streams.h"
#include "dispatcher/plugins/plugins.h"
#include "dispatcher/plugins/status.h"
#include "tensor/error.h"
#include "tensor/key_set.h"

namespace mica {
namespace {

struct MandatoryField {
  const char* name;
  size_t offset;
};
#define FIELD(f) \
  { #f, offsetof(MicaDeviceTable, f) }
constexpr MandatoryField kMandatory[] = {FIELD(count),          FIELD(properties),   FIELD(exchange_device),
                                         FIELD(allocate),       FIELD(free),         FIELD(stream_create),
                                         FIELD(stream_destroy), FIELD(stream_sync),  FIELD(event_create),
                                         FIELD(event_destroy),  FIELD(event_record), FIELD(event_wait),
                                         FIELD(event_sync),     FIELD(copy),         FIELD(fill)};
#undef FIELD

struct Registered {
  std::atomic<const MicaDeviceTable*> table{nullptr};
  std::atomic<int> count{-1};
  std::atomic<bool> used{false};    // a function of the table was called
  std::atomic<bool> forked{false};  // in a child, and used before the fork
};
std::array<Registered, keys::kBackendCount> g_devices{};
std::atomic<bool> g_ended{false};
std::atomic<HostParallelFor> g_parallel_for{nullptr};

Registered& At(int backend) { return g_devices[static_cast<size_t>(backend)]; }

// Every table that was published, of replaced plugins too.
struct Published {
  std::mutex mutex;
  std::vector<const MicaDeviceTable*> tables;
};
Published& AllPublished() {
  static Published* p = new Published();
  return *p;
}

// In the child of a fork.
void ForgetUsedDevices() {
  for (Registered& device : g_devices)
    if (device.used.load(std::memory_order_relaxed)) device.forked.store(true, std::memory_order_relaxed);
}

// What nobody can be told any more by an exception.
void SayAtExit(const std::string& sentence) {
  std::fprintf(stderr, "mica: error at exit: %s\n", sentence.c_str());
}
void SayAtExit(const MicaDeviceTable& table, MicaStatus status) {
  if (!status) return;
  if (CodeOf(status) == MICA_ERROR_DEVICE_LOST && AnyLost(table)) return DropStatus(status);  // as was raised
  try {
    ThrowStatus(status);
  } catch (const std::exception& e) {
    SayAtExit(e.what());
  }
}

// Before static destructors: wait for all work, then let go of the drivers. A child
// leaves that to its parent.
void EndDevices() {
  for (const Registered& device : g_devices)
    if (device.forked.load(std::memory_order_relaxed)) return;
  const auto each = [](auto step) {
    std::lock_guard lock(AllPublished().mutex);
    for (const MicaDeviceTable* t : AllPublished().tables)
      if (t->*step) SayAtExit(*t, (t->*step)(t->context));
  };
  DestroyIdleStreams(-1);
  each(&MicaDeviceTable::quiesce);
  for (const std::string& sentence : TakeLateErrors()) SayAtExit(sentence);
  g_ended.store(true, std::memory_order_release);
  each(&MicaDeviceTable::detach);
}

std::string WithoutFields(const char* name, const MicaDeviceTable& table) {
  for (const MandatoryField& f : kMandatory) {
    const bool inside = f.offset + sizeof(void*) <= table.struct_size;
    const auto* slot = reinterpret_cast<void* const*>(reinterpret_cast<const char*>(&table) + f.offset);
    if (!inside || !*slot)
      return absl::StrCat("The device table of (", name, ") lacks the mandatory function `", f.name, "`.");
  }
  return "";
}

// Whether other libraries take DLPack's number for memory of a device (0 stands for an extension): not those
// of what is pinned, managed or the host's own.
bool IsDeviceOfDlpack(int64_t type) {
  return type == 0 || (type > 1 && type < 65536 && type != 3 && type != 11 && type != 13);
}

}  // namespace

absl::Status CheckDeviceTable(const char* name, const MicaDeviceTable* table) {
  if (!name || !table)
    return absl::InvalidArgumentError("A device was registered without a name or without a table.");
  if (table->struct_size >= offsetof(MicaDeviceTable, context) && table->major != MICA_ABI_MAJOR)
    return absl::InvalidArgumentError(absl::StrCat("The device table of (", name, ") speaks ABI major (",
                                                   table->major, "); this Mica speaks (", MICA_ABI_MAJOR,
                                                   ")."));
  if (const std::string missing = WithoutFields(name, *table); !missing.empty())
    return absl::InvalidArgumentError(missing);
  constexpr size_t kWithDlpackType = offsetof(MicaDeviceTable, dlpack_type) + sizeof(table->dlpack_type);
  if (table->struct_size >= kWithDlpackType && !IsDeviceOfDlpack(table->dlpack_type))
    return absl::InvalidArgumentError(absl::StrCat(
        "The device table of (", name, ") gives its memory the DLPack type (", table->dlpack_type,
        "), which is no device's: 1, 3, 11 and 13 are memory that the host reads, and numbers "
        "outside of 1 to 65535 are none. Give the device's own, or 0 for an extension device."));
  return absl::OkStatus();
}

const MicaDeviceTable* KeepDeviceTable(const MicaDeviceTable& table) { return DriveTable(table); }

void PublishDeviceTable(const char* name, const MicaDeviceTable* kept) {
  const int backend = RegisterBackendName(name);
  if (kept->dlpack_type) SetDlpackType(backend, static_cast<int32_t>(kept->dlpack_type));
  SetBackendOf(*kept, backend);
  At(backend).table.store(kept, std::memory_order_release);
  At(backend).count.store(-1, std::memory_order_release);
  if (backend == keys::kCpu) return;
  RegisterDeviceMemory(backend);
  static const int once = std::atexit(EndDevices) | pthread_atfork(nullptr, nullptr, ForgetUsedDevices);
  static_cast<void>(once);
  std::lock_guard lock(AllPublished().mutex);
  std::vector<const MicaDeviceTable*>& tables = AllPublished().tables;
  if (std::find(tables.begin(), tables.end(), kept) == tables.end()) tables.push_back(kept);
}

absl::Status RegisterDeviceTable(const char* name, const MicaDeviceTable* table) {
  if (absl::Status s = CheckDeviceTable(name, table); !s.ok()) return s;
  PublishDeviceTable(name, KeepDeviceTable(*table));
  return absl::OkStatus();
}

const MicaDeviceTable* DeviceTable(int backend) {
  return backend >= 0 && backend < keys::kBackendCount ? At(backend).table.load(std::memory_order_acquire)
                                                       : nullptr;
}

const MicaDeviceTable* LiveDeviceTable(int backend) {
  const MicaDeviceTable* table = DeviceTable(backend);
  if (!table || g_ended.load(std::memory_order_acquire)) return nullptr;
  Registered& device = At(backend);
  device.used.store(true, std::memory_order_relaxed);
  return device.forked.load(std::memory_order_relaxed) ? nullptr : table;
}

int DeviceCount(int backend) {
  if (backend < 0 || backend >= BackendNameCount()) return 0;
  if (backend < 2) return 1;
  // The name may be known, and its plugin found and not opened.
  if (!DeviceTable(backend)) EnsureProvider(absl::StrCat("backend:", BackendName(backend)));
  Registered& device = At(backend);
  int count = device.count.load(std::memory_order_acquire);
  if (count >= 0) return count;
  const MicaDeviceTable* table = LiveDeviceTable(backend);
  if (!table) return 0;
  int32_t answer = 0;
  ThrowIfError(table->count(table->context, &answer));
  device.count.store(answer, std::memory_order_release);
  return answer;
}

namespace {

// A plugin without devices may say why: as its answer about the device that it has not.
std::string WhyNone(const MicaDeviceTable& table) {
  MicaDeviceProperties unused{};
  unused.struct_size = sizeof(unused);
  try {
    ThrowIfError(table.properties(table.context, 0, &unused));
  } catch (const Error& error) {
    return absl::StrCat(" ", error.message());
  }
  return "";
}

}  // namespace

const MicaDeviceTable& DeviceTableOf(Device device) {
  const MicaDeviceTable* table = LiveDeviceTable(device.backend);
  MICA_CHECK(table || !At(device.backend).forked, "The device (", device.ToString(),
             ") was used before this process was forked, which its driver does not survive; start processes "
             "with the method spawn, or fork before the device is used.");
  MICA_CHECK(table, "The device (", device.ToString(), ") has no device table. ",
             MissingProviderSentence(absl::StrCat("backend:", BackendName(device.backend))));
  const int count = DeviceCount(device.backend);
  MICA_CHECK(device.index >= 0 && device.index < count, "The device (", device.ToString(),
             ") does not exist; the backend (", BackendName(device.backend), ") has (", count,
             ") devices, numbered from 0.", count == 0 ? WhyNone(*table) : "");
  return *table;
}

DeviceProperties PropertiesOf(Device device) {
  const MicaDeviceTable& table = DeviceTableOf(device);
  MicaDeviceProperties raw{};
  raw.struct_size = sizeof(raw);
  raw.total_memory = raw.free_memory = -1;
  RaiseReported(device, table.properties(table.context, device.index, &raw));
  return {raw.name ? raw.name : "", raw.total_memory,
          raw.free_memory,          raw.architecture ? raw.architecture : "",
          raw.multiprocessors,      raw.warp_size};
}

std::optional<int64_t> AttributeOf(Device device, std::string_view key) {
  if (device.backend < 2) return std::nullopt;
  const MicaDeviceTable& table = DeviceTableOf(device);
  if (!table.attribute) return std::nullopt;
  int64_t number = 0;
  const MicaStatus status =
      table.attribute(table.context, device.index, {key.data(), static_cast<int64_t>(key.size())}, &number);
  if (Declined(status)) return std::nullopt;
  RaiseReported(device, status);
  return number;
}

bool CanAccessPeer(Device device, Device peer) {
  MICA_CHECK_VALUE(device.backend == peer.backend, "The devices (", device.ToString(), ") and (",
                   peer.ToString(), ") are of two backends, which do not reach each other's memory.");
  const MicaDeviceTable& table = DeviceTableOf(device);
  static_cast<void>(DeviceTableOf(peer));  // that it exists
  if (!table.peer_access || device == peer) return false;
  int32_t can = 0;
  RaiseReported(device, table.peer_access(table.context, device.index, peer.index, &can));
  return can != 0;
}

void DeviceGuard::Enter(Device device) {
  if (DeviceCount(device.backend) < 2) return;
  const MicaDeviceTable& table = DeviceTableOf(device);
  RaiseReported(device, table.exchange_device(table.context, device.index, &before_));
  backend_ = device.backend;
  if (before_ != device.index) table_ = &table;
}

void DeviceGuard::Leave() {
  int32_t ours = 0;
  const MicaStatus status = table_->exchange_device(table_->context, before_, &ours);
  KeepLate({backend_, static_cast<int16_t>(before_)}, status);
}

namespace {
// Makes a device current in the driver, and returns which was; the number itself where the driver has no say:
// with one device, after its end, or when it fails, as the next call then says.
int ExchangeInDriver(int backend, int number) {
  const MicaDeviceTable* const table = LiveDeviceTable(backend);
  if (!table || DeviceCount(backend) < 2) return number;
  int32_t before = number;
  const MicaStatus failed = table->exchange_device(table->context, number, &before);
  DropStatus(failed);
  return failed ? number : before;
}

// Set when libmica is opened: names of devices are asked for from then on.
[[maybe_unused]] const bool g_hooks_set = [] {
  SetDeviceHooks(
      {[](std::string_view name) { return EnsureProvider(absl::StrCat("backend:", std::string(name))); },
       &DeviceCount, &ExchangeInDriver});
  return true;
}();
}  // namespace

void SetParallelFor(HostParallelFor f) { g_parallel_for.store(f); }
HostParallelFor GetParallelFor() { return g_parallel_for.load(std::memory_order_acquire); }

}  // namespace mica
