#include "dispatcher/registration/extensions.h"

#include <mutex>
#include <string>

#include "absl/container/node_hash_map.h"
#include "dispatcher/plugins/plugins.h"

namespace mica {
namespace {

std::atomic<const void*>& PlaceOf(std::string_view name) {
  static auto& mutex = *new std::mutex();
  static auto& places = *new absl::node_hash_map<std::string, std::atomic<const void*>>();
  const std::lock_guard lock(mutex);
  return places[std::string(name)];
}

}  // namespace

const std::atomic<const void*>& ExtensionPlace(std::string_view name) { return PlaceOf(name); }

const void* ProvidedExtension(const std::atomic<const void*>& place, std::string_view provides) {
  if (const void* table = place.load(std::memory_order_acquire)) return table;
  EnsureProvider(provides);
  return place.load(std::memory_order_acquire);
}

void PublishExtension(std::string_view name, const void* table) {
  PlaceOf(name).store(table, std::memory_order_release);
}

}  // namespace mica
