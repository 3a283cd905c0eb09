// Runs the compiler: no shell, one temporary folder for each run.
#include "plugins/simt/compiler.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>
#include <vector>

#include <mica/plugin.h>

extern char** environ;

namespace simt {
namespace {

const char kPrelude[] =
#include "plugins/gpu/text/host_words.inc"
#include "plugins/gpu/text/vectors.inc"
#include "plugins/simt/maths.inc"
#include "plugins/simt/words.inc"
    ;

const char* const kFlags[] = {
    "-std=c++17",
    "-O1",
    "-fPIC",
    "-shared",
    "-fno-exceptions",
    "-fno-rtti",
    "-fwrapv",
    "-fno-math-errno",
    "-ffp-contract=off",
    "-w",
    "-fno-strict-aliasing",
    "-fno-threadsafe-statics",
    "-fvisibility=hidden",
    "-D_GLIBCXX_INCLUDE_NEXT_C_HEADERS",  // maths.inc says why
};

// A folder that goes with this object, with the files in it.
class Folder {
 public:
  Folder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base && base[0] ? base : "/tmp") + "/mica-simt-XXXXXX";
    MICA_PLUGIN_CHECK(
        mkdtemp(path_.data()), MICA_ERROR_RUNTIME,
        "The simulated GPU cannot make a folder (" + path_ + "): " + std::strerror(errno) + ".");
  }
  ~Folder() {
    for (const char* name : {"/text.cc", "/text.so", "/log"}) unlink((path_ + name).c_str());
    rmdir(path_.c_str());
  }
  std::string File(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Runs a program of the PATH with both outputs in the file `log`; whether it ended well.
bool RunProgram(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return false;
  int status = 0;
  pid_t ended;
  while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  // Where the program ignores SIGCHLD nobody says how it ended: what it wrote does.
  return ended < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

std::vector<std::string> Command() {
  const char* text = std::getenv("MICA_SIMT_CXX");
  std::istringstream words(text && text[0] ? text : "g++");
  return {std::istream_iterator<std::string>(words), {}};
}

// An entry (words.inc) for each `kernel void NAME(` of the text that no comment holds.
std::string Entries(const std::string& text) {
  const std::string word = "kernel void ";
  std::string entries;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::string line = text.substr(text.rfind('\n', at) + 1, at - text.rfind('\n', at) - 1);
    const size_t name = at + word.size(), end = text.find('(', name);
    if (end == std::string::npos || line.find("//") != std::string::npos) continue;
    entries += "SIMT_ENTRY(" + text.substr(name, end - name) + ")\n";
  }
  return entries;
}

}  // namespace

const char* Prelude() { return kPrelude; }

std::string CompilerVersion() {
  static std::mutex mutex;
  // Never destroyed: devices that end at exit still ask.
  static std::string &asked = *new std::string, &answer = *new std::string;
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<std::string> words = Command();
  std::string key;
  for (const std::string& word : words) key += word + " ";
  if (key == asked) return answer;
  asked = key;
  answer.clear();
  if (words.empty()) return answer;
  const Folder folder;
  words.push_back("--version");
  answer = RunProgram(words, folder.File("log")) ? ReadFile(folder.File("log")) : "";
  answer = answer.substr(0, answer.find('\n'));
  if (answer.empty()) return answer;
  answer = key + "(" + answer + ")";
  for (const char* flag : kFlags) answer += std::string(" ") + flag;
  return answer;
}

std::string CompileText(const std::string& text, const std::string& what) {
  const size_t prelude = sizeof(kPrelude) - 1;
  const bool has_prelude = text.compare(0, prelude, kPrelude) == 0;
  const std::string own = text.substr(has_prelude ? prelude : 0);
  // The compiler's lines count from the text's first one on.
  const std::string source =
      "#line 1 \"prelude\"\n" + std::string(kPrelude) + "\n#line 1 \"kernel\"\n" + own + "\n" + Entries(own);
  MICA_PLUGIN_CHECK(!CompilerVersion().empty(), MICA_ERROR_RUNTIME,
                    "The compiler of the simulated GPU does not run, which the kernel of " + what +
                        " needs: install g++, or say in MICA_SIMT_CXX which one there is.");
  const Folder folder;
  std::ofstream(folder.File("text.cc"), std::ios::binary) << source;
  std::vector<std::string> words = Command();
  words.insert(words.end(), std::begin(kFlags), std::end(kFlags));
  for (const char* word : {"-o", "text.so", "text.cc"}) {
    words.push_back(word[0] == '-' ? word : folder.File(word));
  }
  const bool done = RunProgram(words, folder.File("log"));
  std::string binary = ReadFile(folder.File("text.so"));
  if (!done || binary.empty()) {
    std::istringstream log(ReadFile(folder.File("log")));
    std::string lines, line;
    for (int i = 0; i < 6 && std::getline(log, line); ++i) lines += "\n  " + line;
    MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME,
                      "The kernel of " + what + " does not compile for the simulated GPU:" + lines);
  }
  return binary;
}

// From a file: the loader takes two memory files with one number for one object.
void* LoadObject(const std::string& binary) {
  const Folder folder;
  const std::string path = folder.File("text.so");
  std::ofstream(path, std::ios::binary) << binary;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle) return handle;
  const char* why = dlerror();
  MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME,
                    "The simulated GPU cannot load a kernel: " + std::string(why ? why : ""));
}

}  // namespace simt
