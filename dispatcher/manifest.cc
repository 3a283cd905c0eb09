// Reads a plugin's manifest from its ELF note, as from a stranger: every offset
// is checked against the file's size, nothing of the file is run.
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "mica/abi.h"
#include "mica/dispatcher/plugins.h"

namespace mica {
namespace {

constexpr int64_t kMaxNoteBytes = 1 << 16;
constexpr int kMaxHeaders = 256;
#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
constexpr const char* kMachineName = "x86-64";
#else
constexpr uint16_t kMachine = EM_AARCH64;
constexpr const char* kMachineName = "aarch64";
#endif

class File {
 public:
  explicit File(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat st;
    if (fd_ >= 0 && fstat(fd_, &st) == 0 && S_ISREG(st.st_mode)) size_ = st.st_size;
  }
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  bool ok() const { return size_ >= 0; }
  // Whether [offset, offset + size) lies inside.
  bool Has(uint64_t offset, uint64_t size) const {
    return offset <= static_cast<uint64_t>(size_) && size <= static_cast<uint64_t>(size_) - offset;
  }
  // All of [offset, offset + size) or false.
  bool Read(uint64_t offset, void* out, uint64_t size) const {
    if (!Has(offset, size)) return false;
    return pread(fd_, out, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
  }

 private:
  int fd_;
  int64_t size_ = -1;
};

// A flat JSON object of strings and numbers, as MICA_PLUGIN writes it.
class FlatJson {
 public:
  explicit FlatJson(std::string_view text) : text_(text) {}
  // Calls f(key, value) for each member; false on anything else.
  template <typename F>
  bool Parse(F&& f) {
    if (!Take('{')) return false;
    if (Take('}')) return AtEnd();
    do {
      std::string key, value;
      if (!String(key) || !Take(':') || !(Peek() == '"' ? String(value) : Number(value))) return false;
      f(key, value);
    } while (Take(','));
    return Take('}') && AtEnd();
  }

 private:
  void Space() {
    while (pos_ < text_.size() && std::strchr(" \t\r\n", text_[pos_]) && text_[pos_]) ++pos_;
  }
  char Peek() {
    Space();
    return pos_ < text_.size() ? text_[pos_] : '\0';
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++pos_;
    return true;
  }
  bool AtEnd() {
    Space();
    return pos_ == text_.size();
  }
  bool String(std::string& out) {
    if (!Take('"')) return false;
    while (pos_ < text_.size() && text_[pos_] != '"') {
      const unsigned char c = static_cast<unsigned char>(text_[pos_]);
      if (c < 0x20 || c == '\\') return false;
      out.push_back(text_[pos_++]);
    }
    return pos_ < text_.size() && text_[pos_++] == '"';
  }
  bool Number(std::string& out) {
    while (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9') out.push_back(text_[pos_++]);
    return !out.empty() && out.size() < 10;
  }

  std::string_view text_;
  size_t pos_ = 0;
};

absl::StatusOr<Manifest> ParseManifest(std::string_view json, const std::string& path) {
  Manifest m;
  const bool ok = FlatJson(json).Parse([&](const std::string& key, const std::string& value) {
    if (key == "name")
      m.name = value;
    else if (key == "vendor")
      m.vendor = value;
    else if (key == "version")
      m.version = value;
    else if (key == "cpu_features")
      m.cpu_features = value;
    else if (key == "runtime_version")
      m.runtime_version = value;
    else if (key == "provides")
      m.provides = value;
    else if (key == "abi_major")
      (void)absl::SimpleAtoi(value, &m.abi_major);
    else if (key == "abi_minor")
      (void)absl::SimpleAtoi(value, &m.abi_minor);
  });
  if (!ok)
    return absl::InvalidArgumentError(
        absl::StrCat("The manifest in (", path, ") is not the flat JSON object that a plugin carries."));
  if (m.name.empty())
    return absl::InvalidArgumentError(absl::StrCat("The manifest in (", path, ") gives no name."));
  return m;
}

// The payload of the Mica note among the notes in `data`.
std::optional<std::string_view> FindNote(std::string_view data) {
  size_t at = 0;
  while (data.size() - at >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr h;
    std::memcpy(&h, data.data() + at, sizeof(h));
    at += sizeof(h);
    const size_t name_bytes = (size_t{h.n_namesz} + 3) / 4 * 4, desc_bytes = (size_t{h.n_descsz} + 3) / 4 * 4;
    // The name field of MICA_PLUGIN_NOTE_ is 8 bytes wide, which is 5 rounded up.
    if (name_bytes > data.size() - at || h.n_descsz > data.size() - at - name_bytes) return std::nullopt;
    const std::string_view name = data.substr(at, h.n_namesz);
    const std::string_view desc = data.substr(at + name_bytes, h.n_descsz);
    if (h.n_type == MICA_NOTE_TYPE && name == std::string_view(MICA_NOTE_NAME, 5)) return desc;
    at += name_bytes + desc_bytes;
    if (at > data.size()) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<Manifest> ReadManifest(const std::string& path) {
  const File file(path);
  if (!file.ok())
    return absl::NotFoundError(
        absl::StrCat("The plugin file (", path, ") does not exist or cannot be read."));
  Elf64_Ehdr h;
  if (!file.Read(0, &h, sizeof(h)) || std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("The file (", path, ") is not a shared object: it has no ELF header."));
  if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_machine != kMachine)
    return absl::InvalidArgumentError(
        absl::StrCat("The file (", path, ") is built for another machine (ELF machine ", h.e_machine,
                     "); this process is ", kMachineName, ", 64-bit."));
  if (h.e_type != ET_DYN || h.e_phentsize != sizeof(Elf64_Phdr) || h.e_phnum > kMaxHeaders)
    return absl::InvalidArgumentError(
        absl::StrCat("The file (", path, ") is not a shared object that can be opened."));
  std::optional<std::string> manifest;
  for (int i = 0; i < h.e_phnum; ++i) {
    Elf64_Phdr p;
    if (!file.Read(h.e_phoff + static_cast<uint64_t>(i) * sizeof(p), &p, sizeof(p)))
      return absl::InvalidArgumentError(
          absl::StrCat("The file (", path, ") is truncated: a program header lies beyond its end."));
    // The dynamic linker maps segments without asking the file's size, and dies
    // of SIGBUS when it touches what is not there.
    if (p.p_type == PT_LOAD && !file.Has(p.p_offset, p.p_filesz))
      return absl::InvalidArgumentError(
          absl::StrCat("The file (", path, ") is truncated: a segment lies beyond its end."));
    if (manifest || p.p_type != PT_NOTE || p.p_filesz > kMaxNoteBytes) continue;
    std::string notes(p.p_filesz, '\0');
    if (!file.Read(p.p_offset, notes.data(), notes.size()))
      return absl::InvalidArgumentError(
          absl::StrCat("The file (", path, ") is truncated: a note lies beyond its end."));
    if (const auto json = FindNote(notes)) manifest = std::string(*json);
  }
  if (manifest) return ParseManifest(*manifest, path);
  return absl::NotFoundError(
      absl::StrCat("The shared object (", path, ") carries no Mica manifest: it is not a plugin."));
}

}  // namespace mica
