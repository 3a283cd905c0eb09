// What the layer Batched tells about itself, and what plugins tell it about their operators.
#include "dispatcher/layers/batching.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "dispatcher/plugins/plugins.h"
#include "dispatcher/registration/extensions.h"
#include "tensor/error.h"

namespace mica::frames {
namespace {
const std::atomic<const void*>& g_place = ExtensionPlace(kBatchingExtension);

struct PluginRules {
  std::mutex mutex;
  absl::flat_hash_map<std::string, std::string> by_operator;
};
PluginRules& Rules() {
  static auto& rules = *new PluginRules();
  return rules;
}
}  // namespace

const char* BatchRuleOf(const Operator& op) {
  const auto* layer = static_cast<const BatchingLayer*>(ProvidedExtension(g_place, "layer:vmap"));
  MICA_CHECK(layer, "vmap needs the batched plugin. ", MissingProviderSentence("layer:vmap"));
  return layer->rule_source(op);
}

void SetPluginBatchRule(std::string_view op, std::string rule) {
  PluginRules& rules = Rules();
  const std::lock_guard lock(rules.mutex);
  rules.by_operator[std::string(op)] = std::move(rule);
}

std::string PluginBatchRule(std::string_view op) {
  PluginRules& rules = Rules();
  const std::lock_guard lock(rules.mutex);
  const auto found = rules.by_operator.find(std::string(op));
  return found == rules.by_operator.end() ? "" : found->second;
}

}  // namespace mica::frames
