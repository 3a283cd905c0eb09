// CPU features by the names that a plugin's manifest uses.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace mica {

// OK when this machine has all of the comma-separated features; otherwise an error
// that names the first one that lacks, or that Mica does not know.
absl::Status CheckCpuFeatures(std::string_view features);

}  // namespace mica
