// What a plugin says of itself, read without running any of it: the manifest in
// its ELF note, and the description (*.json) that a folder of plugins holds.
//
// Both are hostile input: reads are bounded, every offset is checked, and errors
// name the file and what is wrong with it. A description is the manifest's flat
// JSON object with one more member, "path"; one that has "path" alone sends the
// reader to the ELF note.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace mica {

struct Manifest {
  std::string name, vendor, version, cpu_features, runtime_version, provides;
  uint32_t abi_major = 0, abi_minor = 0;

  bool operator==(const Manifest&) const = default;
  // Whether `what` stands in the comma-separated `provides`.
  bool Provides(std::string_view what) const;
};

// How the file is called whatever links lead to it; the path itself if it is not there.
std::string RealPath(const std::string& path);

// The manifest in the ELF note of a shared object.
absl::StatusOr<Manifest> ReadManifest(const std::string& path);

struct Description {
  std::string path;                  // of the shared object; absolute if the file's own is
  std::optional<Manifest> manifest;  // as the description copies it
};
absl::StatusOr<Description> ReadDescription(const std::string& file);

// The first member in which two manifests differ, as `member` (mine) (yours); "".
std::string DifferenceOf(const Manifest& mine, const Manifest& yours);

}  // namespace mica
