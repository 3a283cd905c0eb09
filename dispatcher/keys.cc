#include "mica/dispatcher/keys.h"

#include <array>
#include <atomic>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "mica/dispatcher/frames.h"
#include "mica/tensor/device.h"

namespace mica {
namespace {

constexpr int kFirstLayer = keys::kBackendCount;

struct LayerTable {
  std::mutex mutex;
  std::array<std::string, 64> names;
  LayerTable() {
    names[keys::kFunctionMode] = "FunctionMode";
    names[keys::kAutocast] = "Autocast";
    names[keys::kFrame] = "Frame";
    names[keys::kFrameEscape] = "FrameEscape";
    names[keys::kAutograd] = "Autograd";
    names[keys::kFrameBelow] = "FrameBelow";
    names[keys::kDispatchMode] = "DispatchMode";
    names[keys::kPythonSubclass] = "PythonSubclass";
  }
  int Find(std::string_view name) const {
    for (int i = kFirstLayer; i < 64; ++i)
      if (names[i] == name) return i;
    return -1;
  }
};

LayerTable& Table() {
  static LayerTable* table = new LayerTable();
  return *table;
}

absl::StatusOr<int> BitOfNeighbour(const LayerTable& table, std::string_view layer,
                                   const std::string& neighbour, int none) {
  if (neighbour.empty()) return none;
  const int bit = table.Find(neighbour);
  if (bit >= 0) return bit;
  std::string known;
  for (int i = 63; i >= kFirstLayer; --i)
    if (!table.names[i].empty()) absl::StrAppend(&known, known.empty() ? "" : ", ", table.names[i]);
  return absl::NotFoundError(absl::StrCat("Layer (", std::string(layer), ") names an unknown neighbour (",
                                          neighbour, "); known layers are ", known, "."));
}

}  // namespace

absl::StatusOr<int> RegisterLayer(std::string_view name, const LayerPlace& place) {
  LayerTable& table = Table();
  std::lock_guard lock(table.mutex);
  if (const int bit = table.Find(name); bit >= 0) return bit;
  const absl::StatusOr<int> above = BitOfNeighbour(table, name, place.after, 64);
  if (!above.ok()) return above.status();
  const absl::StatusOr<int> below = BitOfNeighbour(table, name, place.before, kFirstLayer - 1);
  if (!below.ok()) return below.status();
  if (*below >= *above) {
    return absl::InvalidArgumentError(absl::StrCat("Layer (", std::string(name), ") asks to stand after (",
                                                   place.after, ") and before (", place.before, "), but ",
                                                   place.after, " already stands after ", place.before, "."));
  }
  // The middle of the gap first, so that later layers find room on both sides.
  const int middle = (*above + *below) / 2;
  for (int distance = 0; distance < 64; ++distance) {
    for (int bit : {middle - distance, middle + distance}) {
      if (bit > *below && bit < *above && bit >= kFirstLayer && bit < 64 && table.names[bit].empty()) {
        table.names[bit] = std::string(name);
        return bit;
      }
    }
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("No bit is free for layer (", std::string(name), ") between (",
                   place.after.empty() ? "the top" : place.after, ") and (",
                   place.before.empty() ? "the backends" : place.before, ")."));
}

int LayerBit(std::string_view name) {
  LayerTable& table = Table();
  std::lock_guard lock(table.mutex);
  return table.Find(name);
}

int KeyBit(std::string_view name) {
  const int layer = LayerBit(name);
  return layer >= 0 ? layer : BackendIndex(name);
}

std::string KeyName(int bit) {
  if (bit < kFirstLayer) return bit < BackendNameCount() ? BackendName(bit) : absl::StrCat("bit ", bit);
  LayerTable& table = Table();
  std::lock_guard lock(table.mutex);
  return table.names[bit].empty() ? absl::StrCat("bit ", bit) : table.names[bit];
}

std::string ToString(KeySet keys) {
  std::string text;
  for (int bit = 63; bit >= 0; --bit)
    if (keys.has(bit)) absl::StrAppend(&text, text.empty() ? "" : ", ", KeyName(bit));
  return text;
}

std::vector<int> LayersHighestFirst() {
  LayerTable& table = Table();
  std::lock_guard lock(table.mutex);
  std::vector<int> bits;
  for (int bit = 63; bit >= kFirstLayer; --bit)
    if (!table.names[bit].empty()) bits.push_back(bit);
  return bits;
}

}  // namespace mica
