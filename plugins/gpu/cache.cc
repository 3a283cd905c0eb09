// The files of DiskCache: a header of four numbers, the key, the bytes.
#include "plugins/gpu/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <vector>

namespace gpu {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTrimEach = 64;      // entries between two looks at the folder
constexpr time_t kUsedAgain = 3600;    // seconds behind which a use is written down
constexpr time_t kUnfinished = 86400;  // seconds behind which nobody finishes a file

struct Header {
  uint64_t magic = 0x3145484341434d47;  // "GMCACHE1"
  uint64_t key_size = 0;
  uint64_t size = 0;
  uint64_t checksum = 0;  // of the bytes
};

// FNV-1a by words of 64 bits; `seed` makes two independent halves of a file's name.
uint64_t Hash(const std::string& bytes, uint64_t seed) {
  uint64_t h = 0xcbf29ce484222325 ^ seed;
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t word = 0;
    bytes.copy(reinterpret_cast<char*>(&word), 8, i);
    h = (h ^ word) * 0x100000001b3;
    h ^= h >> 32;
  }
  return (h ^ bytes.size()) * 0x9E3779B97F4A7C15;
}

bool ReadAll(int file, void* to, size_t size) {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t n = read(file, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool WriteAll(int file, const void* from, size_t size) {
  const char* at = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t n = write(file, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

void MakeFolders(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    mkdir(path.substr(0, at).c_str(), 0700);
  }
  mkdir(path.c_str(), 0700);
}

bool ReadEntry(int file, const std::string& key, std::string* out) {
  const Header expected;
  Header header;
  struct stat about;
  // What is kept is run: a plain file that this user alone could write.
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != geteuid() ||
      (about.st_mode & (S_IWGRP | S_IWOTH)) != 0 || about.st_size < static_cast<off_t>(sizeof(header)))
    return false;
  if (!ReadAll(file, &header, sizeof(header))) return false;
  if (header.magic != expected.magic || header.key_size != key.size()) return false;
  // Sizes first: a corrupt one must not ask for all memory there is.
  const uint64_t rest = static_cast<uint64_t>(about.st_size) - sizeof(header);
  if (rest < key.size() || header.size != rest - key.size()) return false;
  std::string held(key.size(), '\0'), bytes(header.size, '\0');
  if (!ReadAll(file, held.data(), held.size()) || held != key) return false;
  if (!ReadAll(file, bytes.data(), bytes.size()) || Hash(bytes, 0) != header.checksum) return false;
  *out = std::move(bytes);
  if (about.st_mtime < std::time(nullptr) - kUsedAgain) futimens(file, nullptr);
  return true;
}

struct Entry {
  std::string path;
  int64_t size;
  timespec used;
  bool operator<(const Entry& o) const {
    return used.tv_sec != o.used.tv_sec ? used.tv_sec < o.used.tv_sec : used.tv_nsec < o.used.tv_nsec;
  }
};

// The entries of a folder. Files that a process began to write and never finished go.
std::vector<Entry> Entries(const std::string& folder) {
  std::vector<Entry> entries;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string path = at->path().string();
    struct stat about;
    if (lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
    if (at->path().has_extension()) {
      if (about.st_mtime < std::time(nullptr) - kUnfinished) unlink(path.c_str());
    } else {
      entries.push_back({path, about.st_size, about.st_mtim});
    }
  }
  return entries;
}

}  // namespace

DiskCache::DiskCache(const std::string& folder, int64_t most_bytes) : most_bytes_(most_bytes) {
  const char* base = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (base && base[0] == '/') {
    folder_ = base;
  } else if (home && home[0] == '/') {
    folder_ = std::string(home) + "/.cache";
  } else {
    return;
  }
  folder_ += "/mica/" + folder;
}

std::string DiskCache::PathOf(const std::string& key) const {
  if (folder_.empty()) return "";
  char name[40];
  std::snprintf(name, sizeof(name), "/%016llx%016llx", static_cast<unsigned long long>(Hash(key, 0)),
                static_cast<unsigned long long>(Hash(key, 0x5bd1e995)));
  return folder_ + name;
}

bool DiskCache::Find(const std::string& key, std::string* out) const {
  const std::string path = PathOf(key);
  const int file = path.empty() ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return false;
  const bool found = ReadEntry(file, key, out);
  close(file);
  return found;
}

void DiskCache::Keep(const std::string& key, const std::string& bytes) const {
  const std::string path = PathOf(key);
  if (path.empty()) return;
  MakeFolders(folder_);
  std::string temporary = path + ".XXXXXX";
  const int file = mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0) return;
  Header header;
  header.key_size = key.size();
  header.size = bytes.size();
  header.checksum = Hash(bytes, 0);
  bool written = WriteAll(file, &header, sizeof(header)) && WriteAll(file, key.data(), key.size()) &&
                 WriteAll(file, bytes.data(), bytes.size());
  written = close(file) == 0 && written;
  if (!written || rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
  if (kept_++ % kTrimEach == 0) Trim();
}

// To three quarters, so that the next entries find room.
void DiskCache::Trim() const {
  std::vector<Entry> entries = Entries(folder_);
  int64_t total = 0;
  for (const Entry& entry : entries) total += entry.size;
  if (total <= most_bytes_) return;
  std::sort(entries.begin(), entries.end());
  for (const Entry& entry : entries) {
    if (total <= most_bytes_ / 4 * 3) return;
    if (unlink(entry.path.c_str()) == 0) total -= entry.size;
  }
}

}  // namespace gpu
