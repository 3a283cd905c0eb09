// Compiled kernels kept on disk, for the next process.
//
// A driver asks it before its compiler runs. An entry is one file under
// $XDG_CACHE_HOME/mica/<folder>, or ~/.cache/mica/<folder>, named by a hash of its key. The
// file holds the key itself, lengths and a checksum: what does not match is as if it were not
// there. Files are written beside their place and renamed, so that many processes share a
// folder. Past a size the entries go that were not used for longest. Nothing here throws: where the folder
// cannot be written, nothing is kept. Not for what must not be lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace gpu {

class DiskCache {
 public:
  static constexpr int64_t kMostBytes = int64_t{512} << 20;

  // `folder` is a name, not a path; at most some `most_bytes` are kept there.
  explicit DiskCache(const std::string& folder, int64_t most_bytes = kMostBytes);

  // Whether bytes are kept under the key; writes them to *out.
  bool Find(const std::string& key, std::string* out) const;
  // Keeps the bytes if it can.
  void Keep(const std::string& key, const std::string& bytes) const;

  // Where the key's file lies; "" where there is no folder at all.
  std::string PathOf(const std::string& key) const;

 private:
  void Trim() const;

  std::string folder_;  // "" where neither XDG_CACHE_HOME nor HOME says where
  const int64_t most_bytes_;
  mutable std::atomic<int64_t> kept_{0};  // entries, by this process
};

}  // namespace gpu
