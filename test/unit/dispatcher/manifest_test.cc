// Manifests as strangers send them: cut short, foreign, random.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "dispatcher/plugins/plugins.h"
#include "test/support/mica_test.h"

namespace mica {
namespace {

std::string TemporaryFile(const std::string& bytes) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("mica_manifest_" + std::to_string(::getpid()) + ".so"))
          .string();
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string Bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

const std::string kPlugin = std::string(MICA_BUILD_DIR) + "/lib/mica/plugins/mica_cpu.so";

TEST_CASE("the manifest of a plugin is read without opening it", "[dispatcher][plugins]") {
  const auto m = ReadManifest(kPlugin);
  REQUIRE(m.ok());
  CHECK(m->name == "cpu");
  CHECK(m->provides == "backend:cpu");
  CHECK(m->abi_major == 1);
}

TEST_CASE("what is no plugin is refused with the reason", "[dispatcher][plugins]") {
  const auto message = [](const std::string& path) {
    return std::string(ReadManifest(path).status().message());
  };
  CHECK_THAT(message("/no/such/file.so"), Catch::Contains("does not exist"));
  CHECK_THAT(message(TemporaryFile("hello")), Catch::Contains("no ELF header"));
  CHECK_THAT(message(TemporaryFile("")), Catch::Contains("no ELF header"));
  std::string elf = Bytes(kPlugin);
  REQUIRE(elf.size() > 1000);
  std::string foreign = elf;
  foreign[18] = static_cast<char>(0xf3);  // RISC-V
  foreign[19] = 0;
  CHECK_THAT(message(TemporaryFile(foreign)), Catch::Contains("another machine"));
  CHECK_THAT(message(TemporaryFile(elf.substr(0, 100))), Catch::Contains("truncated"));
  CHECK_THAT(message(std::string(MICA_BUILD_DIR) + "/lib/libmica.so"),
             Catch::Contains("carries no Mica manifest"));
}

TEST_CASE("no change of bytes in the headers makes the reader fall", "[dispatcher][plugins]") {
  const std::string elf = Bytes(kPlugin);
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string mutated = elf;
    for (int j = 0; j < 8; ++j) mutated[random() % 2048] = static_cast<char>(random());
    refused += ReadManifest(TemporaryFile(mutated)).ok() ? 0 : 1;
  }
  CHECK(refused > 0);
}

TEST_CASE("a plugin that cannot be loaded leaves the process as it was", "[dispatcher][plugins]") {
  const size_t before = Plugins().size();
  const std::string path = TemporaryFile(Bytes(kPlugin).substr(0, 5000));
  CHECK_FALSE(LoadPlugin(path).ok());
  CHECK(Plugins().size() == before + 1);
  CHECK(Plugins().back().state == PluginState::kRefused);
  CHECK_FALSE(Plugins().back().reason.empty());
}

}  // namespace
}  // namespace mica
