// Names of the 64 key bits: backends (0-23) by tensor/device.h, layers (24-63)
// here. Mica's own have fixed places (tensor/key_set.h); a third party's says which layers
// it stands `after` (below) and `before` (above) and gets a free bit between.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/key_set.h"

namespace mica {

struct LayerPlace {
  std::string after;   // nearer to the user than the new layer; "" for no bound
  std::string before;  // nearer to the backend; "" for no bound
};

// The bit of a new layer, or of the old one of that name, which must stand where it
// asks to. Errors name the neighbour that is unknown, the cycle, or that no bit is
// free between the two.
absl::StatusOr<int> RegisterLayer(std::string_view name, const LayerPlace& place);
// Takes back a layer that nobody has used: its plugin failed to start.
void ReleaseLayer(std::string_view name);
bool IsThirdPartyLayer(int bit);      // registered, and none of Mica's own
int LayerBit(std::string_view name);  // -1 if unknown
int KeyBit(std::string_view name);    // of a layer or a backend, -1 if unknown
std::string KeyName(int bit);         // "Autograd", "cpu", "bit 37"
std::string_view LayerDoes(int bit);  // in a few words, of Mica's own layers; "" of others
std::string ToString(KeySet keys);    // "Autograd, cpu", highest first
std::vector<int> LayersHighestFirst();

}  // namespace mica
