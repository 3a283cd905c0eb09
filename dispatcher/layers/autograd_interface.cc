// The pointer to the autograd plugin's table, and its opening on first use.
#include "dispatcher/layers/autograd_interface.h"

#include "dispatcher/plugins/plugins.h"

namespace mica {
namespace {
std::atomic<AutogradInterface*> g_autograd{nullptr};
}  // namespace

void SetAutogradInterface(AutogradInterface* autograd) {
  g_autograd.store(autograd, std::memory_order_release);
}

AutogradInterface* LoadedAutogradInterface() { return g_autograd.load(std::memory_order_acquire); }

AutogradInterface& GetAutogradInterface() {
  if (AutogradInterface* a = LoadedAutogradInterface()) return *a;
  EnsureProvider("layer:Autograd");
  AutogradInterface* a = LoadedAutogradInterface();
  MICA_CHECK(a, "Gradients need the autograd plugin. ", MissingProviderSentence("layer:Autograd"));
  return *a;
}

}  // namespace mica
