#include "dispatcher/registration/extensions.h"

#include <mutex>

#include "absl/container/node_hash_map.h"
#include "absl/strings/str_cat.h"
#include "dispatcher/plugins/plugins.h"

namespace mica {
namespace {

struct Place {
  std::atomic<const void*> table = nullptr;
  // With the mutex:
  std::string owner;
};

struct Places {
  std::mutex mutex;
  absl::node_hash_map<std::string, Place> by_name;
};
Places& GetPlaces() {
  static auto& places = *new Places();
  return places;
}

const MicaTable* OfferedNow(std::string_view name) {
  Places& places = GetPlaces();
  const std::lock_guard lock(places.mutex);
  const auto found = places.by_name.find(std::string(name));
  if (found == places.by_name.end()) return nullptr;
  return static_cast<const MicaTable*>(found->second.table.load(std::memory_order_acquire));
}

}  // namespace

const std::atomic<const void*>& ExtensionPlace(std::string_view name) {
  Places& places = GetPlaces();
  const std::lock_guard lock(places.mutex);
  return places.by_name[std::string(name)].table;
}

const void* ProvidedExtension(const std::atomic<const void*>& place, std::string_view provides) {
  if (const void* table = place.load(std::memory_order_acquire)) return table;
  EnsureProvider(provides);
  return place.load(std::memory_order_acquire);
}

const MicaTable* PublicExtension(std::string_view name, uint32_t minimum_minor) {
  const MicaTable* table = OfferedNow(name);
  if (!table) {
    EnsureProvider(absl::StrCat("extension:", std::string(name)));
    table = OfferedNow(name);
  }
  return table && table->minor >= minimum_minor ? table : nullptr;
}

std::string ExtensionOwner(std::string_view name) {
  Places& places = GetPlaces();
  const std::lock_guard lock(places.mutex);
  const auto found = places.by_name.find(std::string(name));
  return found == places.by_name.end() ? "" : found->second.owner;
}

void PublishExtension(const Extension& extension, std::string_view owner) {
  Places& places = GetPlaces();
  const std::lock_guard lock(places.mutex);
  Place& place = places.by_name[extension.name];
  place.owner = owner;
  place.table.store(extension.table, std::memory_order_release);
}

void WithdrawExtension(const Extension& extension) { PublishExtension({extension.name, nullptr}, ""); }

}  // namespace mica
