#include "dispatcher/layers/autocast.h"

#include <atomic>
#include <string_view>

#include "dispatcher/calls/thread_state.h"
#include "dispatcher/plugins/plugins.h"
#include "dispatcher/registration/extensions.h"
#include "tensor/error.h"

namespace mica {
namespace {

const std::atomic<const void*>& g_place = ExtensionPlace(kAutocastExtension);

const AutocastLayer& Layer() {
  const auto* layer = static_cast<const AutocastLayer*>(ProvidedExtension(g_place, "layer:Autocast"));
  MICA_CHECK(layer, "Autocast needs the autocast plugin. ", MissingProviderSentence("layer:Autocast"));
  return *layer;
}

// The policies are the context itself: one byte each.
void* Packed(AutocastPolicies p) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(p.cpu) | static_cast<uintptr_t>(p.other) << 8);
}

void Run(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
         MicaValue* results) {
  Layer().run(k, op, keys, args, n, results);
}

void SetEnabled(uint32_t backends) {
  CurrentAutocast().enabled = backends;
  const KeySet key = KeySet::Of(keys::kAutocast);
  ThreadState& thread = CurrentThread();
  thread.include = backends ? thread.include | key : thread.include - key;
}

}  // namespace

AutocastState::AutocastState() {
  dtypes.fill(DType::kF16);
  dtypes[keys::kCpu] = DType::kBF16;
}

AutocastState& CurrentAutocast() {
  thread_local AutocastState state;
  return state;
}

AutocastPolicy AutocastPolicyNamed(const char* name) {
  const std::string_view text = name ? name : "";
  return text == "lower"     ? AutocastPolicy::kLower
         : text == "float32" ? AutocastPolicy::kFloat32
         : text == "promote" ? AutocastPolicy::kPromote
                             : AutocastPolicy::kNone;
}

void SetAutocastEnabled(int backend, bool enabled) {
  if (enabled) Layer();
  const uint32_t bit = uint32_t{1} << backend, all = CurrentAutocast().enabled;
  SetEnabled(enabled ? all | bit : all & ~bit);
}

void SetAutocastDType(int backend, DType dtype) {
  MICA_CHECK_VALUE(dtype == DType::kF16 || dtype == DType::kBF16, "The dtype (", Name(dtype),
                   ") of autocast is not one that it casts to; expected float16 or bfloat16.");
  CurrentAutocast().dtypes[static_cast<size_t>(backend)] = dtype;
}

int EnterAutocast() { return ++CurrentAutocast().depth; }
int LeaveAutocast() {
  const int depth = --CurrentAutocast().depth;
  if (depth == 0) ClearAutocastCache();
  return depth;
}
void ClearAutocastCache() {
  if (const void* table = g_place.load(std::memory_order_acquire))
    static_cast<const AutocastLayer*>(table)->clear_cache();
}

BoxedKernel AutocastKernel(AutocastPolicies policies) { return {&Run, Packed(policies), nullptr}; }

NoAutocast::NoAutocast() : enabled_(CurrentAutocast().enabled) { SetEnabled(0); }
NoAutocast::~NoAutocast() { SetEnabled(enabled_); }

}  // namespace mica
