#include "dispatcher/tables/keys.h"

#include <array>
#include <atomic>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensor/device.h"

namespace mica {
namespace {

constexpr int kFirstLayer = keys::kBackendCount;

struct LayerTable {
  std::mutex mutex;
  std::array<std::string, 64> names;
  LayerTable() {
#define X(bit, name, does) names[bit] = #name;
    MICA_FORALL_LAYERS(X)
#undef X
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

#define X(bit, name, does) | KeySet::Of(bit)
constexpr KeySet kWellKnown = KeySet() MICA_FORALL_LAYERS(X);
#undef X

// The bits that a neighbour's name stands for: one, or those of all frames.
struct Neighbour {
  int highest, lowest;
};

absl::StatusOr<Neighbour> FindNeighbour(const LayerTable& table, std::string_view layer,
                                        const std::string& neighbour) {
  if (absl::EqualsIgnoreCase(neighbour, "frames")) return Neighbour{keys::kFrame, keys::kFrameEscape};
  std::string known;
  for (int i = 63; i >= kFirstLayer; --i) {
    const std::string& name = table.names[i];
    if (!name.empty() && absl::EqualsIgnoreCase(name, neighbour) && name != layer) return Neighbour{i, i};
    if (!name.empty() && name != layer) absl::StrAppend(&known, known.empty() ? "" : ", ", name);
  }
  return absl::NotFoundError(absl::StrCat("Layer (", std::string(layer), ") names an unknown neighbour (",
                                          neighbour, "); known layers are frames, ", known, "."));
}

absl::Status Cycle(std::string_view name, const LayerPlace& place, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "Layer (", std::string(name), ") asks to stand after (", place.after.empty() ? "the top" : place.after,
      ") and before (", place.before.empty() ? "the backends" : place.before,
      "), which makes a cycle: ", std::string(why),
      " `after` names what is nearer to the user, `before` what is nearer to the backend."));
}

}  // namespace

absl::StatusOr<int> RegisterLayer(std::string_view name, const LayerPlace& place) {
  LayerTable& table = Table();
  std::lock_guard lock(table.mutex);
  int above = 64, below = kFirstLayer - 1;
  if (!place.after.empty()) {
    const absl::StatusOr<Neighbour> found = FindNeighbour(table, name, place.after);
    if (!found.ok()) return found.status();
    above = found->lowest;
  }
  if (!place.before.empty()) {
    const absl::StatusOr<Neighbour> found = FindNeighbour(table, name, place.before);
    if (!found.ok()) return found.status();
    below = found->highest;
  }
  if (below >= above)
    return Cycle(name, place, absl::StrCat(place.after, " stands after ", place.before, "."));
  if (const int bit = table.Find(name); bit >= 0) {
    if (bit < above && bit > below) return bit;
    return Cycle(name, place, absl::StrCat(std::string(name), " has a place already, which is not there."));
  }
  // The middle of the gap first, so that later layers find room on both sides.
  const int middle = (above + below) / 2;
  for (int distance = 0; distance < 64; ++distance) {
    for (int bit : {middle - distance, middle + distance}) {
      if (bit > below && bit < above && bit >= kFirstLayer && bit < 64 && table.names[bit].empty()) {
        table.names[bit] = std::string(name);
        return bit;
      }
    }
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("No bit is free for layer (", std::string(name), ") between (",
                   place.after.empty() ? "the top" : place.after, ") and (",
                   place.before.empty() ? "the backends" : place.before, "), where ", above - below - 1,
                   " bits are taken; name neighbours that stand further apart."));
}

void ReleaseLayer(std::string_view name) {
  LayerTable& table = Table();
  std::lock_guard lock(table.mutex);
  const int bit = table.Find(name);
  if (bit >= 0 && !kWellKnown.has(bit)) table.names[bit].clear();
}

bool IsThirdPartyLayer(int bit) {
  if (bit < kFirstLayer || bit > 63 || kWellKnown.has(bit)) return false;
  LayerTable& table = Table();
  std::lock_guard lock(table.mutex);
  return !table.names[bit].empty();
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

std::string_view LayerDoes(int bit) {
  switch (bit) {
#define X(own, name, does) \
  case own:                \
    return does;
    MICA_FORALL_LAYERS(X)
#undef X
  }
  return "";
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
