// The pointer to the layer's constructor, and its opening on first use.
#include "dispatcher/layers/functionalization.h"

#include <atomic>

#include "dispatcher/plugins/plugins.h"
#include "dispatcher/registration/extensions.h"
#include "tensor/error.h"

namespace mica {
namespace {
const std::atomic<const void*>& g_place = ExtensionPlace(kFunctionalizationExtension);
}  // namespace

std::unique_ptr<Functionalization> Functionalize(bool remove_views) {
  const auto* layer =
      static_cast<const FunctionalizationLayer*>(ProvidedExtension(g_place, "layer:functionalize"));
  MICA_CHECK(layer, "functionalize needs the functionalize plugin. ",
             MissingProviderSentence("layer:functionalize"));
  return layer->make(remove_views);
}

}  // namespace mica
