// Two builds of one plugin take turns while eight threads call its operator: no wrong
// result, no crash, no leak in MICA_SWAP_CYCLES (default 10,000) cycles. Meant for the
// address sanitizer; runs under any build.
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "dispatcher/plugins/plugins.h"
#include "test/support/mica_test.h"
#include "test/unit/dispatcher/test_operators.h"

namespace mica::testing {
namespace {

void Nobody(const BoxedKernel&, const Operator&, KeySet, const MicaValue*, int64_t, MicaValue* results) {
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = 0;
}

void Swap(const std::string& in) {
  const absl::Status out = DisablePlugin("turn");
  REQUIRE((out.ok() || absl::IsNotFound(out)));
  const absl::Status loaded = LoadPlugin(in);
  INFO(std::string(loaded.message()));
  REQUIRE(loaded.ok());
}

TEST_CASE("two builds of a plugin take turns under load", "[stress]") {
  auto base = Scope::Create("base", "");
  REQUIRE(base->Define("turn::value(Tensor x) -> int", {}).ok());
  base->AddBoxedKernel("turn::value", "cpu", {&Nobody, nullptr, nullptr}, {});
  REQUIRE(base->Commit().ok());
  const Operator& op = GetOperator("turn::value");
  const char* text = std::getenv("MICA_SWAP_CYCLES");
  const int cycles = text ? std::atoi(text) : 10000;

  std::atomic<bool> stop{false};
  std::atomic<int64_t> wrong{0}, seen[3] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const Tensor x = EmptyTensor({4}, DType::kF32, {});
      while (!stop.load(std::memory_order_relaxed)) {
        const int64_t r = CallWithTensor(op, x);
        if (r < 0 || r > 2)
          wrong.fetch_add(1);
        else
          seen[r].fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  size_t early = 0;
  const Tensor x = EmptyTensor({4}, DType::kF32, {});
  for (int cycle = 0; cycle < cycles; ++cycle) {
    Swap(MICA_TURN_1);
    const int64_t one = CallWithTensor(op, x);
    Swap(MICA_TURN_2);
    const int64_t two = CallWithTensor(op, x);
    if (one != 1 || two != 2) wrong.fetch_add(1);
    if (cycle == cycles / 10) early = mallinfo2().uordblks;
  }
  const size_t late = mallinfo2().uordblks;
  stop = true;
  for (std::thread& t : threads) t.join();
  INFO("answers " << seen[0] << " " << seen[1] << " " << seen[2] << ", bytes " << early << " to " << late);
  CHECK(wrong.load() == 0);
  CHECK(seen[1].load() > 0);
  CHECK(seen[2].load() > 0);
  CHECK(late < early + 256 * 1024);
}

TEST_CASE("a build takes the other's place while calls go on", "[stress]") {
  auto base = Scope::Create("replaced", "");
  REQUIRE(base->Define("turn::replaced(Tensor x) -> int", {}).ok());
  REQUIRE(base->Commit().ok());
  const Operator& op = GetOperator("turn::replaced");  // without a kernel but the plugin's
  const char* text = std::getenv("MICA_SWAP_CYCLES");
  const int cycles = text ? std::atoi(text) : 10000;
  REQUIRE(ReplacePlugin(MICA_TURN_1).ok());

  std::atomic<bool> stop{false};
  std::atomic<int64_t> wrong{0}, raised{0}, seen[3] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const Tensor x = EmptyTensor({4}, DType::kF32, {});
      while (!stop.load(std::memory_order_relaxed)) {
        try {
          const int64_t r = CallWithTensor(op, x);
          (r == 1 || r == 2 ? seen[r] : wrong).fetch_add(1, std::memory_order_relaxed);
        } catch (const Error&) {
          raised.fetch_add(1);
        }
      }
    });
  }
  const Tensor x = EmptyTensor({4}, DType::kF32, {});
  for (int cycle = 0; cycle < cycles; ++cycle) {
    const bool second = cycle % 2 == 0;
    REQUIRE(ReplacePlugin(second ? MICA_TURN_2 : MICA_TURN_1).ok());
    if (CallWithTensor(op, x) != (second ? 2 : 1)) wrong.fetch_add(1);
  }
  stop = true;
  for (std::thread& t : threads) t.join();
  INFO("answers " << seen[1] << " and " << seen[2]);
  CHECK(wrong.load() == 0);
  CHECK(raised.load() == 0);
  CHECK(seen[1].load() > 0);
  CHECK(seen[2].load() > 0);
}

}  // namespace
}  // namespace mica::testing
