#include "mica/dispatcher/devices.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "mica/dispatcher/status.h"
#include "mica/tensor/allocator.h"
#include "mica/tensor/device.h"
#include "mica/tensor/key_set.h"

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

// The raw memory of a plugin's device.
class PluginMemory : public RawMemory {
 public:
  explicit PluginMemory(const MicaDeviceTable& table) : table_(table) {}
  void* Allocate(int index, int64_t size) override {
    void* data = nullptr;
    const MicaStatus s = table_.allocate(table_.context, index, size, &data);
    if (!s) return data;
    if (!IsBareCode(s)) s->destroy(s);
    return nullptr;
  }
  void Free(int index, void* data, int64_t size) override {
    const MicaStatus s = table_.free(table_.context, index, data, size);
    if (s && !IsBareCode(s)) s->destroy(s);
  }

 private:
  const MicaDeviceTable& table_;
};

std::array<std::atomic<const MicaDeviceTable*>, keys::kBackendCount> g_tables{};
std::atomic<HostParallelFor> g_parallel_for{nullptr};

}  // namespace

absl::Status CheckDeviceTable(const char* name, const MicaDeviceTable* table) {
  if (!name || !table)
    return absl::InvalidArgumentError("A device was registered without a name or without a table.");
  if (table->struct_size >= offsetof(MicaDeviceTable, context) && table->major != MICA_ABI_MAJOR)
    return absl::InvalidArgumentError(absl::StrCat("The device table of (", name, ") speaks ABI major (",
                                                   table->major, "); this Mica speaks (", MICA_ABI_MAJOR,
                                                   ")."));
  for (const MandatoryField& f : kMandatory) {
    const bool inside = f.offset + sizeof(void*) <= table->struct_size;
    const auto* slot = reinterpret_cast<void* const*>(reinterpret_cast<const char*>(table) + f.offset);
    if (!inside || !*slot)
      return absl::InvalidArgumentError(
          absl::StrCat("The device table of (", name, ") lacks the mandatory function `", f.name, "`."));
  }
  return absl::OkStatus();
}

absl::Status RegisterDeviceTable(const char* name, const MicaDeviceTable* table) {
  if (absl::Status s = CheckDeviceTable(name, table); !s.ok()) return s;
  const int backend = RegisterBackendName(name);
  // A table of an older minor is shorter: copy what there is, the rest is NULL.
  auto copy = std::make_unique<MicaDeviceTable>();
  __builtin_memset(copy.get(), 0, sizeof(MicaDeviceTable));
  __builtin_memcpy(copy.get(), table, std::min<size_t>(table->struct_size, sizeof(MicaDeviceTable)));
  copy->struct_size = sizeof(MicaDeviceTable);
  // Tables live as long as the process, as plugins do: memory may outlive use.
  const MicaDeviceTable* kept = copy.release();
  g_tables[static_cast<size_t>(backend)].store(kept, std::memory_order_release);
  if (backend != keys::kCpu) RegisterRawMemory(backend, new PluginMemory(*kept));
  return absl::OkStatus();
}

const MicaDeviceTable* DeviceTable(int backend) {
  return backend >= 0 && backend < keys::kBackendCount
             ? g_tables[static_cast<size_t>(backend)].load(std::memory_order_acquire)
             : nullptr;
}

void SetParallelFor(HostParallelFor f) { g_parallel_for.store(f); }
HostParallelFor GetParallelFor() { return g_parallel_for.load(std::memory_order_acquire); }

}  // namespace mica
