#include "test/unit/gpu/child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "test/support/mica_test.h"

namespace gpu::test {
namespace {

struct Folder {
  Folder() {
    path = std::filesystem::temp_directory_path() / "mica-unit-gpu-XXXXXX";
    if (!mkdtemp(path.data())) std::abort();
    setenv("XDG_CACHE_HOME", path.c_str(), 1);
  }
  ~Folder() {
    std::error_code ignored;
    if (getpid() == owner) std::filesystem::remove_all(path, ignored);
  }
  std::string path;
  const pid_t owner = getpid();
};
const Folder g_folder;  // before any test asks for it

}  // namespace

const std::string& CacheFolder() { return g_folder.path; }

std::string RunHidden(const std::string& tag,
                      const std::vector<std::pair<std::string, std::string>>& environment) {
  std::string command = "env";
  for (const auto& [name, value] : environment) command += " '" + name + "=" + value + "'";
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  command += " '" + self.string() + "' '" + tag + "' 2>&1";
  FILE* output = popen(command.c_str(), "r");
  REQUIRE(output);
  std::string said;
  char part[4096];
  for (size_t n; (n = fread(part, 1, sizeof part, output)) > 0;) said.append(part, n);
  INFO(command << "\n" << said);
  REQUIRE(pclose(output) == 0);
  REQUIRE_THAT(said, Catch::Matchers::Contains("All tests passed"));
  return said;
}

int StatusOfFork(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace gpu::test
