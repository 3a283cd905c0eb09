// plugins/cuda's own declarations of NVIDIA's functions are those of NVIDIA's headers.
#include "plugins/cuda/api.h"

#include <map>

#include "test/support/mica_test.h"
#include "test/unit/gpu/signatures.h"

namespace cuda::test {
namespace {

const std::map<std::string, std::string> kVendors = {
#include "test/unit/gpu/signatures.inc"
};

TEST_CASE("cuBLAS and cuDNN are declared as their vendor does", "[gpu][cuda]") {
  std::map<std::string, std::string> ours;
#define ADD(result, name, parameters) ours[#name] = Letters(static_cast<result(*) parameters>(nullptr));
  MICA_CUBLAS_FUNCTIONS(ADD)
  MICA_CUBLASLT_FUNCTIONS(ADD)
  MICA_CUDNN_FUNCTIONS(ADD)
#undef ADD
  for (const auto& [name, letters] : ours) {
    INFO(name);
    REQUIRE(kVendors.count(name) == 1);
    CHECK(letters == kVendors.at(name));
  }
}

}  // namespace
}  // namespace cuda::test
