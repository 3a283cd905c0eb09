// The table of backend names. An entry is written once and never changes or
// goes, so readers only load the count; writers hold a mutex.
#include "tensor/device.h"

#include <array>
#include <atomic>
#include <charconv>
#include <mutex>

#include "tensor/error.h"
#include "tensor/key_set.h"

namespace mica {

namespace {

constexpr int32_t kExtensionDevice = 12;

struct NameTable {
  std::mutex mutex;
  std::atomic<int> count{2};
  std::array<std::string, keys::kBackendCount> names{"cpu", "meta"};
  std::array<std::atomic<int32_t>, keys::kBackendCount> dlpack_types{1, kExtensionDevice};
};

NameTable& Table() {
  static NameTable* table = new NameTable();  // never destroyed: threads may outlive statics
  return *table;
}

int32_t DlpackTypeOfName(std::string_view name) {
  return name == "cuda"     ? 2
         : name == "opencl" ? 4
         : name == "vulkan" ? 7
         : name == "metal"  ? 8
         : name == "rocm"   ? 10
                            : kExtensionDevice;
}

std::string KnownBackends() {
  std::string out;
  for (int i = 0; i < BackendNameCount(); ++i) absl::StrAppend(&out, i ? ", " : "", BackendName(i));
  return out;
}

absl::string_view ToAbsl(std::string_view s) { return {s.data(), s.size()}; }

// Letters, digits, '_', '-' and '.', not beginning with a digit: "acme.npu".
bool IsBackendName(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (char c : name) {
    const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                    c == '-' || c == '.';
    if (!ok) return false;
  }
  return true;
}

std::atomic<bool (*)(std::string_view)> g_open{nullptr};
std::atomic<int (*)(int)> g_count{nullptr};
std::atomic<int (*)(int, int)> g_exchange{nullptr};
DeviceHooks Hooks() { return {g_open.load(), g_count.load(), g_exchange.load()}; }

thread_local std::array<int16_t, keys::kBackendCount> t_current{};

}  // namespace

void SetDeviceHooks(const DeviceHooks& hooks) {
  g_open.store(hooks.open);
  g_count.store(hooks.count);
  g_exchange.store(hooks.exchange);
}

// A driver has one function for both, so that asking is to set what was current last, and mostly still is.
int CurrentDeviceNumber(int backend) {
  int16_t& last = t_current[static_cast<size_t>(backend)];
  const auto exchange = g_exchange.load();
  const int now = exchange ? exchange(backend, last) : last;
  if (now != last) {
    exchange(backend, now);
    last = static_cast<int16_t>(now);
  }
  return now;
}
void SetCurrentDeviceNumber(Device device) {
  if (const auto exchange = g_exchange.load()) exchange(device.backend, device.index);
  t_current[static_cast<size_t>(device.backend)] = device.index;
}

int BackendNameCount() { return Table().count.load(std::memory_order_acquire); }

const std::string& BackendName(int index) {
  MICA_INTERNAL(index >= 0 && index < BackendNameCount(), "the backend index (", index,
                ") is outside the table of ", BackendNameCount(), " backends.");
  return Table().names[index];
}

int BackendIndex(std::string_view name) {
  NameTable& table = Table();
  const int count = table.count.load(std::memory_order_acquire);
  for (int i = 0; i < count; ++i) {
    if (table.names[i] == name) return i;
  }
  return -1;
}

int RegisterBackendName(std::string_view name) {
  MICA_CHECK_VALUE(IsBackendName(name), "The backend name (", ToAbsl(name),
                   ") is not made of letters, digits, '_', '-' and '.', beginning with a letter.");
  NameTable& table = Table();
  std::lock_guard<std::mutex> lock(table.mutex);
  const int known = BackendIndex(name);
  if (known >= 0) return known;
  const int count = table.count.load(std::memory_order_relaxed);
  MICA_CHECK(count < keys::kBackendCount, "The backend (", ToAbsl(name), ") finds all ", keys::kBackendCount,
             " places taken (", KnownBackends(), ").");
  table.names[count] = std::string(name);
  table.dlpack_types[count].store(DlpackTypeOfName(name), std::memory_order_relaxed);
  table.count.store(count + 1, std::memory_order_release);
  return count;
}

int32_t DlpackTypeOf(int backend) {
  return Table().dlpack_types[static_cast<size_t>(backend)].load(std::memory_order_relaxed);
}
void SetDlpackType(int backend, int32_t type) {
  Table().dlpack_types[static_cast<size_t>(backend)].store(type, std::memory_order_relaxed);
}

std::string Device::ToString() const {
  const std::string& name = BackendName(backend);
  return is_cpu() || is_meta() ? name : absl::StrCat(name, ":", index);
}

Device Device::Parse(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  int index = -1;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    MICA_CHECK(error == std::errc() && end == digits.data() + digits.size() && index >= 0 && index < 32768,
               "The device (", ToAbsl(text),
               ") has an index that is no number from 0 to 32767; expected the form",
               " \"cpu\" or \"cuda:1\".");
  }
  const DeviceHooks hooks = Hooks();
  int backend = BackendIndex(name);
  if (backend < 0 && hooks.open && hooks.open(name)) backend = BackendIndex(name);
  MICA_CHECK(backend >= 0, "The device (", ToAbsl(text), ") names an unknown backend (", ToAbsl(name),
             "); the known ones are: ", KnownBackends(),
             ". A device comes with its plugin: `mica doctor` says where plugins are looked for and what "
             "became of each.");
  if (backend <= keys::kMeta) return {static_cast<int16_t>(backend), 0};  // "cpu:3" is the CPU
  const int count = hooks.count ? hooks.count(backend) : 0;  // opens the plugin, which knows the current one
  if (index < 0) index = CurrentDeviceNumber(backend);
  if (hooks.count) {
    MICA_CHECK(index < count || count == 0, "The device (", ToAbsl(text), ") does not exist; the backend (",
               BackendName(backend), ") has (", count, ") devices, numbered from 0.");
  }
  return {static_cast<int16_t>(backend), static_cast<int16_t>(index)};
}

}  // namespace mica
