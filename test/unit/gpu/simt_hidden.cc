// Hidden tests of the simulated GPU, each for a process of its own that a test of simt_*_test.cc starts.
#include <thread>

#include "test/unit/gpu/child.h"
#include "test/unit/gpu/simt_fixture.h"

namespace simt::test {
namespace {

TEST_CASE("no compiler", "[.][simt-no-compiler]") {
  REQUIRE(Simt().Count() == 0);
  REQUIRE(Simt().Missing().size() == 1);
  REQUIRE_THAT(Simt().Missing()[0], Catch::Matchers::Contains("MICA_SIMT_CXX"));
  MICA_REQUIRE_ERROR(Simt().Compile("", "simt32", "add.Tensor"), "which the kernel of add.Tensor needs");
}

TEST_CASE("seed 0 runs work-items in their order", "[.][simt-in-order]") {
  REQUIRE(Simt().Count() == 3);
  Array<int> out(64), next(std::vector<int>{0});
  Run(Function("append"), {4, 16}, out.data(), next.data());
  REQUIRE(out.Values() == Counted<int>(64));
}

TEST_CASE("a fork before the first use computes on its own", "[.][simt-fork-first]") {
  REQUIRE(Simt().Count() == 2);
  REQUIRE(gpu::test::StatusOfFork([] {
            Array<int> x(Counted<int>(10));
            return x.Values()[9];
          }) == 9);
  REQUIRE(Array<int>(Counted<int>(10)).Values()[9] == 9);
}

TEST_CASE("the end", "[.][simt-end]") {
  auto* x = new Array<float>(Counted<float>(960));
  auto* out = new Array<int>(128);
  Run(Function("diverge"), {2, 64}, out->data());
  while (!Simt().StreamDone(0, 0)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(Simt().StreamDone(0, 0));
  for (int i = 0; i < 500; ++i) Run(Function("reduce"), {15, 64}, x->data(), out->data());
}

}  // namespace
}  // namespace simt::test
