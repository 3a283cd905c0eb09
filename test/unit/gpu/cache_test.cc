// The kernels kept on disk: what was kept comes back, and what is damaged does not.
#include "plugins/gpu/cache.h"

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "test/support/mica_test.h"
#include "test/unit/gpu/child.h"

namespace gpu::test {
namespace {

std::string Found(const DiskCache& cache, const std::string& key) {
  std::string bytes;
  return cache.Find(key, &bytes) ? bytes : "(none)";
}

void WriteAt(const std::string& path, int64_t offset, char byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offset, offset < 0 ? std::ios::end : std::ios::beg);
  file.put(byte);
}

struct CacheHome {
  explicit CacheHome(const std::string& home) { setenv("XDG_CACHE_HOME", home.c_str(), 1); }
  ~CacheHome() { setenv("XDG_CACHE_HOME", CacheFolder().c_str(), 1); }
};

// A cache made while XDG_CACHE_HOME has this value.
DiskCache CacheIn(const std::string& home) {
  const CacheHome there(home);
  return DiskCache("cache_test");
}

TEST_CASE("a kernel comes back under its key alone", "[gpu][cache]") {
  const DiskCache cache("cache_test");
  REQUIRE(Found(cache, "key") == "(none)");
  const std::string bytes("a\0b", 3);
  cache.Keep("key", bytes);
  REQUIRE(Found(cache, "key") == bytes);
  REQUIRE(Found(cache, "other") == "(none)");
  REQUIRE(cache.PathOf("key").rfind(CacheFolder() + "/mica/cache_test/", 0) == 0);
  cache.Keep("key", "new");
  REQUIRE(Found(cache, "key") == "new");
  cache.Keep("empty", "");
  REQUIRE(Found(cache, "empty").empty());
  // Nothing is left beside the entries.
  for (const auto& file : std::filesystem::directory_iterator(CacheFolder() + "/mica/cache_test"))
    REQUIRE(file.path().filename().string().find('.') == std::string::npos);
}

TEST_CASE("a damaged file of the cache is as if it were not there", "[gpu][cache]") {
  const DiskCache cache("cache_test");
  const std::string path = cache.PathOf("key");
  const auto spoilt = [&](auto spoil) {
    cache.Keep("key", "bytes");
    REQUIRE(Found(cache, "key") == "bytes");
    spoil();
    const std::string found = Found(cache, "key");
    cache.Keep("key", "bytes");
    return found == "(none)" && Found(cache, "key") == "bytes";
  };
  CHECK(spoilt([&] { WriteAt(path, -1, 'x'); }));                  // the bytes
  CHECK(spoilt([&] { WriteAt(path, 32, 'x'); }));                  // the key
  CHECK(spoilt([&] { WriteAt(path, 0, 'x'); }));                   // the magic number
  CHECK(spoilt([&] { WriteAt(path, 15, '\x7f'); }));               // the key's size, huge
  CHECK(spoilt([&] { WriteAt(path, 23, '\x7f'); }));               // the size, huge
  CHECK(spoilt([&] { std::filesystem::resize_file(path, 10); }));  // of the header
  CHECK(spoilt([&] { std::filesystem::resize_file(path, 33); }));  // of the key
  CHECK(spoilt([&] { std::filesystem::resize_file(path, 39); }));  // of the bytes
  CHECK(spoilt([&] { std::filesystem::resize_file(path, 0); }));
  CHECK(spoilt([&] { std::ofstream(path, std::ios::app) << "more"; }));
}

TEST_CASE("where the cache cannot be written nothing is kept and nothing fails", "[gpu][cache]") {
  for (const std::string& home : {std::string("/proc/nowhere"), std::string("/dev/null")}) {
    const DiskCache cache = CacheIn(home);
    cache.Keep("key", "bytes");
    REQUIRE(Found(cache, "key") == "(none)");
  }
  // A folder that others may only read; root may write there too.
  const std::string read_only = CacheFolder() + "/read_only";
  std::filesystem::create_directory(read_only);
  chmod(read_only.c_str(), 0500);
  const DiskCache cache = CacheIn(read_only);
  cache.Keep("key", "bytes");
  const std::string found = Found(cache, "key");
  REQUIRE((found == "(none)" || found == "bytes"));
  // A relative name means nothing, as the specification of XDG says: HOME's is taken.
  REQUIRE(CacheIn("relative").PathOf("key").rfind(std::string(std::getenv("HOME")) + "/.cache/", 0) == 0);
}

// Makes a file's last use some hours old.
void Age(const std::string& path, int hours) {
  const auto now = std::filesystem::last_write_time(path);
  std::filesystem::last_write_time(path, now - std::chrono::hours(hours));
}

TEST_CASE("past its size the cache drops what was not used for longest", "[gpu][cache]") {
  const auto name = [](int i) { return "key " + std::to_string(i); };
  const std::string bytes(1000, 'x');
  const auto kept = [&](const DiskCache& cache) {
    std::string list;
    for (int i = 0; i < 8; ++i)
      if (std::filesystem::exists(cache.PathOf(name(i)))) list += std::to_string(i);
    return list;
  };
  const DiskCache large("trim_test");
  for (int i = 0; i < 8; ++i) {
    large.Keep(name(i), bytes);
    Age(large.PathOf(name(i)), 48 - i);
  }
  const std::string unfinished = large.PathOf("key") + ".abcdef", beginning = large.PathOf("key") + ".ghijkl";
  for (const std::string& path : {unfinished, beginning}) std::ofstream(path) << "part of an entry";
  Age(unfinished, 48);
  REQUIRE(Found(large, name(0)) == bytes);  // used now

  DiskCache("trim_test", 20000).Keep("another", bytes);
  REQUIRE(kept(large) == "01234567");
  REQUIRE_FALSE(std::filesystem::exists(unfinished));
  REQUIRE(std::filesystem::exists(beginning));
  // Ten entries of some 1,040 bytes; three quarters of 8,000 have room for five.
  DiskCache("trim_test", 8000).Keep("a third", bytes);
  REQUIRE(kept(large) == "067");
  REQUIRE(Found(large, "another") == bytes);
  REQUIRE(Found(large, "a third") == bytes);
}

}  // namespace
}  // namespace gpu::test
