// Boxed calls, and the context that an error gets on its way out.
#include "dispatcher/tables/operator.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/object_check.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/calls/typed_operator_impl.h"
#include "dispatcher/explain/explain.h"

namespace mica {

const schema::FunctionSchema& Operator::Parse() const {
  absl::StatusOr<schema::FunctionSchema> parsed = schema::Parse(spec_->schema);
  MICA_INTERNAL(parsed.ok(), std::string(parsed.status().message()));
  const std::string_view full = spec_->name;
  if (const size_t colons = full.find("::"); colons != std::string_view::npos && parsed->ns.empty())
    parsed->ns = std::string(full.substr(0, colons));
  auto fresh = std::make_unique<const schema::FunctionSchema>(*std::move(parsed));
  const schema::FunctionSchema* expected = nullptr;
  if (schema_.compare_exchange_strong(expected, fresh.get(), std::memory_order_acq_rel))
    return *fresh.release();
  return *expected;
}

const char* PolicyOf(const OperatorSpec& spec, std::string_view name) {
  for (int32_t i = 0; i < spec.num_policies; ++i)
    if (spec.policies[i].name == name) return spec.policies[i].text;
  return nullptr;
}

KeySet Operator::KeysOf(const MicaValue* args, int64_t num_args) const {
  uint64_t k = 0;
  MicaDevice device{-1, 0};
  for (int64_t i = 0; i < num_args; ++i) {
    const MicaValue& v = args[i];
    if (v.tag == MICA_VALUE_TENSOR) {
      k |= static_cast<TensorImpl*>(v.u.tensor)->keys.bits();
    } else if (v.tag == MICA_VALUE_TENSORS) {
      for (int64_t j = 0; j < v.u.tensors.size; ++j)
        if (v.u.tensors.data[j]) k |= static_cast<TensorImpl*>(v.u.tensors.data[j])->keys.bits();
    } else if (v.tag == MICA_VALUE_DEVICE) {
      device = v.u.device;
    }
  }
  if (device.backend >= 0) internal::TakeDevice(k, Device::FromAbi(device));
  if ((k & keys::kBackends.bits()) == 0) k |= KeySet::Of(CurrentThread().default_device.backend).bits();
  return KeySet(k);
}

void Operator::RedispatchBoxed(KeySet keys, const MicaValue* args, int64_t num_args,
                               MicaValue* results) const {
  if (spec_->flags & kTakesObjects) [[unlikely]]
    CheckObjects(*this, args, num_args);
  const OpTable& t = table();
  const Slot& slot = t.slots[(keys & KeySet(t.mask)).highest()];
  const SignatureAdapters* adapters = spec_->adapters;
  if (!adapters || slot.fn == adapters->boxing) {
    const BoxedKernel& k = *static_cast<const BoxedKernel*>(slot.context);
    k.fn(k, *this, keys, args, num_args, results);
  } else {
    adapters->call_slot(slot, keys, args, results);
  }
}

void Operator::CallBoxed(const MicaValue* args, int64_t num_args, MicaValue* results) const {
  const ThreadState& t = CurrentThread();
  const KeySet keys = (KeysOf(args, num_args) | t.include) - t.exclude;
  try {
    RedispatchBoxed(keys, args, num_args, results);
  } catch (...) {
    internal::RethrowWithContext(*this, keys);
  }
}

namespace internal {
void RethrowWithContext(const Operator& op, KeySet keys) {
  try {
    throw;
  } catch (Error& e) {
    std::string path;
    for (const SlotExplanation& s : ExplainCall(op, keys))
      if (s.reason != SlotReason::kFallthrough) absl::StrAppend(&path, path.empty() ? "" : " › ", s.key);
    e.AddContext(absl::StrCat(op.spec().schema, ", at layer ", path));
    throw;
  }
}

MicaStatus StatusOfCall(const Operator& op, KeySet keys, MicaStatus failed) noexcept {
  return CatchAll([&] {
    try {
      if (!failed) throw;
      ThrowStatus(failed);
    } catch (...) {
      RethrowWithContext(op, keys);
    }
  });
}
}  // namespace internal

}  // namespace mica
