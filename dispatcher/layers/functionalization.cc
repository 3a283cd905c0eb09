// The pointer to the layer's constructor, and its opening on first use.
#include "dispatcher/layers/functionalization.h"

#include <atomic>

#include "dispatcher/plugins/plugins.h"
#include "tensor/error.h"

namespace mica {
namespace {
std::atomic<MakeFunctionalization> g_make{nullptr};
}  // namespace

void SetFunctionalization(MakeFunctionalization make) { g_make.store(make, std::memory_order_release); }

std::unique_ptr<Functionalization> Functionalize(bool remove_views) {
  if (!g_make.load(std::memory_order_acquire)) EnsureProvider("layer:functionalize");
  const MakeFunctionalization make = g_make.load(std::memory_order_acquire);
  MICA_CHECK(make, "functionalize needs the functionalize plugin. ",
             MissingProviderSentence("layer:functionalize"));
  return make(remove_views);
}

}  // namespace mica
