// The registry: operators by name, tables made and interned.
#include "dispatcher/tables/dispatcher.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

#include "absl/strings/str_cat.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/devices/device_memory.h"
#include "dispatcher/devices/pinned_memory.h"
#include "dispatcher/plugins/loader_state.h"
#include "dispatcher/tables/signature_check.h"
#include "tensor/small_pool.h"

namespace mica {

namespace {
// The name without the overload, of the functional form: "mica::add" of add_.Scalar and add.out.
std::string GroupOf(const OperatorSpec& s) {
  const std::string_view name = s.functional_name ? s.functional_name : s.name;
  return std::string(name.substr(0, name.find('.')));
}

}  // namespace

Dispatcher::Dispatcher() {
  for (int64_t i = 0; i < internal::kNativeOperatorCount; ++i) List(internal::kNativeOperators[i]);
}

void Dispatcher::List(Operator* op) {
  operators.emplace(op->name(), op);
  order.push_back(op);
  groups_[GroupOf(op->spec())].push_back(op);
}

namespace {
// A fork while another thread registers or loads would leave the child with a mutex
// that nobody lets go of. The loader's comes first, as it does everywhere. Prepare
// handlers run in reverse order: those of the allocators, the small pool and devices'
// memory are registered before these, since whoever holds the interpreter here may wait
// for them.
void LockForFork() {
  {
    const InterpreterRelease released;
    GetLoader().mutex.lock();
  }
  Dispatcher::Get().mutex.lock();
}
void UnlockAfterFork() {
  Dispatcher::Get().mutex.unlock();
  GetLoader().mutex.unlock();
}
// A recursive mutex knows its holder by the thread's number, which the child's is not:
// it gets a fresh one.
void UnlockInChild() {
  Dispatcher::Get().mutex.unlock();
  new (&GetLoader().mutex) std::recursive_mutex();
}
}  // namespace

Dispatcher& Dispatcher::Get() {
  static Dispatcher* d = [] {
    static_cast<void>(internal::GetSmallStats());  // makes the pool, and the allocators before it
    LockPinnedMemoryAtFork();
    LockMemoryInUseAtFork();
    pthread_atfork(LockForFork, UnlockAfterFork, UnlockInChild);
    return new Dispatcher();
  }();
  return *d;
}

OperatorState& Dispatcher::StateOf(const Operator& op) {
  if (!op.state_) op.state_ = new OperatorState();
  return *op.state_;
}

Operator* Dispatcher::Find(std::string_view name) const {
  const bool bare = name.find("::") == std::string_view::npos;
  auto it = operators.find(bare ? absl::StrCat("mica::", std::string(name)) : std::string(name));
  return it == operators.end() ? nullptr : it->second;
}

void Dispatcher::AddOperator(Operator* op) {
  List(op);
  if (op->state_) op->state_->gone = false;
  DropGroup(*op);  // a handle may have made a table while it was gone
  auto it = waiting.find(std::string(op->name()));
  if (it == waiting.end()) return;
  OperatorState& state = StateOf(*op);
  for (KernelEntry& e : it->second) {
    const std::string why = Fit(*op, e);
    if (why.empty()) {
      state.kernels.push_back(e);
      continue;
    }
    unsaid.push_back(absl::StrCat("The kernel of plugin (", e.scope->name(), ") for (", op->spec().name,
                                  "), which waited for the operator, ", why, " It is left out."));
    notes[e.scope].push_back(unsaid.back());
  }
  waiting.erase(it);
}

namespace {
// The hash of a schema that is written without the operator's namespace.
uint64_t HashOf(const char* text, const schema::FunctionSchema& of) {
  absl::StatusOr<schema::FunctionSchema> parsed = schema::Parse(text);
  if (!parsed.ok()) return 0;
  parsed->ns = of.ns;
  return schema::Hash(*parsed);
}
}  // namespace

std::string Dispatcher::Fit(const Operator& op, KernelEntry& e) {
  const OperatorSpec& spec = op.spec();
  const SignatureAdapters* adapters = spec.adapters;
  const char* built_for_schema = spec.schema;
  // A layer's unboxed kernel stands in the slot itself: nothing could fill in arguments.
  if (e.kind == KernelEntry::Kind::kLayer && e.schema_hash) {
    if (e.schema_hash != schema::Hash(op.schema()))
      return absl::StrCat("was built for another schema than ", spec.schema, ".");
    if (!adapters) return "is unboxed, and an operator that is defined at run time is called boxed alone.";
    return "";
  }
  if (e.schema_hash && e.schema_hash != schema::Hash(op.schema())) {
    const SchemaGeneration* const end = spec.generations + spec.num_generations;
    const SchemaGeneration* const built_for = std::find_if(
        spec.generations, end,
        [&](const SchemaGeneration& g) { return HashOf(g.schema, op.schema()) == e.schema_hash; });
    if (built_for == end) return absl::StrCat("was built for another schema than ", spec.schema, ".");
    adapters = built_for->adapters;
    built_for_schema = built_for->schema;
    e.earlier = &StateOf(op).earlier.emplace_back(AdaptTo(op, *built_for));
  }
  if (e.takes_opaque && spec.form != OpForm::kFunctional)
    return "takes opaque tensors (MICA_KERNEL_TAKES_OPAQUE), as kernels of functional forms alone can.";
  if (e.kind == KernelEntry::Kind::kLeaf && !adapters && !e.leaf_boxed)
    return "has no boxed function, and an operator that is defined at run time is called boxed alone.";
  return e.signature.empty() ? "" : SignatureMismatch(e.signature, built_for_schema);
}

void Dispatcher::RemoveOperator(Operator* op) {
  OperatorState& state = StateOf(*op);
  for (KernelEntry& e : state.kernels) {
    e.earlier = nullptr;
    waiting[std::string(op->name())].push_back(std::move(e));
  }
  state.kernels.clear();
  state.gone = true;
  if (auto it = operators.find(std::string(op->name())); it != operators.end() && it->second == op)
    operators.erase(it);
  DropGroup(*op);
  std::erase(order, op);
  if (auto group = groups_.find(GroupOf(op->spec())); std::erase(group->second, op) && group->second.empty())
    groups_.erase(group);
}

const OperatorSpec* FunctionalSpec(const OperatorSpec& spec, const Dispatcher& d) {
  if (spec.form == OpForm::kFunctional || !spec.functional_name) return &spec;
  const Operator* op = d.Find(spec.functional_name);
  return op ? &op->spec() : &spec;
}

void Dispatcher::DropGroup(const Operator& op) {
  DropTable(op);
  // Slots of all three forms are made from the out form's kernels.
  // Those of an overload of numbers may be made from the overload of Tensors.
  if (auto group = groups_.find(GroupOf(op.spec())); group != groups_.end())
    for (Operator* other : group->second) DropTable(*other);
}

void Dispatcher::DropAllTables() {
  for (Operator* op : order) DropTable(*op);
}

Slot Dispatcher::BoxedSlot(const Operator& op, BoxedKernel kernel) {
  kernel.op = &op;
  std::deque<BoxedKernel>& pool = StateOf(op).boxed;
  BoxedKernel* found = nullptr;
  for (BoxedKernel& k : pool)
    if (k.fn == kernel.fn && k.context == kernel.context) found = &k;
  if (!found) found = &pool.emplace_back(kernel);
  return {op.spec().adapters ? op.spec().adapters->boxing : nullptr, found};
}

StructuredContext* Dispatcher::Intern(const Operator& op, const StructuredContext& context) {
  std::deque<StructuredContext>& pool = StateOf(op).structured;
  for (StructuredContext& c : pool)
    if (c == context) return &c;
  return &pool.emplace_back(context);
}

const OpTable* Dispatcher::MakeTable(const Operator& op) {
  auto table = std::make_unique<OpTable>();
  table->mask = 0;
  for (int bit = 0; bit < 64; ++bit) {
    Resolution r = ResolveSlot(op, bit);
    table->slots[bit] = r.slot;
    if (!r.fallthrough) table->mask |= uint64_t{1} << bit;
  }
  const uint64_t hash = schema::HashText({reinterpret_cast<const char*>(table.get()), sizeof(OpTable)});
  for (auto [it, end] = tables_.equal_range(hash); it != end; ++it)
    if (std::memcmp(it->second.get(), table.get(), sizeof(OpTable)) == 0) return it->second.get();
  return tables_.emplace(hash, std::move(table))->second.get();
}

const OpTable& Operator::Resolve() const {
  Dispatcher& d = Dispatcher::Get();
  std::lock_guard lock(d.mutex);
  const OpTable* t = table_.load(std::memory_order_acquire);
  if (!t) {
    t = d.MakeTable(*this);
    table_.store(t, std::memory_order_release);
  }
  return *t;
}

Operator* FindOperator(std::string_view name) {
  Dispatcher& d = Dispatcher::Get();
  for (bool discovered : {false, true}) {
    // A plugin that the user asked for may define it, or one that provides its
    // namespace.
    if (discovered) {
      DiscoverPlugins();
      const size_t colons = name.find("::");
      if (colons != std::string_view::npos && name.substr(0, colons) != "mica")
        EnsureProvider(absl::StrCat("operators:", std::string(name.substr(0, colons))));
    }
    std::lock_guard lock(d.mutex);
    if (Operator* op = d.Find(name)) return op;
  }
  return nullptr;
}

namespace {
// The number of single-letter edits between two names, for suggestions.
int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int cost = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, cost});
    }
  }
  return row[b.size()];
}
}  // namespace

Operator& GetOperator(std::string_view name) {
  if (Operator* op = FindOperator(name)) return *op;
  const std::string_view bare = name.substr(0, 6) == "mica::" ? name.substr(6) : name;
  std::string near;
  int count = 0;
  for (const Operator* op : AllOperators()) {
    const std::string_view other = op->name().substr(0, 6) == "mica::" ? op->name().substr(6) : op->name();
    const std::string_view base = other.substr(0, other.find('.'));
    if (base == bare || EditDistance(other, bare) <= 2) {
      if (++count > 5) break;
      absl::StrAppend(&near, near.empty() ? "" : ", ", std::string(other));
    }
  }
  MICA_THROW(kRuntime, "No operator has the name (", std::string(name), ").",
             near.empty() ? std::string() : absl::StrCat(" Near it are: ", near, "."));
}

std::vector<Operator*> AllOperators() {
  Dispatcher& d = Dispatcher::Get();
  std::lock_guard lock(d.mutex);
  return d.order;
}

}  // namespace mica
