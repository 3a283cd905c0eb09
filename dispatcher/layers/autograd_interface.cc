// The pointer to the autograd plugin's table, and its opening on first use.
#include "dispatcher/layers/autograd_interface.h"

#include "dispatcher/plugins/plugins.h"
#include "dispatcher/registration/extensions.h"

namespace mica {
namespace {
const std::atomic<const void*>& g_place = ExtensionPlace(kAutogradExtension);

// An object of the plugin's, which it offers as a constant address.
AutogradInterface* Interface(const void* table) {
  return static_cast<AutogradInterface*>(const_cast<void*>(table));
}
}  // namespace

AutogradInterface* LoadedAutogradInterface() { return Interface(g_place.load(std::memory_order_acquire)); }

AutogradInterface& GetAutogradInterface() {
  const void* table = ProvidedExtension(g_place, "layer:Autograd");
  MICA_CHECK(table, "Gradients need the autograd plugin. ", MissingProviderSentence("layer:Autograd"));
  return *Interface(table);
}

}  // namespace mica
