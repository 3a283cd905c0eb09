// Scopes put in place by Commit and Enable, taken out by Disable, one in the place of another.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/devices/streams.h"
#include "dispatcher/plugins/host.h"
#include "dispatcher/registration/extensions.h"
#include "dispatcher/registration/scope_impl.h"
#include "tensor/device.h"

namespace mica {

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
    const auto alike = [&](const auto& other) { return other->name == def->name; };
    if (std::count_if(definitions.begin(), definitions.end(), alike) > 1)
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
  for (const NamedRule& r : rules) {
    const absl::StatusOr<int> key = KeyOf(r.key);
    if (!key.ok()) return key.status();
    if (*key < keys::kBackendCount || *key == kCompositeKey)
      return absl::InvalidArgumentError(absl::StrCat("Plugin (", name, ") registers a rule for (", r.key,
                                                     "), which is neither a layer nor a frame kind."));
  }
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
  for (NamedRule& r : rules) {
    r.entry.scope = scope;
    PutByRank(d.rules[static_cast<size_t>(*KeyOf(r.key))], r.entry);
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
  for (auto& stack : d.rules) std::erase_if(stack, ours);
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
  if (!impl.classes.empty() || !impl.rules.empty() || !impl.fallbacks.empty() || !impl.decompose.empty() ||
      !impl.backends.empty() || !impl.kinds.empty() || impl.kernels.size() > 50) {
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

void Scope::Impl::ShareDefinitions(Dispatcher& d, const Impl& other) {
  for (std::shared_ptr<Definition>& ours : definitions) {
    for (const std::shared_ptr<Definition>& theirs : other.definitions) {
      if (ours->completed || theirs->completed || ours->schema != theirs->schema) continue;
      if (ours->committed && ours != theirs) d.retired.push_back(ours);
      ours = theirs;
    }
  }
}

absl::Status Scope::Impl::ActivateInPlaceOf(Dispatcher& d, const Scope* scope, Scope* other,
                                            std::vector<std::string>& said) {
  if (!other || !other->impl_->enabled) return Activate(d, scope, false, said);
  Impl& before = *other->impl_;
  if (!committed) {
    ShareDefinitions(d, before);
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

}  // namespace mica
