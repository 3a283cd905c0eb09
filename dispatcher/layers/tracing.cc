// The tape's values, and the way from the binding to the layer Trace.
#include "dispatcher/layers/tracing.h"

#include <atomic>

#include "dispatcher/registration/extensions.h"
#include "tensor/error.h"

namespace mica::frames {
namespace {
const std::atomic<const void*>& g_place = ExtensionPlace(kTracingExtension);
}  // namespace

int64_t Tape::NewValue(const Tensor& wrapper) {
  values.push_back({wrapper.dtype(), wrapper.device(), Dims(wrapper.sizes().begin(), wrapper.sizes().end()),
                    Dims(wrapper.strides().begin(), wrapper.strides().end())});
  return static_cast<int64_t>(values.size());
}

Tensor EnterTrace(const Tensor& t, bool as_input) {
  const auto* layer = static_cast<const TracingLayer*>(g_place.load(std::memory_order_acquire));
  MICA_CHECK(layer,
             "A trace is current, and its plugin is disabled. Put it back by mica.enable_plugin(\"trace\").");
  return layer->enter(t, as_input);
}

}  // namespace mica::frames
