// The place of the table is looked up once: tensors' attributes are read through it.
#include "dispatcher/layers/autograd_table.h"

#include "dispatcher/registration/layer_table.h"

namespace mica {
namespace {
const std::atomic<const void*>& g_place = ExtensionPlace(MICA_AUTOGRAD_EXTENSION);
}  // namespace

const MicaAutograd* LoadedAutogradTable() {
  const void* table = g_place.load(std::memory_order_acquire);
  return table && IsOurTable<MicaAutograd>(*static_cast<const MicaTable*>(table))
             ? static_cast<const MicaAutograd*>(table)
             : nullptr;
}

const MicaAutograd& AutogradTable() {
  if (const MicaAutograd* loaded = LoadedAutogradTable()) return *loaded;
  return LayerTable<MicaAutograd>(MICA_AUTOGRAD_EXTENSION, "layer:Autograd",
                                  "Gradients need the autograd plugin.");
}

}  // namespace mica
