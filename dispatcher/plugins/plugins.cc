// The loader's face: loading, disabling, enabling, and asking for a provider.
#include "dispatcher/plugins/plugins.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "dispatcher/plugins/host.h"
#include "dispatcher/plugins/loader_state.h"
#include "dispatcher/plugins/start_plugin.h"

namespace mica {
namespace {

Entry* LoadedByName(Loader& l, std::string_view name) {
  for (auto& e : l.entries)
    if (e->info.manifest.name == name && e->info.state == PluginState::kLoaded) return e.get();
  return nullptr;
}

// Reads the file again: what was refused may have been mended.
absl::Status ReadAgain(Entry& e) {
  absl::StatusOr<Manifest> m = ReadManifest(e.info.path);
  if (!m.ok()) return m.status();
  if (e.described)
    if (const std::string difference = DifferenceOf(e.info.manifest, *m); !difference.empty())
      return absl::FailedPreconditionError(
          absl::StrCat("The description (", e.info.description, ") copies another manifest than (",
                       e.info.path, ") carries: ", difference, ". Install the two together."));
  e.info.manifest = *std::move(m);
  return absl::OkStatus();
}

}  // namespace

Loader& GetLoader() {
  static Loader* l = new Loader();
  return *l;
}

namespace {
thread_local std::shared_ptr<LentLock> t_lent;
}  // namespace

void SetLentLock(std::shared_ptr<LentLock> lock) { t_lent = std::move(lock); }

LoaderLock::LoaderLock() {
  Loader& l = GetLoader();
  if (t_lent) {
    borrowed_ = std::unique_lock(t_lent->mutex);
    if (t_lent->lent) {
      ++l.depth;
      return;
    }
    borrowed_.unlock();
  }
  l.mutex.lock();
  if (++l.depth == 1) HoldWarnings(true);
}

LoaderLock::~LoaderLock() {
  Loader& l = GetLoader();
  const bool outermost = --l.depth == 0;
  if (borrowed_.owns_lock()) return;
  void (*hook)() = nullptr;
  const size_t known = l.entries.size() + static_cast<size_t>(BackendNameCount());
  if (outermost && l.told != known) {
    l.told = known;
    hook = l.backends_hook;
  }
  l.mutex.unlock();
  if (outermost) HoldWarnings(false);
  if (hook) hook();
}

Entry& AddCandidate(Loader& l, const std::string& path, const std::string& found_by,
                    const Description* description) {
  const std::string real = RealPath(path);
  for (auto& e : l.entries)
    if (e->info.path == real) return *e;
  auto e = std::make_unique<Entry>();
  e->info.path = real;
  e->info.found_by = found_by;
  e->described = description && description->manifest;
  if (e->described) {
    e->info.manifest = *description->manifest;
  } else if (auto m = ReadManifest(real); m.ok()) {
    e->info.manifest = *std::move(m);
  } else {
    e->info.state = PluginState::kRefused;
    e->info.reason = std::string(m.status().message());
  }
  return *l.entries.emplace_back(std::move(e));
}

namespace {
// The loaded plugin has left the tables.
void NoteDisabled(Loader& l, Entry& e) {
  e.info.state = PluginState::kDisabled;
  e.disabled_at = ++l.disables;
}
}  // namespace

absl::Status LoadEntry(Loader& l, Entry& e, bool replaces) {
  absl::Status s = ReadAgain(e);
  if (s.ok()) s = CheckFits(e.info.manifest, e.info.path);
  Entry* const first = LoadedByName(l, e.info.manifest.name);
  if (s.ok() && first && first != &e && !replaces)
    s = absl::AlreadyExistsError(absl::StrCat("Two plugins have the name (", e.info.manifest.name, "): ",
                                              first->info.path, " stays, ", e.info.path, " is not loaded."));
  if (s.ok()) {
    e.starting = true;
    absl::StatusOr<std::shared_ptr<Scope>> scope = StartPlugin(e.info, first ? first->scope : nullptr);
    e.starting = false;
    s = scope.status();
    if (s.ok()) {
      if (first) NoteDisabled(l, *first);
      e.scope = *std::move(scope);
      e.info.notes = e.scope->Notes();
    }
  }
  e.info.state = s.ok() ? PluginState::kLoaded : PluginState::kRefused;
  e.info.reason = s.ok() ? "" : std::string(s.message());
  return s;
}

namespace {
absl::Status EnableEntry(Loader& l, Entry& e, bool replaces = false) {
  if (e.info.state == PluginState::kLoaded) return absl::OkStatus();
  Entry* const other = LoadedByName(l, e.info.manifest.name);
  if (other && !replaces)
    return absl::AlreadyExistsError(absl::StrCat("Plugin (", e.info.path, ") cannot be put back while ",
                                                 other->info.path, " of the same name (",
                                                 e.info.manifest.name, ") is loaded; disable that first."));
  if (absl::Status s = e.scope->Enable(other ? other->scope.get() : nullptr); !s.ok()) return s;
  if (other) NoteDisabled(l, *other);
  e.info.state = PluginState::kLoaded;
  return absl::OkStatus();
}

absl::Status LoadAt(const std::string& path, bool replaces) {
  const LoaderLock lock;
  Loader& l = GetLoader();
  Entry& e = AddCandidate(l, path, "call", nullptr);
  e.info.asked = true;
  if (e.info.state == PluginState::kLoaded) return absl::OkStatus();
  return e.info.state == PluginState::kDisabled ? EnableEntry(l, e, replaces) : LoadEntry(l, e, replaces);
}
}  // namespace

absl::Status LoadPlugin(const std::string& path) { return LoadAt(path, false); }
absl::Status ReplacePlugin(const std::string& path) { return LoadAt(path, true); }

absl::Status DisablePlugin(std::string_view name) {
  const LoaderLock lock;
  Loader& l = GetLoader();
  Entry* e = LoadedByName(l, name);
  if (!e)
    return absl::NotFoundError(absl::StrCat("No plugin of the name (", std::string(name), ") is loaded."));
  e->scope->Disable();
  NoteDisabled(l, *e);
  return absl::OkStatus();
}

absl::Status EnablePlugin(std::string_view name) {
  const LoaderLock lock;
  Loader& l = GetLoader();
  Entry* found = nullptr;
  for (auto& e : l.entries) {
    const bool named = e->info.manifest.name == name || e->info.path == RealPath(std::string(name));
    if (!named || !e->scope) continue;
    if (!found || e->disabled_at > found->disabled_at || e->info.state == PluginState::kLoaded)
      found = e.get();
    if (found->info.state == PluginState::kLoaded) break;
  }
  if (!found)
    return absl::NotFoundError(
        absl::StrCat("No plugin of the name (", std::string(name), ") was loaded before."));
  return EnableEntry(l, *found);
}

std::vector<PluginInfo> Plugins() {
  const LoaderLock lock;
  Loader& l = GetLoader();
  Search(l);
  AskFinder(l);
  std::vector<PluginInfo> out;
  for (const auto& e : l.entries) {
    if (e->scope) e->info.notes = e->scope->Notes();
    out.push_back(e->info);
  }
  return out;
}

std::vector<std::string> KnownBackends(Look look) {
  constexpr absl::string_view kKind = "backend:";
  const LoaderLock lock;
  Loader& l = GetLoader();
  if (look != Look::kNowhere) Search(l);
  if (look == Look::kEverywhere) AskFinder(l);
  std::vector<std::string> names;
  for (int b = 0; b < BackendNameCount(); ++b) names.push_back(BackendName(b));
  for (const auto& e : l.entries) {
    if (e->info.state != PluginState::kFound) continue;
    for (const absl::string_view item : absl::StrSplit(e->info.manifest.provides, ',')) {
      if (item.substr(0, kKind.size()) != kKind) continue;
      const std::string name(item.substr(kKind.size()));
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

void SetBackendsHook(void (*hook)()) {
  const LoaderLock lock;
  Loader& l = GetLoader();
  l.backends_hook = hook;
  l.told = l.entries.empty() ? static_cast<size_t>(BackendNameCount()) : 0;
}

std::vector<Registration> RegistrationsOf(std::string_view path) {
  const LoaderLock lock;
  for (const auto& e : GetLoader().entries)
    if (e->info.path == path && e->scope) return e->scope->Registrations();
  return {};
}

bool EnsureProvider(std::string_view what) {
  const LoaderLock lock;
  Loader& l = GetLoader();
  Search(l);
  for (bool asked : {false, true}) {
    if (asked) AskFinder(l);
    // By index: starting a plugin may find another.
    for (size_t i = 0; i < l.entries.size(); ++i) {
      Entry& e = *l.entries[i];
      if (e.starting || !e.info.manifest.Provides(what)) continue;
      if (e.info.state == PluginState::kLoaded) return true;
      if (e.info.state == PluginState::kFound && LoadEntry(l, e).ok()) return true;
    }
  }
  return false;
}

}  // namespace mica
