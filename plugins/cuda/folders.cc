// The places of NVIDIA's libraries, from the environment, the process's maps and its interpreter.
#include "plugins/cuda/folders.h"

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace cuda {
namespace {

using Paths = std::vector<std::string>;

void AddOnce(Paths& paths, const std::string& path) {
  if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
}

void AddMatches(Paths& paths, const std::string& pattern) {
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i) AddOnce(paths, found.gl_pathv[i]);
  globfree(&found);
}

std::string Environment(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

Paths SplitAtColons(const std::string& text) {
  Paths parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// The folders of Python packages that files of this process lie in: what stands before "/nvidia/" or
// "/torch/", and any site-packages.
void AddMappedSites(Paths& sites) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t start = line.find('/');
    if (start == std::string::npos) continue;
    const std::string path = line.substr(start);
    for (const char* package : {"/nvidia/", "/torch/lib/"}) {
      const size_t at = path.rfind(package);
      if (at != std::string::npos && at > 0) AddOnce(sites, path.substr(0, at));
    }
    for (const std::string folder : {"/site-packages/", "/dist-packages/"}) {
      const size_t at = path.rfind(folder);
      if (at != std::string::npos) AddOnce(sites, path.substr(0, at + folder.size() - 1));
    }
  }
}

// The folders of packages of an interpreter in `<prefix>/bin`.
void AddSitesOfPrefix(Paths& sites, const std::string& prefix) {
  AddMatches(sites, prefix + "/lib/python3*/site-packages");
  AddMatches(sites, prefix + "/lib64/python3*/site-packages");
  AddMatches(sites, prefix + "/lib/python3*/dist-packages");
}

std::string ParentOfFolder(const std::string& file) {
  const size_t name = file.rfind('/');
  if (name == std::string::npos || name == 0) return "";
  const size_t folder = file.rfind('/', name - 1);
  return folder == std::string::npos ? "" : file.substr(0, folder);
}

// The program as it was called: a virtual environment's python is a link, which /proc/self/exe follows.
Paths ProgramsOfThisProcess() {
  Paths programs;
  std::ifstream command("/proc/self/cmdline");
  std::string called;
  std::getline(command, called, '\0');
  for (const std::string& program : {called, std::string("python3")}) {
    if (program.empty()) continue;
    if (program.find('/') != std::string::npos) {
      AddOnce(programs, program);
      continue;
    }
    for (const std::string& folder : SplitAtColons(Environment("PATH"))) {
      const std::string path = folder + "/" + program;
      if (access(path.c_str(), X_OK) != 0) continue;
      AddOnce(programs, path);
      break;
    }
  }
  char executable[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", executable, sizeof executable);
  if (length > 0 && static_cast<size_t>(length) < sizeof executable)
    AddOnce(programs, std::string(executable, static_cast<size_t>(length)));
  return programs;
}

// Every folder to look in, "" for the loader's own search.
Paths Folders() {
  Paths folders = SplitAtColons(Environment("MICA_CUDA_LIBRARIES"));
  folders.emplace_back();
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const std::string toolkit = Environment(variable);
    if (!toolkit.empty()) AddOnce(folders, toolkit + "/lib64");
  }
  AddOnce(folders, "/usr/local/cuda/lib64");

  Paths sites;
  AddMappedSites(sites);
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = Environment(variable);
    if (!prefix.empty()) AddSitesOfPrefix(sites, prefix);
  }
  for (const std::string& program : ProgramsOfThisProcess()) {
    const std::string prefix = ParentOfFolder(program);
    if (!prefix.empty()) AddSitesOfPrefix(sites, prefix);
  }
  const std::string home = Environment("HOME");
  if (!home.empty()) AddSitesOfPrefix(sites, home + "/.local");
  for (const std::string& site : sites) {
    AddMatches(folders, site + "/nvidia/*/lib");
    AddMatches(folders, site + "/torch/lib");
  }
  return folders;
}

void AddFile(Paths& candidates, const Paths& folders, const std::string& file) {
  for (const std::string& folder : folders) candidates.push_back(folder.empty() ? file : folder + "/" + file);
}

}  // namespace

std::vector<std::string> LibraryCandidates(const std::string& name, int driver_version) {
  // What a compiler of a newer major version makes, an older driver does not load.
  const bool old_driver = driver_version > 0 && driver_version < 13000;
  const Paths folders = Folders();
  Paths candidates;
  for (const char* major : {old_driver ? "12" : "13", old_driver ? "13" : "12"})
    AddFile(candidates, folders, name + "." + major);
  return candidates;
}

std::vector<std::string> FileCandidates(const std::string& file) {
  Paths candidates;
  AddFile(candidates, Folders(), file);
  return candidates;
}

}  // namespace cuda
