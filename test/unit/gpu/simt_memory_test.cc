// The memory of the simulated GPU: poison, red zones, its end, and who may touch it.
#include <csignal>
#include <cstdlib>

#include "test/unit/gpu/child.h"
#include "test/unit/gpu/simt_fixture.h"

namespace simt::test {
namespace {

void WriteAt(int* data, int at) { Run(Function("write_at"), {1, 1}, data, at); }

TEST_CASE("new memory is poison", "[gpu][simt][memory]") {
  Array<int> x(100);
  REQUIRE(x.Values() == std::vector<int>(100, -1));
}

TEST_CASE("a write outside of an allocation is found", "[gpu][simt][memory]") {
  Array<int> x(1000);
  WriteAt(x.data(), 1000);
  MICA_REQUIRE_ERROR(Simt().DeviceSync(0), "behind its end, at (4000)");
  Simt().DeviceSync(0);  // reported once
  {
    Array<int> y(10);
    WriteAt(y.data(), -1);
  }
  MICA_REQUIRE_ERROR(Simt().DeviceSync(0), "before its start, at (-1)");
}

TEST_CASE("freed memory is no argument, and a write to it is found", "[gpu][simt][memory]") {
  // A size of its own: the next allocation of that size takes the same place.
  constexpr int64_t kSize = 123456;
  int* kept = static_cast<int*>(Simt().Allocate(0, kSize));
  int* freed = static_cast<int*>(Simt().Allocate(0, kSize));
  Simt().Free(0, freed);
  MICA_REQUIRE_ERROR(WriteAt(freed, 1), "freed memory");
  WriteAt(kept, static_cast<int>(freed - kept));
  Simt().StreamSync(0, 0);
  MICA_REQUIRE_ERROR(Simt().Allocate(0, kSize), "Freed memory of the simulated GPU (0) was written to");
  int* again = static_cast<int*>(Simt().Allocate(0, kSize));
  std::vector<int> values(100);
  Simt().CopyToHost(0, values.data(), again, 400, 0);
  REQUIRE(values == std::vector<int>(100, -1));
  Simt().Free(0, again);
  Simt().Free(0, kept);
  Simt().Free(0, kept);
  MICA_REQUIRE_ERROR(Simt().DeviceSync(0), "asked to free an address that it did not give");
}

TEST_CASE("copies stay within their allocations", "[gpu][simt][memory]") {
  Array<int> x(100), other(100, 1);
  std::vector<int> host(101);
  MICA_REQUIRE_ERROR(Simt().CopyToDevice(0, x.data(), host.data(), 404, 0), "no allocation");
  MICA_REQUIRE_ERROR(Simt().CopyToHost(0, host.data(), x.data() + 1, 400, 0), "no allocation");
  MICA_REQUIRE_ERROR(Simt().CopyToHost(0, x.data(), x.data(), 4, 0), "The host's side of a copy is memory");
  MICA_REQUIRE_ERROR(Simt().Fill(0, other.data(), 0, 4, 0), "it is memory of the simulated GPU (1)");
  MICA_REQUIRE_ERROR(Simt().CopyOnDevice(0, x.data(), host.data(), 4, 0), "it is memory of the host");
}

TEST_CASE("memory runs out, and comes back", "[gpu][simt][memory]") {
  const int64_t before = Simt().FreeMemory(1);
  void* x = Simt().Allocate(1, 1 << 20);
  REQUIRE(Simt().FreeMemory(1) == before - (1 << 20));
  try {
    Simt().Allocate(1, 9'000'000'000);
    FAIL("nothing was thrown");
  } catch (const mica::plugin::Error& error) {
    REQUIRE(error.code == MICA_ERROR_OUT_OF_MEMORY);
    REQUIRE(
        std::string(error.what()) ==
        "The simulated GPU (1) has no room for an allocation of (9000000000) bytes: (1048576) bytes of its "
        "(2147483648) bytes are in use.");
  }
  Simt().Free(1, x);
  REQUIRE(Simt().FreeMemory(1) == before);
  MICA_REQUIRE_ERROR(Simt().Allocate(1, -1), "is asked for (-1) bytes");
}

TEST_CASE("one allocation fails on request", "[gpu][simt][memory]") {
  setenv("MICA_SIMT_FAIL_ALLOCATION", "2", 1);
  Simt().Free(0, Simt().Allocate(0, 10));
  MICA_REQUIRE_ERROR(Simt().Allocate(0, 10), "MICA_SIMT_FAIL_ALLOCATION lets this one fail");
  Simt().Free(0, Simt().Allocate(0, 10));
  unsetenv("MICA_SIMT_FAIL_ALLOCATION");
  Simt().Free(0, Simt().Allocate(0, 10));
}

TEST_CASE("the host cannot touch a device's memory", "[gpu][simt][memory]") {
  Array<int> x(Counted<int>(10));
  Simt().DeviceSync(0);
  const int status = gpu::test::StatusOfFork([&] {
    std::signal(SIGSEGV, SIG_DFL);
    return *const_cast<volatile int*>(x.data());
  });
  REQUIRE(status == -SIGSEGV);
}

TEST_CASE("the child of a fork is told", "[gpu][simt][memory]") {
  Array<int> x(Counted<int>(10));  // a stream was used
  const int status = gpu::test::StatusOfFork([] {
    try {
      Simt().DeviceSync(0);
    } catch (const mica::plugin::Error& error) {
      return std::string(error.what()).find("before this process was forked") != std::string::npos ? 7 : 1;
    }
    return 2;
  });
  REQUIRE(status == 7);
  gpu::test::RunHidden("[simt-fork-first]", {});
}

}  // namespace
}  // namespace simt::test
