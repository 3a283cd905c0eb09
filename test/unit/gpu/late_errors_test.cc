// What kernels find in their data: a word for each error of an operator, raised once.
#include "plugins/gpu/late_errors.h"

#include "test/unit/gpu/simt_fixture.h"

namespace gpu::test {
namespace {

using mica::kit::LateError;
using simt::test::Function;
using simt::test::Run;
using simt::test::Simt;

const LateError kIndex = {MICA_ERROR_INDEX, "Index (", ") is out of bounds.", 0};
const LateError kDivision = {MICA_ERROR_VALUE, "Division of integers by zero.", "", 0};

// A kernel writes 1 into the word, and somebody waits.
void Find(void* word) {
  Run(Function("write_at"), {1, 1}, word, 0);
  Simt().DeviceSync(0);
}

TEST_CASE("an error that a kernel finds names the operator, and is raised once", "[gpu][late]") {
  LateErrors errors(Simt(), 0);
  errors.Raise();
  void* word = errors.WordOf("gather", kIndex);
  REQUIRE(word == errors.WordOf("gather", kIndex));
  errors.Raise();
  Find(word);
  try {
    errors.Raise();
    FAIL("nothing was raised");
  } catch (const mica::plugin::Error& error) {
    REQUIRE(error.code == MICA_ERROR_INDEX);
    REQUIRE(std::string(error.what()) ==
            "Index (1) is out of bounds. The operator (gather) found this on the device (simt:0), which "
            "computes later than it is called: what was computed of its result is void.");
  }
  errors.Raise();
}

TEST_CASE("operators and sentences have words of their own, and the first is raised", "[gpu][late]") {
  LateErrors errors(Simt(), 0);
  LateError shifted = kIndex;
  shifted.before = "Class (";
  shifted.offset = -11;
  void* gather = errors.WordOf("gather", kIndex);
  void* divide = errors.WordOf("div", kDivision);
  void* loss = errors.WordOf("nll_loss", shifted);
  REQUIRE(
      (gather != divide && divide != loss && loss != gather && loss != errors.WordOf("nll_loss", kIndex)));
  Find(loss);
  MICA_REQUIRE_ERROR(errors.Raise(), "Class (-10) is out of bounds. The operator (nll_loss)");
  Find(divide);
  Find(loss);
  MICA_REQUIRE_ERROR(errors.Raise(), "Division of integers by zero. The operator (div)");
  errors.Raise();  // all were cleared
}

TEST_CASE("errors past the last word are not looked for", "[gpu][late]") {
  LateErrors errors(Simt(), 0);
  int given = 0;
  while (errors.WordOf(std::to_string(given).c_str(), kIndex)) ++given;
  REQUIRE(given == 1024);
  REQUIRE(errors.WordOf("0", kIndex));
}

}  // namespace
}  // namespace gpu::test
