// Calling NVRTC: finding it, its options, and the sentence of what it rejects.
#include "plugins/cuda/compiler.h"

#include <stdlib.h>

#include <algorithm>
#include <vector>

#include <mica/plugin.h>

#include "plugins/cuda/api.h"
#include "plugins/cuda/context.h"
#include "plugins/cuda/folders.h"

namespace cuda {
namespace {

const char kPrelude[] =
#include "plugins/gpu/text/cuda_words.inc"
#include "plugins/gpu/text/vectors.inc"
    ;

struct Nvrtc {
  CompilerApi api;
  std::string version;             // "13.0"
  std::vector<int> architectures;  // 75, 80, ..., in ascending order
  std::string missing;
};

// Fills everything but `missing`; returns that.
std::string Open(Nvrtc& nvrtc) {
  const char* chosen = getenv("MICA_NVRTC");
  const bool is_chosen = chosen && *chosen;
  Library library;
  if (!library.Open(
          is_chosen ? std::vector<std::string>{chosen} : LibraryCandidates("libnvrtc.so", DriverVersion()),
          SymbolsOf(nvrtc.api))) {
    if (is_chosen)
      return std::string("NVIDIA's run-time compiler does not open at MICA_NVRTC's path (") + chosen +
             "), so no CUDA kernel compiles: " + library.reason() + ".";
    return "NVIDIA's run-time compiler (libnvrtc.so.13 or .12) is not found, so no CUDA kernel compiles: "
           "install "
           "CUDA's toolkit or the package nvidia-cuda-nvrtc, or set MICA_NVRTC to the library's path (" +
           library.reason() + ").";
  }
  int major = 0, minor = 0, count = 0;
  bool works = nvrtc.api.nvrtcVersion(&major, &minor) == NVRTC_SUCCESS;
  works = works && nvrtc.api.nvrtcGetNumSupportedArchs(&count) == NVRTC_SUCCESS && count > 0;
  if (works) {
    nvrtc.architectures.resize(static_cast<size_t>(count));
    works = nvrtc.api.nvrtcGetSupportedArchs(nvrtc.architectures.data()) == NVRTC_SUCCESS;
  }
  if (!works) return "NVIDIA's run-time compiler (" + library.path() + ") does not answer what it supports.";
  std::sort(nvrtc.architectures.begin(), nvrtc.architectures.end());
  nvrtc.version = std::to_string(major) + "." + std::to_string(minor);
  // The compiler opens its second half by name alone, and the loader finds what is open already.
  Library builtins;
  builtins.Open({library.folder() + "/libnvrtc-builtins.so." + nvrtc.version}, {});
  return "";
}

// Opened at the first use, and never destroyed.
const Nvrtc& GetNvrtc() {
  static const Nvrtc& nvrtc = *[] {
    auto* made = new Nvrtc;
    made->missing = Open(*made);
    return made;
  }();
  return nvrtc;
}

// A program that is destroyed at the end of the scope.
struct Program {
  explicit Program(const CompilerApi& api) : api(api) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (handle) api.nvrtcDestroyProgram(&handle);
  }
  const CompilerApi& api;
  nvrtcProgram handle = nullptr;
};

// Reads one of a program's results by its two functions; empty where they fail.
std::string Read(nvrtcProgram program, nvrtcResult (*size_of)(nvrtcProgram, size_t*),
                 nvrtcResult (*get)(nvrtcProgram, char*)) {
  size_t size = 0;
  if (size_of(program, &size) != NVRTC_SUCCESS || size == 0) return "";
  std::string result(size, '\0');
  if (get(program, result.data()) != NVRTC_SUCCESS) return "";
  return result;
}

std::string FirstLines(const std::string& log, int lines) {
  size_t end = 0;
  for (int i = 0; i < lines && end != std::string::npos; ++i) end = log.find('\n', i == 0 ? 0 : end + 1);
  std::string first = log.substr(0, end);
  while (!first.empty() && (first.back() == '\n' || first.back() == '\0')) first.pop_back();
  return first;
}

bool HasLine(const std::string& text, const std::string& line) {
  for (size_t at = text.find(line); at != std::string::npos; at = text.find(line, at + 1))
    if (at == 0 || text[at - 1] == '\n') return true;
  return false;
}

// 90 of "sm_90" and of "sm_90a"; 0 where it is none.
int ArchitectureNumber(const std::string& architecture) {
  if (architecture.rfind("sm_", 0) != 0) return 0;
  return atoi(architecture.c_str() + 3);
}

[[noreturn]] void Throw(const Nvrtc& nvrtc, const std::string& what, const std::string& architecture,
                        nvrtcResult result, const std::string& log) {
  std::string message = "NVIDIA's run-time compiler (nvrtc " + nvrtc.version +
                        ") does not compile the kernel of (" + what + ") for (" + architecture + "), with " +
                        nvrtc.api.nvrtcGetErrorString(result) + " (" + std::to_string(result) + ")";
  message += log.empty() ? "." : ":\n" + FirstLines(log, 6);
  MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME, message);
}

}  // namespace

const std::string& CompilerMissing() { return GetNvrtc().missing; }

std::string CompilerVersion() {
  const Nvrtc& nvrtc = GetNvrtc();
  // The number stands for the options below: count it up with them.
  return nvrtc.missing.empty() ? "nvrtc " + nvrtc.version + ", options 1" : "nvrtc (missing)";
}

const char* KernelPrelude() { return kPrelude; }

std::string CompileKernel(const std::string& text, const std::string& architecture, const std::string& what) {
  const Nvrtc& nvrtc = GetNvrtc();
  if (!nvrtc.missing.empty()) MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME, nvrtc.missing);
  const int number = ArchitectureNumber(architecture);
  if (number <= 0)
    MICA_PLUGIN_THROW(MICA_ERROR_VALUE, "The architecture (" + architecture +
                                            ") is not of CUDA, whose names look like (sm_90).");
  const auto newer = std::upper_bound(nvrtc.architectures.begin(), nvrtc.architectures.end(), number);
  if (newer == nvrtc.architectures.begin())
    MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME,
                      "NVIDIA's run-time compiler (nvrtc " + nvrtc.version + ") has no support for (" +
                          architecture + "): the oldest architecture that it knows is (sm_" +
                          std::to_string(nvrtc.architectures.front()) + "). Install an older CUDA toolkit.");
  const int known = *(newer - 1);
  const bool is_known = known == number;

  const std::vector<std::string> options = {
      "--gpu-architecture=" + (is_known ? architecture : "compute_" + std::to_string(known)),
      "--std=c++17",
      "--device-as-default-execution-space",
      "--disable-warnings",
      HasLine(text, "#pragma MICA_CONTRACT") ? "--fmad=true" : "--fmad=false",
  };
  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());

  Program program(nvrtc.api);
  nvrtcResult result = nvrtc.api.nvrtcCreateProgram(&program.handle, text.c_str(), (what + ".cu").c_str(), 0,
                                                    nullptr, nullptr);
  if (result != NVRTC_SUCCESS) Throw(nvrtc, what, architecture, result, "");
  result =
      nvrtc.api.nvrtcCompileProgram(program.handle, static_cast<int>(arguments.size()), arguments.data());
  if (result != NVRTC_SUCCESS)
    Throw(nvrtc, what, architecture, result,
          Read(program.handle, nvrtc.api.nvrtcGetProgramLogSize, nvrtc.api.nvrtcGetProgramLog));
  std::string binary = is_known ? Read(program.handle, nvrtc.api.nvrtcGetCUBINSize, nvrtc.api.nvrtcGetCUBIN)
                                : Read(program.handle, nvrtc.api.nvrtcGetPTXSize, nvrtc.api.nvrtcGetPTX);
  if (binary.empty()) Throw(nvrtc, what, architecture, result, "It returned no code.");
  return binary;
}

}  // namespace cuda
