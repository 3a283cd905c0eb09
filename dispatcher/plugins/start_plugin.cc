#include "dispatcher/plugins/start_plugin.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fenv.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>

#include <mica/abi.h>
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/plugins/cpu_features.h"
#include "dispatcher/plugins/host.h"
#include "dispatcher/plugins/loader_state.h"
#include "dispatcher/plugins/status.h"
#include "mica/fingerprint.h"
#include "tensor/device.h"

namespace mica {
namespace {

// Opening a library may change the floating-point environment (a static
// constructor of -ffast-math code turns denormals off); it must not.
class FloatEnvironmentGuard {
 public:
  FloatEnvironmentGuard() { fegetenv(&saved_); }
  ~FloatEnvironmentGuard() { fesetenv(&saved_); }

 private:
  fenv_t saved_;
};

double SecondsOf(const char* variable, double otherwise) {
  double seconds = otherwise;
  const char* text = std::getenv(variable);
  if (text && (!absl::SimpleAtod(text, &seconds) || !(seconds > 0 && seconds < 1e6))) return otherwise;
  return seconds;
}

// What a plugin's code in a thread of its own has come to.
struct Outcome {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  absl::Status status = absl::AbortedError("The plugin ended the thread that its init runs in.");
};

// Runs the plugin's own code, which may never come back: in a thread of its own. Says
// on stderr, where no lock is needed, that it takes long, and gives up waiting in the end;
// the thread is left behind then, and what it still registers is refused.
template <typename F>
absl::Status InTime(const PluginInfo& info, F code) {
  const auto outcome = std::make_shared<Outcome>();
  const auto lent = std::make_shared<LentLock>();
  std::thread([outcome, lent, code = std::move(code)] {
    struct Ending {
      Outcome& outcome;
      ~Ending() {
        const std::lock_guard lock(outcome.mutex);
        outcome.done = true;
        outcome.changed.notify_all();
      }
    } const ending{*outcome};
    SetLentLock(lent);
    outcome->status = code();
  }).detach();
  const auto ends = [&](double seconds) {
    std::unique_lock lock(outcome->mutex);
    return outcome->changed.wait_for(lock, std::chrono::duration<double>(seconds),
                                     [&] { return outcome->done; });
  };
  const double limit = SecondsOf("MICA_PLUGIN_START_SECONDS", 300);
  const double slow = std::min(SecondsOf("MICA_PLUGIN_SLOW_SECONDS", 10), limit);
  if (ends(slow)) return outcome->status;
  if (slow < limit) {
    std::fprintf(stderr,
                 "mica: warning: Plugin (%s) at (%s) has been starting for (%g) s and has not come back; the "
                 "process waits for it until (%g) s. MICA_PLUGINS_DISABLE=%s leaves it out.\n",
                 info.manifest.name.c_str(), info.path.c_str(), slow, limit, info.manifest.name.c_str());
    if (ends(limit - slow)) return outcome->status;
  }
  const std::lock_guard lock(lent->mutex);
  lent->lent = false;
  return absl::DeadlineExceededError(
      absl::StrCat("Plugin (", info.path, ") had not started after (", limit,
                   ") s: its init has not come back, and what it registered is taken back. "
                   "MICA_PLUGIN_START_SECONDS sets how long it may take."));
}

absl::Status Refused(const PluginInfo& info, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("Plugin (", info.path, ") ", absl::string_view(why.data(), why.size())));
}

// Calls into the plugin's entry; what it throws breaks rule 6 and stops here.
template <typename F>
absl::Status CallEntry(const PluginInfo& info, const char* symbol, F&& f) {
  std::string what;
  try {
    f();
    return absl::OkStatus();
  } catch (const std::exception& e) {
    what = e.what();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    what = "an object that is no std::exception of this process";
  }
  return Refused(info, absl::StrCat("lets an exception pass its C border, in `", symbol, "`: ", what,
                                    ". A plugin catches everything and returns a status."));
}

std::string Text(const char* s) { return s ? s : ""; }

// What query answers, held to the manifest that stands in the file.
absl::Status CheckAnswer(const PluginInfo& info, const MicaManifest* m) {
  if (!m) return Refused(info, "answers its query with no manifest.");
  if (m->struct_size < MICA_MANIFEST_SIZE_1_0)
    return Refused(info, absl::StrCat("answers its query with a manifest of struct_size (", m->struct_size,
                                      "); ABI 1.0 asks for (", MICA_MANIFEST_SIZE_1_0, ") bytes."));
  const Manifest answer{
      Text(m->name),     Text(m->vendor), Text(m->version), Text(m->cpu_features), Text(m->runtime_version),
      Text(m->provides), m->abi_major,    m->abi_minor};
  if (const std::string difference = DifferenceOf(answer, info.manifest); !difference.empty())
    return Refused(
        info, absl::StrCat("answers its query with another manifest than its ELF note: ", difference, "."));
  return absl::OkStatus();
}

absl::Status RunInit(const PluginInfo& info, MicaPluginInit init, const MicaRegistrar* registrar) {
  MicaStatus status = nullptr;
  absl::Status called = CallEntry(info, MICA_PLUGIN_INIT, [&] { status = init(HostTable(), registrar); });
  if (!called.ok()) return called;
  if (!status) return absl::OkStatus();
  if (status == BareStatus(MICA_ERROR_NOT_IMPLEMENTED))
    return absl::AbortedError(absl::StrCat("Plugin (", info.path,
                                           ") failed to start: it needs more of its host than ABI (",
                                           MICA_ABI_MAJOR, ".", MICA_ABI_MINOR, ") gives."));
  try {
    ThrowStatus(status);
  } catch (const Error& error) {
    return absl::AbortedError(absl::StrCat("Plugin (", info.path, ") failed to start: ", error.message()));
  }
}

// What it says that it provides, held to what it registers: others find, and take over, what is said there
// alone.
absl::Status CheckProvides(const PluginInfo& info, const Scope& scope) {
  const std::vector<std::string>& registered = scope.Backends();
  const std::string says = absl::StrCat("; it provides (", info.manifest.provides, ").");
  for (const std::string& name : registered)
    if (!info.manifest.Provides(absl::StrCat("backend:", name)))
      return Refused(info, absl::StrCat("registers the device (", name,
                                        "), and its manifest does not provide (backend:", name, ")", says));
  for (const absl::string_view item : absl::StrSplit(info.manifest.provides, ',')) {
    const absl::string_view name = absl::StripPrefix(item, "backend:");
    if (name.size() != item.size() &&
        std::find(registered.begin(), registered.end(), name) == registered.end())
      return Refused(
          info, absl::StrCat("does not register the device (", name, ") that its manifest provides", says));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFits(const Manifest& m, const std::string& path) {
  if (m.abi_major != MICA_ABI_MAJOR)
    return absl::FailedPreconditionError(absl::StrCat("Plugin (", path, ") speaks ABI major (", m.abi_major,
                                                      "); this Mica speaks (", MICA_ABI_MAJOR, ")."));
  if (absl::StartsWith(m.runtime_version, "libmica ") && m.runtime_version != MICA_CORE_BUILD)
    return absl::FailedPreconditionError(absl::StrCat(
        "Plugin (", path, ") is C++ of another build of Mica (", m.runtime_version, ") than this one (",
        MICA_CORE_BUILD, "), whose types it shares; build or install the two together."));
  if (absl::Status s = CheckCpuFeatures(m.cpu_features); !s.ok())
    return absl::FailedPreconditionError(absl::StrCat("Plugin (", path, ") ", s.message(), "."));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Scope>> StartPlugin(const PluginInfo& info, std::shared_ptr<Scope> replaced) {
  const FloatEnvironmentGuard guard;
  void* handle = dlopen(info.path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    const char* why = dlerror();
    return absl::UnavailableError(
        absl::StrCat("Plugin (", info.path, ") cannot be opened: ", why ? why : "no reason given", "."));
  }
  auto query = reinterpret_cast<MicaPluginQuery>(dlsym(handle, MICA_PLUGIN_QUERY));
  auto init = reinterpret_cast<MicaPluginInit>(dlsym(handle, MICA_PLUGIN_INIT));
  if (!query || !init)
    return Refused(
        info, absl::StrCat("lacks the entry symbol `", query ? MICA_PLUGIN_INIT : MICA_PLUGIN_QUERY, "`."));
  const MicaManifest* answer = nullptr;
  absl::Status s = CallEntry(info, MICA_PLUGIN_QUERY, [&] { answer = query(MICA_ABI_MINOR); });
  if (s.ok()) s = CheckAnswer(info, answer);
  if (!s.ok()) return s;

  // Never destroyed, as the plugin is never unmapped.
  const std::shared_ptr<Scope> scope =
      Scope::CreateInPlaceOf(std::move(replaced), info.manifest.name, info.path);
  GetLoader().kept.push_back(scope);
  if (info.manifest.vendor == "Mica") scope->SetIsMicas();
  const HostParallelFor parallel_for = GetParallelFor();
  // A plugin may keep the pointer, against the rules; what it then does is refused by
  // the scope, so the registrar must outlive it.
  const auto registrar = std::make_shared<const MicaRegistrar>(MakeRegistrar(scope.get()));
  GetLoader().kept.push_back(registrar);
  s = InTime(info, [info, init, registrar] { return RunInit(info, init, registrar.get()); });
  if (s.ok()) s = CheckProvides(info, *scope);
  // What overrides stands above what it overrides, whichever is asked for first.
  if (s.ok())
    for (const std::string& key : scope->BorrowedKeys())
      EnsureProvider(absl::StrCat(BackendIndex(key) >= 0 ? "backend:" : "layer:", key));
  if (s.ok())
    if (s = scope->Commit(); !s.ok())
      s = Refused(info, absl::StrCat("registers what cannot stand: ", s.message()));
  if (s.ok()) return scope;
  const std::lock_guard lock(RegistrationMutex());
  scope->Abandon();
  SetParallelFor(parallel_for);
  return s;
}

}  // namespace mica
