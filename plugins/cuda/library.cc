// Opening shared libraries: dlopen, dlsym, and why neither worked.
#include "plugins/cuda/library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstring>

namespace cuda {

bool Library::Open(const std::vector<std::string>& candidates, const std::vector<Symbol>& symbols) {
  bool exists = false;  // reason_ is of a file that exists, which tells more than one that does not
  for (const std::string& candidate : candidates) {
    const bool is_path = candidate.find('/') != std::string::npos;
    if (is_path && access(candidate.c_str(), R_OK) != 0) {
      if (reason_.empty()) reason_ = candidate + ": cannot be read";
      continue;
    }
    void* handle = dlopen(candidate.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (!handle) {
      const char* error = dlerror();
      if (reason_.empty() || (is_path && !exists)) reason_ = error ? error : candidate + ": cannot be opened";
      exists = exists || is_path;
      continue;
    }
    link_map* map = nullptr;
    const bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name;
    path_ = known ? map->l_name : candidate;
    if (Resolve(handle, symbols)) {
      handle_ = handle;
      return true;
    }
    path_.clear();
    exists = true;
    dlclose(handle);
  }
  if (reason_.empty()) reason_ = "no place to look for it";
  return false;
}

bool Library::Resolve(void* handle, const std::vector<Symbol>& symbols) {
  for (const Symbol& symbol : symbols) {
    void* address = dlsym(handle, symbol.name);
    if (!address) {
      reason_ = path_ + " lacks the function " + symbol.name;
      return false;
    }
    std::memcpy(symbol.slot, &address, sizeof address);
  }
  return true;
}

std::string Library::folder() const {
  const size_t slash = path_.rfind('/');
  return slash == std::string::npos ? std::string() : path_.substr(0, slash);
}

}  // namespace cuda
