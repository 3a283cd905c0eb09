// The plugin loader: finds, reads, opens and starts plugins, in that order, and
// says of each what became of it.
//
// A plugin is found by an explicit call, by MICA_PLUGINS, or in the folder
// lib/mica/plugins beside libmica; its manifest is read from the ELF note without
// opening the file. Backends and layers of that folder open on first use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mica {

struct Manifest {
  std::string name, vendor, version, cpu_features, runtime_version, provides;
  uint32_t abi_major = 0, abi_minor = 0;
};

enum class PluginState { kFound, kLoaded, kDisabled, kRefused };

struct PluginInfo {
  std::string path;
  std::string found_by;  // "folder", "MICA_PLUGINS", "call"
  Manifest manifest;
  PluginState state = PluginState::kFound;
  std::string reason;  // why refused; "" otherwise
};

// Reads the manifest of a shared object without opening it: bounded reads, every
// offset checked; errors name the file and what is wrong with it.
absl::StatusOr<Manifest> ReadManifest(const std::string& path);

// Opens and starts one plugin now.
absl::Status LoadPlugin(const std::string& path);
absl::Status DisablePlugin(std::string_view name);
absl::Status EnablePlugin(std::string_view name);
std::vector<PluginInfo> Plugins();

// Looks through MICA_PLUGINS (_ONLY, _DISABLE) and the folder, once; opens those
// that MICA_PLUGINS names.
void DiscoverPlugins();
// Adds a folder to look in; used by the Python package.
void AddPluginFolder(const std::string& folder);
// Opens the plugin that provides `what` ("backend:cpu", "layer:Autograd") if one
// was found and is not open yet. False if there is none or it was refused.
bool EnsureProvider(std::string_view what);
// One sentence: which plugin is missing and where it was looked for.
std::string MissingProviderSentence(std::string_view what);

}  // namespace mica
