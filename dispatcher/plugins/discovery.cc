// Where plugins are looked for: MICA_PLUGINS, folders of descriptions, the finder.
//
// Nothing is opened here but what MICA_PLUGINS names. A hundred descriptions cost a
// hundred small reads.
#include <dlfcn.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "dispatcher/plugins/host.h"
#include "dispatcher/plugins/loader_state.h"

namespace mica {
namespace {

std::string Environment(const char* name) {
  const char* v = std::getenv(name);
  return v ? v : "";
}

std::vector<std::string> ListOf(const std::string& text, char separator) {
  return absl::StrSplit(text, separator, absl::SkipEmpty());
}

// A candidate that has no file to point to.
void AddRefused(Loader& l, const std::string& path, const std::string& found_by, std::string reason) {
  auto e = std::make_unique<Entry>();
  e->info.path = path;
  e->info.found_by = found_by;
  e->info.state = PluginState::kRefused;
  e->info.reason = std::move(reason);
  l.entries.push_back(std::move(e));
}

void SearchFolder(Loader& l, const std::string& folder) {
  glob_t found;
  if (glob(absl::StrCat(folder, "/*.json").c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      const std::string file = found.gl_pathv[i];
      if (const absl::StatusOr<Description> d = ReadDescription(file); d.ok())
        AddCandidate(l, d->path, "folder", &*d).info.description = file;
      else
        AddRefused(l, file, "folder", std::string(d.status().message()));
    }
  }
  globfree(&found);
}

// MICA_PLUGINS_ONLY and MICA_PLUGINS_DISABLE, on what was found from `first` on.
void LeaveOut(Loader& l, size_t first) {
  const std::vector<std::string> only = ListOf(Environment("MICA_PLUGINS_ONLY"), ',');
  const std::vector<std::string> disabled = ListOf(Environment("MICA_PLUGINS_DISABLE"), ',');
  const auto has = [](const std::vector<std::string>& v, const std::string& x) {
    return std::find(v.begin(), v.end(), x) != v.end();
  };
  for (size_t i = first; i < l.entries.size(); ++i) {
    PluginInfo& info = l.entries[i]->info;
    if (info.state != PluginState::kFound) continue;
    const char* variable = !only.empty() && !has(only, info.manifest.name) ? "MICA_PLUGINS_ONLY"
                           : has(disabled, info.manifest.name)             ? "MICA_PLUGINS_DISABLE"
                                                                           : nullptr;
    if (!variable) continue;
    info.state = PluginState::kRefused;
    info.reason = absl::StrCat("The environment variable ", variable, " leaves it out.");
  }
}

}  // namespace

std::string OwnPluginFolder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&DiscoverPlugins), &info) || !info.dli_fname) return "mica/plugins";
  const std::string path = RealPath(info.dli_fname);
  return absl::StrCat(path.substr(0, path.rfind('/')), "/mica/plugins");
}

void Search(Loader& l) {
  if (l.searched) return;
  l.searched = true;
  const size_t first = l.entries.size();
  std::vector<Entry*> asked;
  for (const std::string& path : ListOf(Environment("MICA_PLUGINS"), ':')) {
    Entry& e = AddCandidate(l, path, "MICA_PLUGINS", nullptr);
    e.info.asked = true;
    if (e.info.state == PluginState::kRefused) HostWarn(e.info.reason);
    asked.push_back(&e);
  }
  SearchFolder(l, OwnPluginFolder());
  for (const std::string& folder : l.folders) SearchFolder(l, folder);
  LeaveOut(l, first);
  for (Entry* e : asked) {
    if (e->info.state != PluginState::kFound) continue;
    if (absl::Status s = LoadEntry(l, *e); !s.ok()) HostWarn(std::string(s.message()));
  }
}

void AskFinder(Loader& l) {
  if (l.asked_finder || !l.finder || l.depth > 1) return;
  l.asked_finder = true;
  // The finder runs Python, so whoever waits for the GIL must not wait for us.
  const PluginFinder finder = l.finder;
  --l.depth;
  l.mutex.unlock();
  const std::vector<FoundPlugin> found = finder();
  l.mutex.lock();
  ++l.depth;
  const size_t first = l.entries.size();
  for (const FoundPlugin& f : found) {
    if (f.error.empty())
      AddCandidate(l, f.path, f.found_by, nullptr);
    else
      AddRefused(l, f.path, f.found_by, f.error);
  }
  LeaveOut(l, first);
}

void DiscoverPlugins() {
  const LoaderLock lock;
  Search(GetLoader());
}

void AddPluginFolder(const std::string& folder) {
  const LoaderLock lock;
  Loader& l = GetLoader();
  if (!l.searched) {
    l.folders.push_back(folder);
    return;
  }
  l.folders.push_back(folder);
  const size_t first = l.entries.size();
  SearchFolder(l, folder);
  LeaveOut(l, first);
}

void SetPluginFinder(PluginFinder finder) {
  const LoaderLock lock;
  GetLoader().finder = finder;
  GetLoader().asked_finder = false;
}

std::string MissingProviderSentence(std::string_view what) {
  const LoaderLock lock;
  Loader& l = GetLoader();
  std::vector<std::string> folders = l.folders;
  folders.insert(folders.begin(), OwnPluginFolder());
  const std::string asked = Environment("MICA_PLUGINS");
  std::string text =
      absl::StrCat("No loaded plugin provides (", std::string(what), "). It was looked for in the folder ",
                   absl::StrJoin(folders, " and "), ", in MICA_PLUGINS (", asked.empty() ? "not set" : asked,
                   ")", l.finder ? " and in Python's entry points" : "", ".");
  for (const auto& e : l.entries)
    if (e->info.state == PluginState::kRefused)
      absl::StrAppend(&text, " ", e->info.reason);
    else if (e->info.state == PluginState::kDisabled && e->info.manifest.Provides(what))
      absl::StrAppend(&text, " Plugin (", e->info.manifest.name, ") provides it and is disabled.");
  return text;
}

}  // namespace mica
