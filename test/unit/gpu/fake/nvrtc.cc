// libnvrtc.so.13, imitated: what it "compiles" is a line with its options, and a text with the
// word BROKEN does not compile.
#include <cstdlib>
#include <cstring>
#include <string>

#define FAKE(type) extern "C" __attribute__((visibility("default"))) type

namespace {

constexpr int kCompilation = 6;
constexpr int kArchitectures[] = {80, 75, 90};  // in no order

struct Program {
  std::string text, name, log, options;
};

int Give(const std::string& text, size_t* size) { return *size = text.size() + 1, 0; }
int Give(const std::string& text, char* to) { return std::strcpy(to, text.c_str()), 0; }

}  // namespace

FAKE(int) nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 7, 0; }
FAKE(int) nvrtcGetNumSupportedArchs(int* count) { return *count = 3, 0; }
FAKE(int) nvrtcGetSupportedArchs(int* to) {
  return std::memcpy(to, kArchitectures, sizeof kArchitectures), 0;
}
FAKE(const char*) nvrtcGetErrorString(int result) {
  return result == kCompilation ? "NVRTC_ERROR_COMPILATION" : "NVRTC_SUCCESS";
}
FAKE(int)
nvrtcCreateProgram(Program** program, const char* text, const char* name, int, const char* const*,
                   const char* const*) {
  return *program = new Program{text, name, "", ""}, 0;
}
FAKE(int) nvrtcDestroyProgram(Program** program) {
  delete *program;
  return *program = nullptr, 0;
}
FAKE(int) nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  for (int i = 0; i < count; ++i) program->options += std::string(" ") + options[i];
  if (program->text.find("BROKEN") == std::string::npos) return 0;
  program->log = program->name + "(1): error: BROKEN\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\n";
  return kCompilation;
}
FAKE(int) nvrtcGetProgramLogSize(Program* program, size_t* size) { return Give(program->log, size); }
FAKE(int) nvrtcGetProgramLog(Program* program, char* log) { return Give(program->log, log); }
FAKE(int) nvrtcGetPTXSize(Program* program, size_t* size) { return Give("ptx" + program->options, size); }
FAKE(int) nvrtcGetPTX(Program* program, char* ptx) { return Give("ptx" + program->options, ptx); }
FAKE(int) nvrtcGetCUBINSize(Program* program, size_t* size) { return Give("cubin" + program->options, size); }
FAKE(int) nvrtcGetCUBIN(Program* program, char* cubin) { return Give("cubin" + program->options, cubin); }
