// A host for plugins/cuda in tests without Mica's: memory by malloc, warnings and settings that a test reads
// and writes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cuda::test {

struct FakeHost {
  int emptied = 0;  // calls of empty_cache
  int refused = 0;  // that many allocations fail
  int64_t in_use = 0;
  std::vector<std::string> warnings;
  std::map<std::string, int64_t> settings;  // those that the plugin has asked for; 0 first
};

// The one of this process, which becomes the plugin's with the first call.
FakeHost& GetHost();

}  // namespace cuda::test
