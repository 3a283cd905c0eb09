// libFuzzer target of what the loader reads of strangers' files: the ELF note of a
// shared object and the description beside it. Whatever is accepted holds together;
// whatever is refused names the file in a sentence.
//
// The first byte chooses: a description; raw bytes as a shared object; or bytes
// behind a right ELF header, so that program headers and notes are reached.
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "dispatcher/plugins/manifest.h"

namespace {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

// A file that holds `bytes`, and its path.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes) : fd_(memfd_create("fuzz", 0)) {
    Require(write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "no memory file");
    path = "/proc/self/fd/" + std::to_string(fd_);
  }
  ~MemoryFile() { close(fd_); }
  std::string path;

 private:
  int fd_;
};

void CheckManifest(const mica::Manifest& m) {
  Require(!m.name.empty(), "a manifest without a name");
  Require(m.name.find_first_of("/, \"\n") == std::string::npos, "a name that is no name");
  Require(mica::DifferenceOf(m, m).empty(), "a manifest differs from itself");
  static_cast<void>(m.Provides("backend:cpu"));
}

template <typename Status>
void CheckRefusal(const Status& status, const std::string& path) {
  const std::string message(status.message());
  Require(message.find(path) != std::string::npos, "a refusal that does not name the file");
  Require(message.back() == '.', "a refusal that is no sentence");
}

// The first program headers stand right behind the ELF header.
std::string WithElfHeader(const std::string& bytes) {
  Elf64_Ehdr h{};
  std::memcpy(h.e_ident, ELFMAG, SELFMAG);
  h.e_ident[EI_CLASS] = ELFCLASS64;
  h.e_ident[EI_DATA] = ELFDATA2LSB;
  h.e_type = ET_DYN;
#if defined(__x86_64__)
  h.e_machine = EM_X86_64;
#else
  h.e_machine = EM_AARCH64;
#endif
  h.e_phoff = sizeof(h);
  h.e_phentsize = sizeof(Elf64_Phdr);
  h.e_phnum = 2;
  return std::string(reinterpret_cast<const char*>(&h), sizeof(h)) + bytes;
}

// A note whose text is the input, in a whole file.
std::string WithNote(const std::string& text) {
  const Elf64_Nhdr n{5, static_cast<Elf64_Word>(text.size()), 1};
  std::string note(reinterpret_cast<const char*>(&n), sizeof(n));
  note += std::string("Mica\0\0\0\0", 8) + text;
  Elf64_Phdr headers[2]{};
  headers[0].p_type = PT_NOTE;
  headers[0].p_offset = sizeof(Elf64_Ehdr) + sizeof(headers);
  headers[0].p_filesz = note.size();
  return WithElfHeader(std::string(reinterpret_cast<const char*>(headers), sizeof(headers)) + note);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 4 == 0) {
    const MemoryFile file(bytes);
    const auto d = mica::ReadDescription(file.path);
    if (!d.ok()) {
      CheckRefusal(d.status(), file.path);
      return 0;
    }
    Require(d->path[0] == '/', "a path that depends on the current folder");
    if (d->manifest) CheckManifest(*d->manifest);
    return 0;
  }
  const MemoryFile file(data[0] % 4 == 1 ? bytes : data[0] % 4 == 2 ? WithElfHeader(bytes) : WithNote(bytes));
  const auto m = mica::ReadManifest(file.path);
  if (m.ok())
    CheckManifest(*m);
  else
    CheckRefusal(m.status(), file.path);
  return 0;
}
