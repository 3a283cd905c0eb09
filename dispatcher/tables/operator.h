// An operator: its spec, its registered kernels, and the immutable table that a
// call indexes.
//
// A call reads `table()` once (one atomic load), takes the highest key bit of
// (keys & mask), and calls that slot: no lock, no hash, no string. Registration
// builds a new table and swaps the pointer; equal tables are interned, so that
// taking a plugin in and out in a loop leaks nothing. Tables are made on first
// use of an operator and dropped (set to NULL) when any kernel, class kernel,
// fallback or layer changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dispatcher/tables/operator_spec.h"
#include "schema/schema.h"
#include "tensor/key_set.h"
#include "tensor/private_struct.h"

namespace mica {

class Operator;

// A slot's function in *layer convention*:
//   R fn(void* context, uint64_t keys, abi arguments...)
struct Slot {
  MicaFunction fn;
  void* context;
};

struct OpTable {
  MICA_PRIVATE_STRUCT;
  uint64_t mask;  // bits whose slot is not a fallthrough
  Slot slots[64];
};

// A kernel that takes borrowed boxed arguments; throws on error. Results are
// owned by the caller (tensors with a reference; lists through TensorList).
struct BoxedKernel;
using BoxedFunction = void (*)(const BoxedKernel& kernel, const Operator& op, KeySet keys,
                               const MicaValue* args, int64_t num_args, MicaValue* results);
struct BoxedKernel {
  BoxedFunction fn;
  void* context;
  const Operator* op;  // filled by the dispatcher for a slot's copy
};

class Operator {
 public:
  constexpr explicit Operator(const OperatorSpec* spec) : spec_(spec) {}
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  const OperatorSpec& spec() const { return *spec_; }
  std::string_view name() const { return spec_->name; }
  // Parsed on first use.
  const schema::FunctionSchema& schema() const {
    const schema::FunctionSchema* s = schema_.load(std::memory_order_acquire);
    return __builtin_expect(s != nullptr, 1) ? *s : Parse();
  }
  const OpTable& table() const {
    const OpTable* t = table_.load(std::memory_order_acquire);
    return __builtin_expect(t != nullptr, 1) ? *t : Resolve();
  }
  // Calls with borrowed boxed arguments, all of them (defaults filled in by
  // CallBoxed's caller). `results` has one value per return.
  void CallBoxed(const MicaValue* args, int64_t num_args, MicaValue* results) const;
  void RedispatchBoxed(KeySet keys, const MicaValue* args, int64_t num_args, MicaValue* results) const;
  KeySet KeysOf(const MicaValue* args, int64_t num_args) const;

 private:
  friend class Dispatcher;
  const OpTable& Resolve() const;
  const schema::FunctionSchema& Parse() const;

  MICA_PRIVATE_STRUCT;
  const OperatorSpec* spec_;
  mutable std::atomic<const OpTable*> table_{nullptr};
  mutable std::atomic<const schema::FunctionSchema*> schema_{nullptr};
  mutable struct OperatorState* state_ = nullptr;  // kernels; owned by the dispatcher
};

// "mica::add.Tensor", "add.Tensor" (namespace mica) -> operator, or NULL.
Operator* FindOperator(std::string_view name);
// The same, throwing a kRuntime Error with near names.
Operator& GetOperator(std::string_view name);
std::vector<Operator*> AllOperators();

namespace internal {
// The generated list (registry.cc).
extern Operator* const kNativeOperators[];
extern const int64_t kNativeOperatorCount;
}  // namespace internal

}  // namespace mica
