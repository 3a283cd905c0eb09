// CUDA's driver over libraries that imitate NVIDIA's (fake/), and what is said where there are none.
//
// The tests are in the cuda_*_hidden.cc beside this; each group of them runs in a process whose environment
// names the libraries.
#include <filesystem>
#include <fstream>

#include "test/support/mica_test.h"
#include "test/unit/gpu/child.h"

namespace cuda::test {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;
const std::string kFakes = MICA_BUILD_DIR "/test/fake_cuda";

Environment Fakes() {
  return {{"LD_LIBRARY_PATH", kFakes}, {"MICA_CUDA_LIBRARIES", kFakes}, {"MICA_NVRTC", ""}};
}

TEST_CASE("CUDA's driver and compiler", "[gpu][cuda]") { gpu::test::RunHidden("[fakes]", Fakes()); }

TEST_CASE("cuDNN", "[gpu][cuda]") { gpu::test::RunHidden("[fakes-cudnn]", Fakes()); }

TEST_CASE("cuDNN that does not start", "[gpu][cuda]") {
  gpu::test::RunHidden("[fakes-cudnn-start]", Fakes());
}

TEST_CASE("cuBLAS that does not start", "[gpu][cuda]") { gpu::test::RunHidden("[fakes-cublas]", Fakes()); }

TEST_CASE("CUDA where the device reaches the host's memory", "[gpu][cuda]") {
  Environment environment = Fakes();
  environment.emplace_back("FAKE_PAGEABLE", "1");
  gpu::test::RunHidden("[fakes-pageable]", environment);
}

TEST_CASE("CUDA where cuDNN refuses", "[gpu][cuda]") {
  Environment environment = Fakes();
  for (const char* what : {"graph", "run"}) {
    environment.resize(3);
    environment.emplace_back("FAKE_CUDNN_REFUSES", what);
    gpu::test::RunHidden("[fakes-refuse-attention]", environment);
  }
  // The first of two plans alone.
  environment.back().second = "plan";
  gpu::test::RunHidden("[fakes-attention]", environment);
  environment.back() = {"FAKE_CUDNN_VERSION", "90500"};
  gpu::test::RunHidden("[fakes-refuse-attention]", environment);
  environment.back() = {"FAKE_CUDNN_VERSION", "91500"};
  gpu::test::RunHidden("[fakes-old-attention]", environment);
}

TEST_CASE("CUDA in the child of a fork", "[gpu][cuda]") { gpu::test::RunHidden("[fakes-fork]", Fakes()); }

TEST_CASE("CUDA after the driver's end", "[gpu][cuda]") { gpu::test::RunHidden("[fakes-end]", Fakes()); }

TEST_CASE("CUDA's driver without a device, and one that does not start", "[gpu][cuda]") {
  Environment environment = Fakes();
  environment.emplace_back("FAKE_INIT", "100");
  gpu::test::RunHidden("[fakes-none]", environment);
  environment.back().second = "2";
  gpu::test::RunHidden("[fakes-refuses]", environment);
}

TEST_CASE("CUDA where there is nothing", "[gpu][cuda]") {
  // A file that is no library, where the loader looks first: some machines have the true one.
  const std::string folder = gpu::test::CacheFolder() + "/nothing";
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/libcuda.so.1")
      << "This is not a library, and long enough to have a header of one.";
  gpu::test::RunHidden(
      "[nothing]",
      {{"LD_LIBRARY_PATH", folder}, {"MICA_CUDA_LIBRARIES", folder}, {"MICA_NVRTC", "/nowhere"}});
}

}  // namespace
}  // namespace cuda::test
