#include "plugins/cpu/contraction/open_libraries.h"

#include <dlfcn.h>

#include <string>

#include <mica/plugin.h>

namespace mica::cpu {
namespace {

constexpr char kFile[] = "mica_cpu_libraries.so";

// Beside this object; or, for programs that hold the plugin's objects (unit tests,
// benchmarks), in the plugin folder of an installation's or build's tree.
void* Open(std::string* error) {
  Dl_info here;
  std::string folder = dladdr(reinterpret_cast<void*>(&Libraries), &here) != 0 ? here.dli_fname : "";
  folder.resize(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/') + 1);
  for (const char* inside : {"", "../lib/mica/plugins/"}) {
    const std::string path = folder + inside + kFile;
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return handle;
    const char* reason = dlerror();
    if (error->empty()) *error = reason ? reason : "no reason given";
  }
  return nullptr;
}

const LibraryTable* Load() {
  std::string error;
  void* handle = Open(&error);
  void* symbol = handle ? dlsym(handle, MICA_CPU_LIBRARIES_SYMBOL) : nullptr;
  if (symbol) return reinterpret_cast<decltype(&mica_cpu_libraries)>(symbol)();
  const MicaHost* host = plugin::Host();
  if (host && host->warn) {
    const std::string text = "The libraries of the cpu backend (oneDNN and OpenBLAS) could not be opened (" +
                             error + "); matrix products and convolutions run on slow portable kernels.";
    host->warn(plugin::Str(text));
  }
  return nullptr;
}

}  // namespace

const LibraryTable* Libraries() {
  static const LibraryTable* const table = Load();
  return table;
}

}  // namespace mica::cpu
