#include "mica/dispatcher/plugins.h"

#include <dlfcn.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "mica/abi.h"
#include "mica/dispatcher/host.h"
#include "mica/dispatcher/status.h"
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace mica {
namespace {

struct Entry {
  PluginInfo info;
  std::shared_ptr<Scope> scope;
};

// Recursive: a plugin's start may ask for another plugin.
struct Loader {
  std::recursive_mutex mutex;
  std::vector<std::unique_ptr<Entry>> entries;
  std::vector<std::string> folders;
  bool discovered = false;
};
Loader& GetLoader() {
  static Loader* l = new Loader();
  return *l;
}

std::string Environment(const char* name) {
  const char* v = std::getenv(name);
  return v ? v : "";
}

std::vector<std::string> ListOf(const std::string& text, char separator) {
  return absl::StrSplit(text, separator, absl::SkipEmpty());
}

bool CpuHas(const std::string& feature) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (feature == "avx2") return __builtin_cpu_supports("avx2");
  if (feature == "fma") return __builtin_cpu_supports("fma");
  if (feature == "avx512f") return __builtin_cpu_supports("avx512f");
  if (feature == "sse4.2") return __builtin_cpu_supports("sse4.2");
  if (feature == "pclmul") return __builtin_cpu_supports("pclmul");
  if (feature == "aes") return __builtin_cpu_supports("aes");
#endif
  return false;
}

absl::Status Compatible(const Manifest& m, const std::string& path) {
  if (m.abi_major != MICA_ABI_MAJOR)
    return absl::FailedPreconditionError(absl::StrCat("Plugin (", path, ") speaks ABI major (", m.abi_major,
                                                      "); this Mica speaks (", MICA_ABI_MAJOR, ")."));
  for (const std::string& f : ListOf(m.cpu_features, ','))
    if (!CpuHas(f))
      return absl::FailedPreconditionError(
          absl::StrCat("Plugin (", path, ") needs the CPU feature (", f, "), which this machine lacks."));
  return absl::OkStatus();
}

std::string FolderOfLibmica() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&DiscoverPlugins), &info) || !info.dli_fname) return "";
  std::unique_ptr<char, decltype(&std::free)> real(realpath(info.dli_fname, nullptr), &std::free);
  const std::string path = real ? real.get() : info.dli_fname;
  return path.substr(0, path.rfind('/'));
}

// Opening a library may change the floating-point environment; it must not.
class FloatEnvironmentGuard {
#if defined(__x86_64__)
 public:
  FloatEnvironmentGuard() : saved_(_mm_getcsr()) {}
  ~FloatEnvironmentGuard() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#endif
};

Entry* FindLoaded(Loader& l, const std::string& name) {
  for (auto& e : l.entries)
    if (e->info.manifest.name == name &&
        (e->info.state == PluginState::kLoaded || e->info.state == PluginState::kDisabled))
      return e.get();
  return nullptr;
}

absl::Status Start(Entry& e) {
  const std::string& path = e.info.path;
  const FloatEnvironmentGuard guard;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    const char* why = dlerror();
    return absl::UnavailableError(
        absl::StrCat("Plugin (", path, ") cannot be opened: ", why ? why : "no reason given", "."));
  }
  auto query = reinterpret_cast<MicaPluginQuery>(dlsym(handle, MICA_PLUGIN_QUERY));
  auto init = reinterpret_cast<MicaPluginInit>(dlsym(handle, MICA_PLUGIN_INIT));
  if (!query || !init)
    return absl::InvalidArgumentError(absl::StrCat("Plugin (", path, ") lacks the entry symbol `",
                                                   query ? MICA_PLUGIN_INIT : MICA_PLUGIN_QUERY, "`."));
  const MicaManifest* m = query(MICA_ABI_MINOR);
  if (!m || m->struct_size < sizeof(MicaManifest) || m->abi_major != e.info.manifest.abi_major || !m->name ||
      e.info.manifest.name != m->name)
    return absl::InvalidArgumentError(
        absl::StrCat("Plugin (", path, ") answers its query with another manifest than its ELF note."));
  std::shared_ptr<Scope> scope = Scope::Create(e.info.manifest.name, path);
  const MicaRegistrar registrar = MakeRegistrar(scope.get());
  const MicaStatus status = init(HostTable(), &registrar);
  if (status) {
    try {
      ThrowStatus(status);
    } catch (const Error& error) {
      return absl::AbortedError(absl::StrCat("Plugin (", path, ") failed to start: ", error.message()));
    }
  }
  if (absl::Status s = scope->Commit(); !s.ok()) return s;
  e.scope = std::move(scope);
  return absl::OkStatus();
}

absl::Status LoadEntry(Loader& l, Entry& e) {
  absl::Status s = Compatible(e.info.manifest, e.info.path);
  if (Entry* first = FindLoaded(l, e.info.manifest.name); s.ok() && first && first != &e)
    s = absl::AlreadyExistsError(absl::StrCat("Two plugins have the name (", e.info.manifest.name, "): ",
                                              first->info.path, " stays, ", e.info.path, " is not loaded."));
  if (s.ok()) s = Start(e);
  e.info.state = s.ok() ? PluginState::kLoaded : PluginState::kRefused;
  e.info.reason = s.ok() ? "" : std::string(s.message());
  return s;
}

Entry& AddCandidate(Loader& l, const std::string& path, const std::string& found_by) {
  for (auto& e : l.entries)
    if (e->info.path == path) return *e;
  auto e = std::make_unique<Entry>();
  e->info.path = path;
  e->info.found_by = found_by;
  if (auto m = ReadManifest(path); m.ok()) {
    e->info.manifest = *std::move(m);
  } else {
    e->info.state = PluginState::kRefused;
    e->info.reason = std::string(m.status().message());
  }
  return *l.entries.emplace_back(std::move(e));
}

// {"path": "mica_cpu.so"}: relative to the file.
std::string PathInJson(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  const std::string s = text.str();
  const size_t key = s.find("\"path\"");
  if (key == std::string::npos) return "";
  const size_t open = s.find('"', s.find(':', key));
  const size_t close = open == std::string::npos ? open : s.find('"', open + 1);
  if (close == std::string::npos) return "";
  const std::string path = s.substr(open + 1, close - open - 1);
  return path.empty() || path[0] == '/' ? path : absl::StrCat(file.substr(0, file.rfind('/') + 1), path);
}

void SearchFolder(Loader& l, const std::string& folder) {
  glob_t found;
  if (glob(absl::StrCat(folder, "/*.json").c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i)
      if (const std::string path = PathInJson(found.gl_pathv[i]); !path.empty())
        AddCandidate(l, path, "folder");
  }
  globfree(&found);
}

bool Provides(const Manifest& m, std::string_view what) {
  const std::vector<std::string> list = ListOf(m.provides, ',');
  return std::find(list.begin(), list.end(), what) != list.end();
}

}  // namespace

absl::Status LoadPlugin(const std::string& path) {
  Loader& l = GetLoader();
  std::lock_guard lock(l.mutex);
  Entry& e = AddCandidate(l, path, "call");
  if (e.info.state == PluginState::kLoaded) return absl::OkStatus();
  if (e.info.manifest.name.empty()) {
    auto again = ReadManifest(path);
    if (!again.ok()) return again.status();
    e.info.manifest = *std::move(again);
  }
  return LoadEntry(l, e);
}

absl::Status DisablePlugin(std::string_view name) {
  Loader& l = GetLoader();
  std::lock_guard lock(l.mutex);
  Entry* e = FindLoaded(l, std::string(name));
  if (!e)
    return absl::NotFoundError(absl::StrCat("No plugin of the name (", std::string(name), ") is loaded."));
  e->scope->Disable();
  e->info.state = PluginState::kDisabled;
  return absl::OkStatus();
}

absl::Status EnablePlugin(std::string_view name) {
  Loader& l = GetLoader();
  std::lock_guard lock(l.mutex);
  Entry* e = FindLoaded(l, std::string(name));
  if (!e)
    return absl::NotFoundError(
        absl::StrCat("No plugin of the name (", std::string(name), ") was loaded before."));
  e->scope->Enable();
  e->info.state = PluginState::kLoaded;
  return absl::OkStatus();
}

std::vector<PluginInfo> Plugins() {
  DiscoverPlugins();
  Loader& l = GetLoader();
  std::lock_guard lock(l.mutex);
  std::vector<PluginInfo> out;
  for (const auto& e : l.entries) out.push_back(e->info);
  return out;
}

void AddPluginFolder(const std::string& folder) {
  Loader& l = GetLoader();
  std::lock_guard lock(l.mutex);
  l.folders.push_back(folder);
  l.discovered = false;
}

void DiscoverPlugins() {
  Loader& l = GetLoader();
  std::lock_guard lock(l.mutex);
  if (l.discovered) return;
  l.discovered = true;
  std::vector<Entry*> asked;
  for (const std::string& path : ListOf(Environment("MICA_PLUGINS"), ':')) {
    Entry& e = AddCandidate(l, path, "MICA_PLUGINS");
    if (e.info.state == PluginState::kFound)
      asked.push_back(&e);
    else if (e.info.state == PluginState::kRefused)
      HostWarn(e.info.reason);
  }
  SearchFolder(l, absl::StrCat(FolderOfLibmica(), "/mica/plugins"));
  for (const std::string& folder : l.folders) SearchFolder(l, folder);
  const std::vector<std::string> only = ListOf(Environment("MICA_PLUGINS_ONLY"), ',');
  const std::vector<std::string> disabled = ListOf(Environment("MICA_PLUGINS_DISABLE"), ',');
  const auto has = [](const std::vector<std::string>& v, const std::string& x) {
    return std::find(v.begin(), v.end(), x) != v.end();
  };
  for (auto& e : l.entries) {
    if (e->info.state != PluginState::kFound) continue;
    const std::string& name = e->info.manifest.name;
    const char* variable = !only.empty() && !has(only, name) ? "MICA_PLUGINS_ONLY"
                           : has(disabled, name)             ? "MICA_PLUGINS_DISABLE"
                                                             : nullptr;
    if (!variable) continue;
    e->info.state = PluginState::kRefused;
    e->info.reason = absl::StrCat("The environment variable ", variable, " leaves it out.");
  }
  for (Entry* e : asked) {
    if (e->info.state != PluginState::kFound) continue;
    if (absl::Status s = LoadEntry(l, *e); !s.ok()) HostWarn(std::string(s.message()));
  }
}

bool EnsureProvider(std::string_view what) {
  DiscoverPlugins();
  Loader& l = GetLoader();
  std::lock_guard lock(l.mutex);
  for (size_t i = 0; i < l.entries.size(); ++i) {
    Entry& e = *l.entries[i];
    if (!Provides(e.info.manifest, what)) continue;
    if (e.info.state == PluginState::kLoaded) return true;
    if (e.info.state == PluginState::kFound && LoadEntry(l, e).ok()) return true;
  }
  return false;
}

std::string MissingProviderSentence(std::string_view what) {
  Loader& l = GetLoader();
  std::lock_guard lock(l.mutex);
  std::vector<std::string> folders = l.folders;
  folders.insert(folders.begin(), absl::StrCat(FolderOfLibmica(), "/mica/plugins"));
  const std::string asked = Environment("MICA_PLUGINS");
  std::string text = absl::StrCat("No loaded plugin provides (", std::string(what),
                                  "). It was looked for in the folder ", absl::StrJoin(folders, " and "),
                                  " and in MICA_PLUGINS (", asked.empty() ? "not set" : asked, ").");
  for (const auto& e : l.entries)
    if (e->info.state == PluginState::kRefused)
      absl::StrAppend(&text, " ", e->info.reason);
    else if (e->info.state == PluginState::kDisabled && Provides(e->info.manifest, what))
      absl::StrAppend(&text, " Plugin (", e->info.manifest.name, ") provides it and is disabled.");
  return text;
}

}  // namespace mica
