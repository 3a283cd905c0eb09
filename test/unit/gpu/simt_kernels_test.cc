// Kernels on the simulated GPU: what they compute, in which order, and what is found wrong with them.
#include <algorithm>
#include <atomic>
#include <thread>

#include "test/unit/gpu/child.h"
#include "test/unit/gpu/simt_fixture.h"

namespace simt::test {
namespace {

constexpr size_t kCount = 1000;

TEST_CASE("there are two devices with a compiler", "[gpu][simt]") {
  REQUIRE(Simt().Count() == 2);
  REQUIRE(Simt().Missing().empty());
  const gpu::DeviceInfo info = Simt().Describe(1);
  REQUIRE((info.name == "simulated GPU" && info.architecture == "simt32"));
  REQUIRE(info.total_memory == int64_t{2} << 30);
  REQUIRE_THAT(Simt().Compiler(), Catch::Matchers::Contains("g++"));
  MICA_REQUIRE_ERROR(Simt().Describe(2), "There is no simulated GPU (2): there are (2).");
  REQUIRE((Simt().ExchangeDevice(1) == 0 && Simt().ExchangeDevice(0) == 1));
}

TEST_CASE("vectors are added", "[gpu][simt]") {
  std::vector<float> a = Counted<float>(kCount), b = a;
  Array<float> x(a), y(b), out(kCount);
  std::fill(b.begin(), b.end(), -1);  // the copy has been read
  Run(Function("add"), {4, 256}, x.data(), y.data(), out.data(), kCount);
  const std::vector<float> sums = out.Values();
  for (size_t i = 0; i < kCount; ++i) REQUIRE(sums[i] == 2 * a[i]);
}

TEST_CASE("a team reduces with barriers", "[gpu][simt]") {
  Array<float> in(Counted<float>(15 * 64)), out(15);
  Run(Function("reduce"), {15, 64}, in.data(), out.data());
  const std::vector<float> sums = out.Values();
  for (size_t group = 0; group < 15; ++group) REQUIRE(sums[group] == 64 * 64 * float(group) + 63 * 32);
}

TEST_CASE("an aggregate of 16 bytes is an argument", "[gpu][simt]") {
  struct alignas(16) Four {
    float values[4];
  };
  Array<float> x(Counted<float>(128));
  Run(Function("scale"), {2, 16}, x.data(), Four{{1, 2, 3, 4}});
  const std::vector<float> scaled = x.Values();
  for (size_t i = 0; i < 128; ++i) REQUIRE(scaled[i] == float(i * (i % 4 + 1)));
}

TEST_CASE("a kernel of the other device, which shares nothing", "[gpu][simt]") {
  const std::string text =
      "kernel void set(global int* x, const int v) { x[get_global_id(0)] = v + get_num_groups(0); }";
  Array<int> x(16, 1);
  Run(FunctionOf(text, "set", 1), {3, 5, 0, 1}, x.data(), 40);
  std::vector<int> expected(16, 43);
  expected[15] = -1;  // nobody wrote it
  REQUIRE(x.Values() == expected);
}

TEST_CASE("work-items run in a shuffled order, the same in each process", "[gpu][simt]") {
  Array<int> out(64), next(std::vector<int>{0});
  Run(Function("append"), {4, 16}, out.data(), next.data());
  std::vector<int> order = out.Values();
  REQUIRE(!std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  REQUIRE(order == Counted<int>(64));
}

TEST_CASE("what a group shares is poisoned before each", "[gpu][simt]") {
  Array<uint32_t> out(15);
  Run(Function("read_shared"), {15, 64}, out.data());
  REQUIRE(out.Values() == std::vector<uint32_t>(15, 0xFFFFFFFF));
}

TEST_CASE("a missing barrier gives wrong values", "[gpu][simt]") {
  Array<int> out(64);
  Run(Function("no_barrier"), {1, 64}, out.data());
  const std::vector<int> values = out.Values();
  int wrong = 0;
  for (int i = 0; i < 64; ++i) wrong += values[static_cast<size_t>(i)] != 63 - i;
  REQUIRE(wrong > 10);
}

TEST_CASE("a barrier that only some reach is a sentence", "[gpu][simt]") {
  Array<int> out(128);
  Run(Function("diverge"), {2, 64}, out.data());
  MICA_REQUIRE_ERROR(Simt().StreamSync(0, 0), "(3) of its (64)");
  Run(Function("two_barriers"), {2, 64}, out.data());
  MICA_REQUIRE_ERROR(Simt().DeviceSync(0), "work-items wait at line");
  Simt().DeviceSync(0);
  // The device goes on.
  Array<float> in(Counted<float>(64)), sum(1);
  Run(Function("reduce"), {1, 64}, in.data(), sum.data());
  REQUIRE(sum.Values()[0] == 63 * 32);
}

TEST_CASE("launches that a GPU would not take are refused at once", "[gpu][simt]") {
  Array<int> out(8), other(8, 1);
  int host[8] = {};
  const uint64_t write = Function("write_at");
  MICA_REQUIRE_ERROR(Run(write, {1, 1}, out.data(), 1L), "has (8) bytes, its parameter (4)");
  MICA_REQUIRE_ERROR(Run(write, {1, 1}, out.data()), "has (2) parameters, its launch (1) arguments");
  MICA_REQUIRE_ERROR(Run(write, {1, 1}, &host[0], 1), "it is memory of the host");
  MICA_REQUIRE_ERROR(Run(write, {1, 1, 0, 1}, out.data(), 1), "it is memory of the simulated GPU (0)");
  MICA_REQUIRE_ERROR(Run(write, {1, 1}, other.data(), 1), "it is memory of the simulated GPU (1)");
  MICA_REQUIRE_ERROR(Run(Function("nothing"), {1, 2048}, 1), "of (2048) work-items");
  MICA_REQUIRE_ERROR(Run(Function("nothing"), {0, 1}, 1), "cannot have (0) groups");
  MICA_REQUIRE_ERROR(Function("missing"), "no kernel (missing)");
  MICA_REQUIRE_ERROR(Function("commented"), "no kernel (commented)");
}

TEST_CASE("a text that does not compile says where", "[gpu][simt]") {
  MICA_REQUIRE_ERROR(Simt().Compile("kernel void f(int x) {\n x = unknown; }", "simt32", "mul.Tensor"),
                     "kernel:2:6: error: ");
  MICA_REQUIRE_ERROR(Simt().Compile("not C", "simt32", "mul.Tensor"),
                     "The kernel of mul.Tensor does not compile for the simulated GPU:\n  kernel:1");
}

TEST_CASE("twenty threads launch, copy and make streams", "[gpu][simt]") {
  const uint64_t add = Function("add"), reduce = Function("reduce");
  Array<float> counted(Counted<float>(kCount));
  Simt().DeviceSync(0);  // other streams do not wait for this one's copy
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 20; ++t) {
    threads.emplace_back([&, t] {
      const uint64_t stream = t % 3 == 0 ? 0 : Simt().StreamCreate(0, 0);
      {
        const std::vector<float> own(kCount, static_cast<float>(t));
        Array<float> x(kCount), y(kCount);
        Simt().CopyToDevice(0, x.data(), own.data(), x.Bytes(), stream);
        for (int k = 0; k < 20; ++k) {
          Run(add, {4, 256, stream}, x.data(), counted.data(), y.data(), kCount);
          if (k % 10 == 0) Run(reduce, {8, 64, stream}, x.data(), y.data());
        }
        Run(add, {4, 256, stream}, x.data(), counted.data(), y.data(), kCount);
        const std::vector<float> sums = y.Values(stream);
        for (size_t i = 0; i < kCount; ++i) wrong += sums[i] != static_cast<float>(t) + float(i);
        const uint64_t event = Simt().EventCreate(0, 0);
        Simt().EventRecord(0, event, stream);
        Simt().EventWait(0, event, 0);
        Simt().EventSync(0, event);
        Simt().EventDestroy(0, event);
      }
      if (stream) Simt().StreamDestroy(0, stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(wrong == 0);
  Simt().DeviceSync(0);
}

TEST_CASE("without a compiler there is no device, and a sentence", "[gpu][simt]") {
  gpu::test::RunHidden("[simt-no-compiler]", {{"MICA_SIMT_CXX", "/nowhere/g++"}});
  gpu::test::RunHidden("[simt-in-order]", {{"MICA_SIMT_SEED", "0"}, {"MICA_SIMT_DEVICES", "3"}});
}

}  // namespace
}  // namespace simt::test
