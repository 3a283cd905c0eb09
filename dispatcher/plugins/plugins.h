// The plugin loader: finds, reads, opens and starts plugins, in that order, and
// says of each what became of it.
//
// A plugin is found by an explicit call, by MICA_PLUGINS, by a description
// (*.json) in the folder lib/mica/plugins beside libmica, or by a finder that the
// binding brings (Python's entry points). Its manifest is read from its
// description or its ELF note, without opening the file; it is opened when
// something that it provides is first needed. Whatever is wrong with a plugin
// refuses that plugin, by name and with the rule it broke: the process goes on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatcher/plugins/manifest.h"
#include "dispatcher/registration/registration.h"

namespace mica {

enum class PluginState { kFound, kLoaded, kDisabled, kRefused };

struct PluginInfo {
  std::string path;
  std::string found_by;     // "folder", "MICA_PLUGINS", "call", "entry point acme = acme:plugins"
  bool asked = false;       // by name: its failure is the user's business
  std::string description;  // the *.json that points to it, or ""
  Manifest manifest;
  PluginState state = PluginState::kFound;
  std::string reason;              // why refused; "" otherwise
  std::vector<std::string> notes;  // what was left out of a plugin that did load
};

// Opens and starts one plugin now; takes an open one, and puts a disabled one back.
absl::Status LoadPlugin(const std::string& path);
// The loaded plugin of that name leaves the tables; another build of it may then
// be loaded in its place.
absl::Status DisablePlugin(std::string_view name);
// Puts a disabled plugin back, by name (the one that was disabled last) or path.
absl::Status EnablePlugin(std::string_view name_or_path);
// Opens another build of a loaded plugin and puts it in that one's place in one step: calls in other threads
// meet the one or the other. On error the loaded one stays. Where none of its name is loaded, LoadPlugin.
absl::Status ReplacePlugin(const std::string& path);
std::vector<PluginInfo> Plugins();
// What the plugin at `path` has registered; nothing when it is not loaded.
std::vector<Registration> RegistrationsOf(std::string_view path);

// Looks through MICA_PLUGINS (_ONLY, _DISABLE) and the folders, once, and opens
// what MICA_PLUGINS names.
void DiscoverPlugins();
// Adds a folder of descriptions to look in.
void AddPluginFolder(const std::string& folder);

// Where plugins are looked for that were not found yet: nowhere, in MICA_PLUGINS (which opens those) and the
// folders, or by the finder (below), too.
enum class Look { kNowhere, kInFolders, kEverywhere };
// The names of all backends: those registered, then those that plugins bring which were found and not opened.
std::vector<std::string> KnownBackends(Look look);
// Called when plugins were found or opened, so that there may be more backends: on the thread that did it,
// which then holds nothing of the loader's.
void SetBackendsHook(void (*hook)());

// A place to look for plugins that is slow to ask: it is asked once, when nothing
// in the folders provides what is needed, or when all plugins are listed.
struct FoundPlugin {
  std::string path;
  std::string found_by;
  std::string error;  // why there is no path; "" otherwise
};
using PluginFinder = std::vector<FoundPlugin> (*)();
void SetPluginFinder(PluginFinder finder);

// Opens the plugin that provides `what` ("backend:cpu", "layer:Autograd",
// "operators:acme") if one was found and is not open yet. False if there is none
// or it was refused.
bool EnsureProvider(std::string_view what);
// One sentence: which plugin is missing and where it was looked for.
std::string MissingProviderSentence(std::string_view what);

}  // namespace mica
