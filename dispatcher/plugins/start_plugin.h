// From a candidate to a running plugin: opens the shared object, holds what it says
// to its manifest, runs its init. Internal to the loader.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "dispatcher/plugins/plugins.h"

namespace mica {

// OK when the manifest's ABI and CPU features fit this host; `path` is for the
// message.
absl::Status CheckFits(const Manifest& manifest, const std::string& path);

// Opens the file and starts the plugin whose manifest is `info.manifest`. On error
// nothing of it is left in the dispatcher; the file stays mapped, as every opened
// plugin does. Takes the place of `replaced`, if given, when all of it stands.
absl::StatusOr<std::shared_ptr<Scope>> StartPlugin(const PluginInfo& info, std::shared_ptr<Scope> replaced);

}  // namespace mica
