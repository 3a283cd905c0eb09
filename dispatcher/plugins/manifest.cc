// Every offset is checked against the file's size; nothing of the file is run.
#include "dispatcher/plugins/manifest.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <mica/abi.h>
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "dispatcher/plugins/flat_json.h"

namespace mica {
namespace {

constexpr int64_t kMaxNoteBytes = 1 << 16;
constexpr int64_t kMaxDescriptionBytes = 1 << 16;
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
  explicit File(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat st;
    if (fd_ >= 0 && fstat(fd_, &st) == 0 && S_ISREG(st.st_mode)) size_ = st.st_size;
  }
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool ok() const { return size_ >= 0; }
  int64_t size() const { return size_; }
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

// The members of a manifest that are text, by their names in JSON.
struct TextMember {
  const char* name;
  std::string Manifest::*member;
};
constexpr TextMember kTextMembers[] = {{"name", &Manifest::name},
                                       {"vendor", &Manifest::vendor},
                                       {"version", &Manifest::version},
                                       {"cpu_features", &Manifest::cpu_features},
                                       {"runtime_version", &Manifest::runtime_version},
                                       {"provides", &Manifest::provides}};

// Letters, digits, '_', '-' and '.': a name stands in lists, messages and paths.
bool IsPluginName(std::string_view name) {
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

absl::StatusOr<Manifest> ManifestOf(const FlatJsonMembers& members, const std::string& file) {
  Manifest m;
  bool has_abi = false;
  for (const auto& [key, value] : members) {
    for (const TextMember& t : kTextMembers)
      if (key == t.name) m.*t.member = value;
    if (key == "abi_major") has_abi = absl::SimpleAtoi(value, &m.abi_major);
    if (key == "abi_minor") (void)absl::SimpleAtoi(value, &m.abi_minor);
  }
  if (m.name.empty())
    return absl::InvalidArgumentError(absl::StrCat("The manifest in (", file, ") gives no name."));
  if (!IsPluginName(m.name))
    return absl::InvalidArgumentError(
        absl::StrCat("The manifest in (", file, ") gives the name (", m.name,
                     "), which is not made of letters, digits, '_', '-' and '.'."));
  if (!has_abi)
    return absl::InvalidArgumentError(
        absl::StrCat("The manifest in (", file, ") does not say its ABI: `abi_major` lacks."));
  return m;
}

absl::StatusOr<Manifest> ParseManifest(std::string_view json, const std::string& path) {
  FlatJsonMembers members;
  if (!ParseFlatJson(json, &members))
    return absl::InvalidArgumentError(
        absl::StrCat("The manifest in (", path, ") is not the flat JSON object that a plugin carries."));
  return ManifestOf(members, path);
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

std::string RealPath(const std::string& path) {
  std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  return real ? real.get() : path;
}

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

absl::StatusOr<Description> ReadDescription(const std::string& name) {
  const File file(name);
  if (!file.ok())
    return absl::NotFoundError(
        absl::StrCat("The plugin description (", name, ") does not exist or cannot be read."));
  if (file.size() > kMaxDescriptionBytes)
    return absl::InvalidArgumentError(absl::StrCat("The plugin description (", name, ") has ", file.size(),
                                                   " bytes; it may have ", kMaxDescriptionBytes, "."));
  std::string text(static_cast<size_t>(file.size()), '\0');
  FlatJsonMembers members;
  if (!file.Read(0, text.data(), text.size()) || !ParseFlatJson(text, &members))
    return absl::InvalidArgumentError(absl::StrCat("The plugin description (", name,
                                                   ") is not a flat JSON object of strings and numbers."));
  Description d;
  bool copies = false;
  for (const auto& [key, value] : members) {
    if (key == "path") d.path = value;
    copies |= key == "abi_major";
  }
  if (d.path.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("The plugin description (", name, ") gives no `path` of a shared object."));
  // Relative to the description.
  if (d.path[0] != '/') d.path = name.substr(0, name.rfind('/') + 1) + d.path;
  if (!copies) return d;
  absl::StatusOr<Manifest> m = ManifestOf(members, name);
  if (!m.ok()) return m.status();
  d.manifest = *std::move(m);
  return d;
}

bool Manifest::Provides(std::string_view what) const {
  for (absl::string_view item : absl::StrSplit(provides, ','))
    if (std::string_view(item.data(), item.size()) == what) return true;
  return false;
}

std::string DifferenceOf(const Manifest& mine, const Manifest& yours) {
  for (const TextMember& t : kTextMembers)
    if (mine.*t.member != yours.*t.member)
      return absl::StrCat("`", t.name, "` (", mine.*t.member, ") against (", yours.*t.member, ")");
  if (mine.abi_major != yours.abi_major || mine.abi_minor != yours.abi_minor)
    return absl::StrCat("ABI (", mine.abi_major, ".", mine.abi_minor, ") against (", yours.abi_major, ".",
                        yours.abi_minor, ")");
  return "";
}

}  // namespace mica
