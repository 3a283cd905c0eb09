// Processes of their own for what a process can do only once: another environment, a driver's end.
//
// Hidden test cases of this very program run there: their tag begins with a dot, and they are in files
// whose names do not end in _test, since `./dev test FILE` runs what is hidden too. And a folder for
// this process's kernel cache, which the machine's own must not answer for.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace gpu::test {

// The folder of this process that XDG_CACHE_HOME names; it goes with the process.
const std::string& CacheFolder();

// Runs the test cases of `tag` in a process with these variables set, requires that all pass and that it
// ends well, and returns what it printed.
std::string RunHidden(const std::string& tag,
                      const std::vector<std::pair<std::string, std::string>>& environment);

// How a fork that runs the body ends: its exit status, or minus the signal. No Catch2 in there.
int StatusOfFork(const std::function<int()>& body);

}  // namespace gpu::test
