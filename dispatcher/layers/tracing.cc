// The tape's values, and the way from the binding to the layer Trace.
#include "dispatcher/layers/tracing.h"

#include <atomic>

#include "dispatcher/plugins/plugins.h"
#include "tensor/error.h"

namespace mica::frames {
namespace {
std::atomic<TraceEntry> g_entry{nullptr};
}  // namespace

int64_t Tape::NewValue(const Tensor& wrapper) {
  values.push_back({wrapper.dtype(), wrapper.device(), Dims(wrapper.sizes().begin(), wrapper.sizes().end()),
                    Dims(wrapper.strides().begin(), wrapper.strides().end())});
  return static_cast<int64_t>(values.size());
}

void SetTraceEntry(TraceEntry entry) { g_entry.store(entry, std::memory_order_release); }

Tensor EnterTrace(const Tensor& t, bool as_input) {
  const TraceEntry entry = g_entry.load(std::memory_order_acquire);
  MICA_INTERNAL(entry, "a trace is current while its layer is not loaded.");
  return entry(t, as_input);
}

int TraceKind() {
  static const int kind = [] {
    EnsureProvider("layer:trace");
    return KindNumber("trace");
  }();
  MICA_CHECK(kind >= 0, "make_fx needs the trace plugin. ", MissingProviderSentence("layer:trace"));
  return kind;
}

}  // namespace mica::frames
