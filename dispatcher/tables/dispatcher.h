// Dispatcher: everything that is registered, under one mutex, and the tables
// made from it. Internal to this room; others use operator.h, registration.h.
//
// Calls never come here: they read an operator's table. Registration changes the
// lists below and sets the tables of the operators it touched to NULL; the next
// call makes a new one (Resolve). Tables and slot contexts are interned by value
// and never freed, so that a call in flight may go on with an old one, and a
// plugin that comes and goes leaks nothing.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "dispatcher/calls/structured.h"
#include "dispatcher/explain/explain.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/registration/earlier_schema.h"
#include "dispatcher/registration/registration.h"
#include "dispatcher/tables/operator.h"

namespace mica {

// The pseudo key of a decomposition registered at run time ("Composite").
inline constexpr int kCompositeKey = 64;
// The pseudo key of frame kind k is kFirstKindKey + k (dispatcher/frames/frames.h).
inline constexpr int kFirstKindKey = 65;
inline constexpr int kNumKeys = kFirstKindKey + frames::kMaxKinds;
// The bit or pseudo key of a layer, backend or frame kind; -1 if unknown.
int KeyByName(std::string_view name);

// An operator's kernels by frame kind: what its slot at the frames' bit looks into.
struct FrameTable {
  Slot slots[frames::kMaxKinds];
};

struct KernelEntry {
  enum class Kind : uint8_t { kLayer, kBoxed, kLeaf, kFallthrough };
  Kind kind = Kind::kLayer;
  int key = 0;
  MicaFunction fn = nullptr;               // kLayer, kLeaf
  MicaBoxedFunction leaf_boxed = nullptr;  // kLeaf
  void* context = nullptr;
  BoxedKernel boxed{};                     // kBoxed
  bool takes_opaque = false;               // kLeaf
  uint64_t schema_hash = 0;                // kLeaf: of the schema it was built for; 0 says none
  std::string signature;                   // kLeaf: of `fn`, as the record says it; empty: not said
  const EarlierSchema* earlier = nullptr;  // found by the hash; of the operator's state
  const Scope* scope = nullptr;
  SourceLocation where;
};

struct ClassEntry {
  MicaClassFunction fn = nullptr;
  MicaClassListFunction list_fn = nullptr;
  void* context = nullptr;
  const Scope* scope = nullptr;
  SourceLocation where;
};

struct RuleEntry {
  LayerRule rule = nullptr;
  void* context = nullptr;
  const Scope* scope = nullptr;
};

struct FallbackEntry {
  BoxedKernel kernel{};
  const Scope* scope = nullptr;
  SourceLocation where;
};

// The run-time part of an operator. Later entries override earlier ones.
struct OperatorState {
  std::vector<KernelEntry> kernels;
  std::deque<BoxedKernel> boxed;  // interned slot contexts
  std::deque<StructuredContext> structured;
  std::deque<EarlierSchema> earlier;
  std::deque<FrameTable> frame_tables;
  const Scope* defined_by = nullptr;  // NULL: native
  bool gone = false;                  // its scope is; a handle may be kept
};

struct Definition;  // registration/scope_impl.h

// How a slot is filled, and why.
struct Resolution {
  Slot slot{nullptr, nullptr};
  bool fallthrough = false;
  SlotReason reason = SlotReason::kMissing;
  const Scope* scope = nullptr;
  SourceLocation where;
  std::string detail;
};

class Dispatcher {
 public:
  static Dispatcher& Get();

  std::mutex mutex;
  absl::flat_hash_map<std::string, Operator*> operators;
  std::vector<Operator*> order;
  // Kernels whose operator does not exist yet, by operator name.
  absl::flat_hash_map<std::string, std::vector<KernelEntry>> waiting;
  std::array<std::array<std::vector<ClassEntry>, 15>, keys::kBackendCount> classes;
  std::array<std::vector<RuleEntry>, kNumKeys> rules;                   // by key
  std::array<std::vector<FallbackEntry>, kNumKeys> fallbacks;           // by key
  std::array<std::vector<const Scope*>, keys::kBackendCount> backends;  // scopes that provide the device
  std::array<std::vector<const Scope*>, kNumKeys> decompose_at;
  uint64_t ranks = 0;  // of the scopes so far
  KeySet asleep;  // of Mica's own layers, those whose plugin is disabled; a third party's calls just pass
  std::array<const Scope*, kNumKeys> brought_by{};  // a plugin's layers and frame kinds, while it is enabled
  // Operators whose scope is gone, with their slots' contexts: a call may be in flight, and a handle may be
  // kept. One that is defined again word for word in the same place is the same operator again.
  std::vector<std::shared_ptr<Definition>> retired;
  absl::flat_hash_map<std::string, std::shared_ptr<Definition>> to_define_again;
  // What was left out of each scope, and what nobody has been told yet.
  absl::flat_hash_map<const Scope*, std::vector<std::string>> notes;
  std::vector<std::string> unsaid;

  // All with the mutex held.
  OperatorState& StateOf(const Operator& op);
  Operator* Find(std::string_view name) const;
  void AddOperator(Operator* op);
  // Kernels that others have for it wait until it is defined again.
  void RemoveOperator(Operator* op);
  // Why the kernel cannot serve the operator, as the rest of a sentence; "" if it can.
  // Notes in the entry what earlier schema it was built for.
  std::string Fit(const Operator& op, KernelEntry& entry);
  // The backends whose kernel for this very form takes opaque tensors.
  KeySet TakesOpaque(const Operator& op);
  bool BackendLoaded(int bit) const { return !backends[bit].empty(); }
  Resolution ResolveSlot(const Operator& op, int key);
  const OpTable* MakeTable(const Operator& op);
  void DropTable(const Operator& op) { op.table_.store(nullptr, std::memory_order_release); }
  void DropGroup(const Operator& op);  // the operator and those whose slots are made from its kernels
  void DropAllTables();

 private:
  Dispatcher();
  void List(Operator* op);
  Slot BoxedSlot(const Operator& op, BoxedKernel kernel);
  Resolution FromEntry(const Operator& op, const KernelEntry& entry);
  Resolution ResolveLayer(const Operator& op, int bit);
  Resolution ResolveFrameBit(const Operator& op, int bit);
  Resolution ResolveKind(const Operator& op, int key);
  Resolution ResolveBackend(const Operator& op, int bit);
  void SetLeaves(const Operator& op, const Operator& form, int bit, StructuredContext& c);
  void SetClass(const Operator& op, const std::vector<ClassEntry>& stack, StructuredContext& c);
  void SetParts(const Operator& op, StructuredContext& c);
  Resolution ResolveBackendKernel(const Operator& op, int bit);
  void FillWhereAlike(const Operator& op, int bit, Resolution& r);
  bool ResolveHostKernel(const Operator& op, int bit, Resolution& r);
  // Each of these finds what stands in the slot, or says that it has nothing.
  bool ResolveStructured(const Operator& op, int bit, Resolution& r);
  bool ResolveShared(const Operator& op, Resolution& r);
  bool ResolveParts(const Operator& op, int bit, Resolution& r);
  bool ResolveRule(const Operator& op, int key, Resolution& r);
  bool ResolveFallback(const Operator& op, int bit, const char* detail, Resolution& r);
  template <typename Better>
  bool ResolveThroughFunctional(const Operator& op, Better&& better, Resolution& r);
  bool ResolveWithTensors(const Operator& op, int bit, Resolution& r);
  bool ResolveElsewhere(const Operator& op, int bit, Resolution& r);
  bool ResolveFused(const Operator& op, int bit, Resolution& r);
  bool ResolveDecomposition(const Operator& op, int bit, Resolution& r);
  const KernelEntry* Top(const Operator& op, int key);
  StructuredContext* Intern(const Operator& op, const StructuredContext& context);

  std::unordered_multimap<uint64_t, std::unique_ptr<OpTable>> tables_;
  // The forms and overloads of one operator, whose slots are made from each other's kernels.
  absl::flat_hash_map<std::string, std::vector<Operator*>> groups_;
};

const OperatorSpec* FunctionalSpec(const OperatorSpec& spec, const Dispatcher& d);

}  // namespace mica
