// An operator as a C function for plugins: `R call(const Operator* op, abi arguments...)`.
//
// The call of typed_operator_impl.h with arguments as they cross the border, so that nothing is boxed or
// converted. Slots throw what the core throws; nothing that is thrown leaves this function, which
// returns it as a status. It reads the operator's table at each call and keeps nothing of it.
// Cost over the call from within the core: one indirect call. One instance per signature in C types.
#pragma once

#include <cstdint>

#include <mica/abi.h>
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/tables/operator.h"

namespace mica::internal {

// The status of a call that failed, which says where: `failed` as a slot returned it, or NULL for the
// exception in flight.
MicaStatus StatusOfCall(const Operator& op, KeySet keys, MicaStatus failed) noexcept;

inline void AddKeysOf(uint64_t& k, MicaTensor* t) {
  if (t) k |= static_cast<TensorImpl*>(t)->keys.bits();
}
inline void AddKeysOf(uint64_t& k, MicaTensorSpan s) {
  for (int64_t i = 0; i < s.size; ++i) AddKeysOf(k, s.data[i]);
}
template <typename T>
void AddKeysOf(uint64_t&, const T&) {}
inline void TakeDeviceOf(uint64_t& k, MicaDevice d) {
  if (d.backend >= 0) k = (k & ~keys::kBackends.bits()) | KeySet::Of(d.backend).bits();
}
template <typename T>
void TakeDeviceOf(uint64_t&, const T&) {}

inline MicaStatus StatusOfResult(MicaStatus r) { return r; }
template <typename R>
MicaStatus StatusOfResult(const R& r) {
  return r.status;
}
template <typename R>
R FailedResult(MicaStatus status) {
  if constexpr (std::is_same_v<R, MicaStatus>)
    return status;
  else
    return R{{}, status};
}

// `R` and `A` are C types; room for boxed results is the last of `A` where the operator has such.
template <typename R, typename... A>
R BorderCall(const Operator* op, A... a) noexcept {
  const ThreadState& t = CurrentThread();
  uint64_t k = 0;
  (AddKeysOf(k, a), ...);
  (TakeDeviceOf(k, a), ...);
  if (__builtin_expect((k & keys::kBackends.bits()) == 0, 0))
    k |= KeySet::Of(t.default_device.backend).bits();
  const KeySet keys = (KeySet(k) | t.include) - t.exclude;
  try {
    const OpTable& table = op->table();
    const Slot& slot = table.slots[(keys & KeySet(table.mask)).highest()];
    const R r = reinterpret_cast<R (*)(void*, uint64_t, A...)>(slot.fn)(slot.context, keys.bits(), a...);
    if (__builtin_expect(StatusOfResult(r) == nullptr, 1)) return r;
    return FailedResult<R>(StatusOfCall(*op, keys, StatusOfResult(r)));
  } catch (...) {
    return FailedResult<R>(StatusOfCall(*op, keys, nullptr));
  }
}

}  // namespace mica::internal
