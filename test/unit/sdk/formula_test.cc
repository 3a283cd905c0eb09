// The functions of the formula language as a plugin's operators have them: they check what the host's check
// (kernels/formula.h), with its sentences.
#include <climits>
#include <string>

#include <mica/formula.h>
#include "test/support/mica_test.h"

namespace mica::formula {
namespace {

template <typename F>
std::string Raised(F&& f) {
  try {
    f();
  } catch (const plugin::Error& error) {
    return std::to_string(error.code) + " " + error.what();
  }
  return "";
}

TEST_CASE("wrap_dim of a plugin's operator takes the dimensions that there are", "[sdk]") {
  for (const int64_t ndim : {0, 1, 3}) {
    const int64_t n = ndim == 0 ? 1 : ndim;
    for (int64_t d = -n; d < n; ++d) CHECK(WrapDim(d, ndim) == (d < 0 ? d + n : d));
    for (const int64_t d : {-n - 1, n, INT64_MIN, INT64_MAX}) {
      INFO(d << " of " << ndim);
      CHECK(Raised([&] { WrapDim(d, ndim); }) ==
            std::to_string(MICA_ERROR_INDEX) + " The dimension (" + std::to_string(d) +
                ") is not one of the tensor: Dimension out of range (expected to be in range of [" +
                std::to_string(-n) + ", " + std::to_string(n - 1) + "], but got " + std::to_string(d) + ").");
    }
  }
}

TEST_CASE("sizes and counts of a plugin's operator raise beyond int64", "[sdk]") {
  const std::string beyond =
      std::to_string(MICA_ERROR_RUNTIME) + " A size or count is beyond the range of int64.";
  CHECK(Product(Dims{3, 4, 5}) == 60);
  CHECK(Product(Dims{}) == 1);
  CHECK(Raised([] { Product(Dims{INT64_MAX, 2}); }) == beyond);
  CHECK(Abs(int64_t{-7}) == 7);
  CHECK(Raised([] { Abs(INT64_MIN); }) == beyond);
}

}  // namespace
}  // namespace mica::formula
