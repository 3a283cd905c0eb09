// Scopes: kernels collected first, put in place by Commit, taken out by Disable.
#include "dispatcher/registration/registration.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/devices/streams.h"
#include "dispatcher/plugins/host.h"
#include "dispatcher/registration/extensions.h"
#include "dispatcher/registration/scope_impl.h"
#include "schema/schema.h"
#include "tensor/device.h"

namespace mica {
namespace {

std::string Qualified(std::string_view op) {
  const std::string name(op);
  return name.find("::") == std::string::npos ? "mica::" + name : name;
}

}  // namespace

std::shared_ptr<Scope> Scope::Create(std::string name, std::string path) {
  std::shared_ptr<Scope> s(new Scope());
  s->impl_ = std::make_unique<Impl>();
  s->impl_->name = std::move(name);
  s->impl_->path = std::move(path);
  return s;
}

std::shared_ptr<Scope> Scope::CreateInPlaceOf(std::shared_ptr<Scope> replaced, std::string name,
                                              std::string path) {
  std::shared_ptr<Scope> s = Create(std::move(name), std::move(path));
  s->impl_->replaced = std::move(replaced);
  return s;
}

Scope::~Scope() {
  if (impl_->committed) Disable();
  if (open()) impl_->ReleasePlaces();
  Dispatcher& d = Dispatcher::Get();
  std::lock_guard lock(d.mutex);
  d.notes.erase(this);
  impl_->Retire(d);
}

void Scope::Impl::Retire(Dispatcher& d) {
  for (std::shared_ptr<Definition>& def : definitions) {
    if (!def->committed || def.use_count() > 1) continue;  // not, where another scope has it, too
    std::shared_ptr<Definition> kept = std::move(def);
    if (!kept->completed) kept.swap(d.to_define_again[kept->words]);  // leaves an older one of the same words
    if (kept) d.retired.push_back(std::move(kept));
  }
  definitions.clear();
}

const std::string& Scope::name() const { return impl_->name; }
uint64_t Scope::rank() const { return impl_->rank; }
const std::string& Scope::path() const { return impl_->path; }
bool Scope::enabled() const { return impl_->enabled; }
bool Scope::open() const { return !impl_->committed && !impl_->abandoned; }

void Scope::Abandon() {
  if (impl_->committed) return;
  impl_->ReleasePlaces();
  {
    Dispatcher& d = Dispatcher::Get();
    std::lock_guard lock(d.mutex);
    impl_->Retire(d);
  }
  auto empty = std::make_unique<Impl>();
  empty->name = impl_->name;
  empty->path = impl_->path;
  empty->abandoned = true;
  impl_ = std::move(empty);
}

void Scope::AddKernel(std::string_view op, std::string_view key, MicaFunction fn, void* context,
                      SourceLocation where) {
  AddKernel(op, key, fn, context, where, 0);
}

void Scope::AddKernel(std::string_view op, std::string_view key, MicaFunction fn, void* context,
                      SourceLocation where, uint64_t schema_hash) {
  KernelEntry e;
  e.schema_hash = schema_hash;
  e.kind = KernelEntry::Kind::kLayer;
  e.fn = fn;
  e.context = context;
  e.where = where;
  impl_->kernels.push_back({Qualified(op), std::string(key), e});
}

void Scope::AddBoxedKernel(std::string_view op, std::string_view key, BoxedKernel kernel,
                           SourceLocation where) {
  KernelEntry e;
  e.kind = KernelEntry::Kind::kBoxed;
  e.boxed = kernel;
  e.where = where;
  impl_->kernels.push_back({Qualified(op), std::string(key), e});
}

void Scope::AddFallthrough(std::string_view op, std::string_view key) {
  KernelEntry e;
  e.kind = KernelEntry::Kind::kFallthrough;
  impl_->kernels.push_back({Qualified(op), std::string(key), e});
}

absl::Status Scope::AddLeaf(const MicaKernelRecord& r) {
  if (r.struct_size < MICA_KERNEL_RECORD_SIZE_1_0)
    return absl::InvalidArgumentError(absl::StrCat("A kernel record has the struct_size (", r.struct_size,
                                                   "); ABI 1.0 asks for (", MICA_KERNEL_RECORD_SIZE_1_0,
                                                   ") bytes."));
  if (!r.name || !r.backend)
    return absl::InvalidArgumentError("A kernel record has no operator or no backend name.");
  if (!r.function && !r.boxed)
    return absl::InvalidArgumentError(absl::StrCat("The kernel record of (", r.name, ") has no function."));
  for (const NamedKernel& k : impl_->kernels)
    if (k.entry.kind == KernelEntry::Kind::kLeaf && k.op == Qualified(r.name) && k.key == r.backend)
      return absl::AlreadyExistsError(absl::StrCat(
          "The operator (", r.name, ") gets two kernels for the backend (", r.backend, ") from one plugin."));
  KernelEntry e;
  e.kind = KernelEntry::Kind::kLeaf;
  e.fn = r.function;
  e.leaf_boxed = r.boxed;
  e.context = r.context;
  e.schema_hash = r.schema_hash;
  if (r.function && MICA_HAS(&r, signature)) e.signature = r.signature;
  e.where = {r.file ? r.file : "", static_cast<int>(r.line)};
  impl_->kernels.push_back({Qualified(r.name), r.backend, e});
  return absl::OkStatus();
}

absl::Status Scope::AddClass(const MicaClassRecord& r) {
  if (r.struct_size < MICA_CLASS_RECORD_SIZE_1_0)
    return absl::InvalidArgumentError(absl::StrCat("A class record has the struct_size (", r.struct_size,
                                                   "); ABI 1.0 asks for (", MICA_CLASS_RECORD_SIZE_1_0,
                                                   ") bytes."));
  const std::optional<OpClass> c = r.class_name ? OpClassNamed(r.class_name) : std::nullopt;
  if (!c)
    return absl::InvalidArgumentError(
        absl::StrCat("Class (", r.class_name ? r.class_name : "", ") is unknown."));
  if (!r.backend || !r.function)
    return absl::InvalidArgumentError(
        absl::StrCat("The record of class (", r.class_name, ") has no backend or no function."));
  impl_->classes.push_back(
      {r.backend,
       static_cast<int>(*c),
       {r.function, r.context, nullptr, {r.file ? r.file : "", static_cast<int>(r.line)}}});
  return absl::OkStatus();
}

absl::Status Scope::AddDevice(const char* name, const MicaDeviceTable* table) {
  if (absl::Status s = CheckDeviceTable(name, table); !s.ok()) return s;
  // The plugin may ask for its index before its table is published.
  static_cast<void>(RegisterBackendName(name));
  impl_->devices.push_back({name, KeepDeviceTable(*table)});
  AddBackend(name);
  return absl::OkStatus();
}

void Scope::AddBoxedFallback(std::string_view key, BoxedKernel kernel, SourceLocation where) {
  impl_->fallbacks.push_back({std::string(key), {kernel, nullptr, where}});
}

void Scope::DecomposeAt(std::string_view layer) { impl_->decompose.emplace_back(layer); }

void Scope::AddExtension(std::string_view name, const void* table) {
  impl_->extensions.push_back({std::string(name), table, false});
}

absl::Status Scope::AddPublicExtension(std::string_view name, const MicaTable* table) {
  const auto is_allowed = [](char c) { return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-'; };
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_allowed))
    return absl::InvalidArgumentError(
        absl::StrCat("The name (", std::string(name),
                     ") of an extension is not made of letters, digits, dots, dashes and underscores."));
  if (name.starts_with("mica."))
    return absl::InvalidArgumentError(
        absl::StrCat("The extension (", std::string(name),
                     ") has a name of Mica's; a plugin's begins with its own, as in acme.collectives."));
  if (table->struct_size < sizeof(MicaTable))
    return absl::InvalidArgumentError(absl::StrCat(
        "The table of the extension (", std::string(name), ") has the struct_size (", table->struct_size,
        "); it begins with a MicaTable of (", sizeof(MicaTable), ") bytes."));
  for (const Extension& e : impl_->extensions)
    if (e.name == name)
      return absl::AlreadyExistsError(
          absl::StrCat("The extension (", e.name, ") is offered twice by one plugin."));
  impl_->extensions.push_back({std::string(name), table, true});
  return absl::OkStatus();
}

void Scope::AddBackend(std::string_view name) { impl_->backends.emplace_back(name); }

absl::Status Scope::Define(std::string_view text, SourceLocation where) {
  absl::StatusOr<schema::FunctionSchema> parsed = schema::Parse(text);
  if (!parsed.ok()) return parsed.status();
  if (absl::Status valid = schema::Validate(*parsed); !valid.ok()) return valid;
  if (parsed->ns.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("The schema (", std::string(text), ") has no namespace; write ns::name(...)."));
  const std::string schema = schema::ToString(*parsed);
  const std::string words = absl::StrCat(schema, " at ", where.file, ":", where.line);
  {
    Dispatcher& dispatcher = Dispatcher::Get();
    std::lock_guard lock(dispatcher.mutex);
    if (auto known = dispatcher.to_define_again.extract(words)) {
      impl_->definitions.push_back(std::move(known.mapped()));
      return absl::OkStatus();
    }
  }
  auto d = std::make_shared<Definition>();
  d->name = parsed->FullName();
  d->schema = schema;
  d->words = words;
  d->file = where.file;
  d->spec.name = d->name.c_str();
  d->spec.schema = d->schema.c_str();
  d->spec.doc = "";
  d->spec.file = d->file.c_str();
  d->spec.line = where.line;
  d->spec.op_class = OpClass::kCustom;
  d->spec.form = OpForm::kFunctional;
  d->spec.dtype_arg = d->spec.dims_arg = d->spec.keepdim_arg = -1;
  d->spec.num_args = d->spec.num_functional_args = static_cast<int16_t>(parsed->arguments.size());
  d->spec.num_outputs = static_cast<int16_t>(parsed->returns.size());
  for (size_t i = 0; i < parsed->arguments.size() && i < 64; ++i)
    if (parsed->arguments[i].is_mutable()) d->spec.written_args |= uint64_t{1} << i;
  d->op = std::make_unique<Operator>(&d->spec);
  impl_->definitions.push_back(std::move(d));
  return absl::OkStatus();
}

OperatorSpec& Scope::LastDefined() {
  impl_->definitions.back()->completed = true;
  return impl_->definitions.back()->spec;
}

absl::StatusOr<int> Scope::Impl::KeyOf(const std::string& key) const {
  const int bit = KeyByName(key);
  if (bit >= 0) return bit;
  for (const std::string& b : backends)
    if (b == key) return RegisterBackendName(key);
  return absl::NotFoundError(
      absl::StrCat("Plugin (", name, ") registers a kernel for (", key,
                   "), which is neither a layer nor a backend; register the device or layer first."));
}

absl::Status Scope::Impl::CheckExtensions(bool may_replace) const {
  for (const Extension& e : extensions) {
    if (const std::string owner = ExtensionOwner(e.name); !owner.empty() && !(may_replace && owner == name))
      return absl::AlreadyExistsError(absl::StrCat("The extension (", e.name, ") is offered by the plugin (",
                                                   owner, ") already; disable that first."));
  }
  return absl::OkStatus();
}

absl::Status Scope::Impl::Check(Dispatcher& d, bool may_replace) const {
  for (const auto& def : definitions) {
    if (const Operator* old = d.Find(def->name))
      return absl::AlreadyExistsError(
          absl::StrCat("Operator (", def->name, ") is defined already, as ", old->spec().schema, "."));
    for (const auto& other : definitions)
      if (other != def && other->name == def->name)
        return absl::AlreadyExistsError(
            absl::StrCat("Operator (", def->name, ") is defined twice by (", name, ")."));
  }
  for (const NamedKernel& k : kernels) {
    const absl::StatusOr<int> key = KeyOf(k.key);
    if (!key.ok()) return key.status();
    if (k.entry.kind == KernelEntry::Kind::kFallthrough && *key < keys::kBackendCount)
      return absl::InvalidArgumentError(absl::StrCat("Plugin (", name, ") lets calls of (", k.op,
                                                     ") pass the backend (", k.key,
                                                     "), behind which is nothing; only layers are passed."));
  }
  for (const NamedClass& c : classes)
    if (auto bit = KeyOf(c.backend); !bit.ok()) return bit.status();
  for (const NamedFallback& f : fallbacks)
    if (auto bit = KeyOf(f.key); !bit.ok()) return bit.status();
  for (const std::string& layer : decompose)
    if (auto bit = KeyOf(layer); !bit.ok()) return bit.status();
  return CheckExtensions(may_replace);
}

absl::Status Scope::Impl::PublishDevices() {
  try {
    for (const NamedDevice& device : devices) PublishDeviceTable(device.name.c_str(), device.kept);
    return absl::OkStatus();
  } catch (const Error& error) {
    return absl::FailedPreconditionError(error.message());
  }
}

std::vector<std::string> Scope::Impl::DropUnfit(Dispatcher& d) {
  std::vector<std::string> said;
  std::vector<NamedKernel> fit;
  for (NamedKernel& k : kernels) {
    const Operator* op = d.Find(k.op);
    for (const auto& def : definitions)
      if (def->name == k.op) op = def->op.get();
    const std::string why = op ? d.Fit(*op, k.entry) : "";
    if (why.empty())
      fit.push_back(std::move(k));
    else
      said.push_back(absl::StrCat("The kernel of plugin (", name, ") for (", k.op, ") at (", k.key, ") ", why,
                                  " It is left out; the plugin's other kernels are not."));
  }
  kernels = std::move(fit);
  return said;
}

namespace {
const Scope* ScopeOf(const Scope* scope) { return scope; }
template <typename Entry>
const Scope* ScopeOf(const Entry& entry) {
  return entry.scope;
}
// Over what older scopes have there and under what younger ones have: a scope that comes back after it was
// disabled finds its place again.
template <typename Entry>
void PutByRank(std::vector<Entry>& stack, Entry entry) {
  const uint64_t rank = ScopeOf(entry)->rank();
  auto at = stack.end();
  while (at != stack.begin() && ScopeOf(*(at - 1))->rank() > rank) --at;
  stack.insert(at, std::move(entry));
}
}  // namespace

void Scope::Impl::Put(Dispatcher& d, const Scope* scope) {
  for (const NamedPlace& layer : layers) d.brought_by[static_cast<size_t>(layer.number)] = scope;
  for (const NamedPlace& kind : kinds) d.brought_by[static_cast<size_t>(kFirstKindKey + kind.number)] = scope;
  for (auto& def : definitions) {
    def->committed = true;
    d.AddOperator(def->op.get());
    d.StateOf(*def->op).defined_by = scope;
  }
  for (const std::string& b : backends)
    PutByRank(d.backends[static_cast<size_t>(RegisterBackendName(b))], scope);
  for (NamedKernel& k : kernels) {
    k.entry.scope = scope;
    k.entry.key = *KeyOf(k.key);
    Operator* op = d.Find(k.op);
    PutByRank(op ? d.StateOf(*op).kernels : d.waiting[k.op], k.entry);
  }
  for (NamedClass& c : classes) {
    c.entry.scope = scope;
    auto& classes = d.classes[static_cast<size_t>(RegisterBackendName(c.backend))];
    PutByRank(classes[static_cast<size_t>(c.op_class)], c.entry);
  }
  for (NamedFallback& f : fallbacks) {
    f.entry.scope = scope;
    PutByRank(d.fallbacks[static_cast<size_t>(*KeyOf(f.key))], f.entry);
  }
  for (const std::string& layer : decompose) {
    const int key = *KeyOf(layer);
    PutByRank(d.decompose_at[static_cast<size_t>(key)], scope);
    if (key < kCompositeKey) d.asleep = d.asleep - KeySet::Of(key);
  }
}

void Scope::Impl::Offer() const {
  for (const Extension& e : extensions) PublishExtension(e, name);
  for (const NamedPlace& kind : kinds) frames::EnableKind(kind.number, kind.kind);
}

void Scope::Impl::Withdraw(const Impl* successor) const {
  const auto goes_on = [](const auto& list, const std::string& name) {
    return std::any_of(list.begin(), list.end(), [&](const auto& e) { return e.name == name; });
  };
  for (const NamedPlace& kind : kinds)
    if (!successor || !goes_on(successor->kinds, kind.name)) frames::DisableKind(kind.number);
  for (const Extension& e : extensions)
    if (!successor || !goes_on(successor->extensions, e.name)) WithdrawExtension(e);
}

void Scope::Impl::Take(Dispatcher& d, const Scope* scope) {
  for (const Scope*& brought_by : d.brought_by)
    if (brought_by == scope) brought_by = nullptr;
  const auto ours = [scope](const auto& e) { return e.scope == scope; };
  for (const NamedKernel& k : kernels) {
    if (Operator* op = d.Find(k.op))
      std::erase_if(d.StateOf(*op).kernels, ours);
    else if (auto it = d.waiting.find(k.op); it != d.waiting.end())
      std::erase_if(it->second, ours);
  }
  for (auto& per_backend : d.classes)
    for (auto& stack : per_backend) std::erase_if(stack, ours);
  for (auto& stack : d.fallbacks) std::erase_if(stack, ours);
  for (int key = 0; key < kNumKeys; ++key) {
    auto& stack = d.decompose_at[static_cast<size_t>(key)];
    if (std::erase(stack, scope) > 0 && stack.empty() && key < kCompositeKey && !IsThirdPartyLayer(key))
      d.asleep = d.asleep | KeySet::Of(key);
  }
  for (auto& stack : d.backends) std::erase(stack, scope);
  for (auto& def : definitions) d.RemoveOperator(def->op.get());
}

namespace {
// Drops what must be made anew: only the operators touched, unless a class, a
// fallback, a device or a layer's rule changed.
template <typename Impl>
void DropTables(Dispatcher& d, const Impl& impl) {
  if (!impl.classes.empty() || !impl.fallbacks.empty() || !impl.decompose.empty() || !impl.backends.empty() ||
      !impl.kinds.empty() || impl.kernels.size() > 50) {
    d.DropAllTables();
    return;
  }
  for (const NamedKernel& k : impl.kernels)
    if (Operator* op = d.Find(k.op)) d.DropGroup(*op);
}
}  // namespace

absl::Status Scope::Impl::Activate(Dispatcher& d, const Scope* scope, bool replaces,
                                   std::vector<std::string>& said) {
  if (absl::Status s = Check(d, replaces); !s.ok()) return s;
  if (absl::Status s = PublishDevices(); !s.ok()) return s;
  // Operators may have come, gone or changed since the kernels last stood there.
  for (NamedKernel& k : kernels) k.entry.earlier = nullptr;
  said = DropUnfit(d);
  if (!committed) d.notes[scope] = said;
  Put(d, scope);
  enabled = true;
  DropTables(d, *this);
  Offer();
  said.insert(said.end(), d.unsaid.begin(), d.unsaid.end());
  d.unsaid.clear();
  return absl::OkStatus();
}

void Scope::Impl::ShareDefinitions(const Impl& other) {
  for (std::shared_ptr<Definition>& ours : definitions)
    for (const std::shared_ptr<Definition>& theirs : other.definitions)
      if (!ours->completed && !theirs->completed && ours->schema == theirs->schema) ours = theirs;
}

absl::Status Scope::Impl::ActivateInPlaceOf(Dispatcher& d, const Scope* scope, Scope* other,
                                            std::vector<std::string>& said) {
  if (!other || !other->impl_->enabled) return Activate(d, scope, false, said);
  Impl& before = *other->impl_;
  if (!committed) {
    ShareDefinitions(before);
    rank = before.rank;
  }
  before.Take(d, other);
  const absl::Status s = Activate(d, scope, true, said);
  if (s.ok()) {
    before.Withdraw(this);
    before.enabled = false;
  } else {
    before.Put(d, other);
    static_cast<void>(before.PublishDevices());
  }
  DropTables(d, before);
  return s;
}

absl::Status Scope::Commit() {
  std::vector<std::string> said;
  {
    Dispatcher& d = Dispatcher::Get();
    std::lock_guard lock(d.mutex);
    if (!open()) return absl::FailedPreconditionError("The scope was committed or given up already.");
    impl_->rank = ++d.ranks;
    if (absl::Status s = impl_->ActivateInPlaceOf(d, this, impl_->replaced.get(), said); !s.ok()) return s;
    impl_->committed = true;
  }
  if (impl_->replaced) impl_->replaced->impl_->EndStreams();
  impl_->replaced.reset();
  for (const std::string& sentence : said) HostWarn(sentence);
  return absl::OkStatus();
}

void Scope::Disable() {
  {
    Dispatcher& d = Dispatcher::Get();
    std::lock_guard lock(d.mutex);
    if (!impl_->enabled) return;
    impl_->Withdraw();
    DropTables(d, *impl_);
    impl_->Take(d, this);
    impl_->enabled = false;
  }
  impl_->EndStreams();
}

void Scope::Impl::EndStreams() const {
  for (const NamedDevice& device : devices) DestroyIdleStreams(BackendIndex(device.name));
}

absl::Status Scope::Enable(Scope* replaced) {
  std::vector<std::string> said;
  {
    Dispatcher& d = Dispatcher::Get();
    std::lock_guard lock(d.mutex);
    if (!impl_->committed || impl_->enabled) return absl::OkStatus();
    if (absl::Status s = impl_->ActivateInPlaceOf(d, this, replaced, said); !s.ok()) return s;
  }
  if (replaced) replaced->impl_->EndStreams();
  for (const std::string& sentence : said) HostWarn(sentence);
  return absl::OkStatus();
}

Slot PreviousSlot(const Operator& op, std::string_view key, const Scope& scope) {
  const int bit = KeyByName(key);
  Dispatcher& d = Dispatcher::Get();
  std::lock_guard lock(d.mutex);
  // What the slot would hold without this scope's kernels and what came later.
  OperatorState& state = d.StateOf(op);
  std::vector<KernelEntry> saved = state.kernels;
  auto first = std::find_if(state.kernels.begin(), state.kernels.end(),
                            [&](const KernelEntry& e) { return e.scope == &scope && e.key == bit; });
  state.kernels.erase(
      std::remove_if(first, state.kernels.end(), [bit](const KernelEntry& e) { return e.key == bit; }),
      state.kernels.end());
  const Resolution r = d.ResolveSlot(op, bit);
  state.kernels = std::move(saved);
  return r.fallthrough || r.reason == SlotReason::kMissing ? Slot{nullptr, nullptr} : r.slot;
}

}  // namespace mica
