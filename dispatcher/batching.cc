// The one thing that the layer Batched tells about itself: where its rules come from.
#include "mica/dispatcher/batching.h"

#include <atomic>

#include "mica/dispatcher/plugins.h"
#include "mica/tensor/error.h"

namespace mica::frames {
namespace {
std::atomic<BatchRuleSource> g_source{nullptr};
}  // namespace

void SetBatchRuleSource(BatchRuleSource source) { g_source.store(source, std::memory_order_release); }

const char* BatchRuleOf(const Operator& op) {
  if (!g_source.load(std::memory_order_acquire)) EnsureProvider("layer:vmap");
  const BatchRuleSource source = g_source.load(std::memory_order_acquire);
  MICA_CHECK(source, "vmap needs the batched plugin. ", MissingProviderSentence("layer:vmap"));
  return source(op);
}

}  // namespace mica::frames
