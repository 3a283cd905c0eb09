// The call: from C++ arguments to the slot of an operator's table.
//
// A call is: OR the key sets of the tensors, add what the thread includes, take away
// what it excludes, one load of the table, highest bit, one indirect call.
// calls_<i>.cc, which mica-gen writes, includes this and compiles the calls of each
// signature once.
#pragma once

#include <optional>
#include <utility>

#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/calls/typed_operator.h"
#include "dispatcher/tables/operator.h"

namespace mica {

namespace internal {
// Adds "in <schema>, at layer <path>" to the Error in flight, once, and rethrows.
[[noreturn]] void RethrowWithContext(const Operator& op, KeySet keys);

inline void AddKeys(uint64_t& k, const Tensor& t) {
  if (t.defined()) k |= t.keys().bits();
}
inline void AddKeys(uint64_t& k, TensorSpan s) {
  for (const Tensor& t : s) AddKeys(k, t);
}
template <typename T>
void AddKeys(uint64_t&, const T&) {}
inline void TakeDevice(uint64_t& k, Device d) {
  k = (k & ~keys::kBackends.bits()) | KeySet::Of(d.backend).bits();
}
inline void TakeDevice(uint64_t& k, std::optional<Device> d) {
  if (d) TakeDevice(k, *d);
}
template <typename T>
void TakeDevice(uint64_t&, const T&) {}
// The slot that `keys` lead to, called. In both functions of TypedOperator: a call of its own costs 12
// instructions.
template <typename R, typename... A>
[[gnu::always_inline]] inline R CallSlot(const Operator& op, KeySet keys, A... a) {
  using Ret = AbiReturn<R>;
  const OpTable& table = op.table();
  const Slot& slot = table.slots[(keys & KeySet(table.mask)).highest()];
  if constexpr (Ret::kDirect) {
    using Fn = typename Ret::Abi (*)(void*, uint64_t, AbiOf<A>...);
    return Ret::Unpack(reinterpret_cast<Fn>(slot.fn)(slot.context, keys.bits(), AbiType<A>::To(a)...));
  } else {
    using Fn = MicaStatus (*)(void*, uint64_t, AbiOf<A>..., MicaValue*);
    MicaValue results[Ret::kCount];
    ThrowIfError(reinterpret_cast<Fn>(slot.fn)(slot.context, keys.bits(), AbiType<A>::To(a)..., results));
    return Ret::FromValues(results);
  }
}
}  // namespace internal

// The keys of a call's arguments: tensors', with the backend replaced by an
// explicit device argument; the default device's if there is neither.
template <typename... A>
KeySet KeysOfArguments(const A&... a) {
  uint64_t k = 0;
  (internal::AddKeys(k, a), ...);
  (internal::TakeDevice(k, a), ...);
  if (__builtin_expect((k & keys::kBackends.bits()) == 0, 0))
    k |= KeySet::Of(CurrentThread().default_device.backend).bits();
  return KeySet(k);
}

template <typename R, typename... A>
R TypedOperator<R(A...)>::Call(const Operator& op, A... a) {
  const ThreadState& t = CurrentThread();
  const KeySet keys = (KeysOfArguments(a...) | t.include) - t.exclude;
  try {
    return internal::CallSlot<R, A...>(op, keys, a...);
  } catch (...) {
    internal::RethrowWithContext(op, keys);
  }
}
template <typename R, typename... A>
R TypedOperator<R(A...)>::Redispatch(const Operator& op, KeySet keys, A... a) {
  return internal::CallSlot<R, A...>(op, keys, a...);
}

}  // namespace mica
