// Eight threads call while a plugin's scope is registered, disabled and replaced.
// Runs for MICA_STRESS_SECONDS (default 10) and is meant for the thread sanitizer;
// without it, it still finds wrong results and leaks of tables.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "test/support/mica_test.h"
#include "test/unit/dispatcher/test_operators.h"

namespace mica::testing {
namespace {

void ReturnContext(const BoxedKernel& k, const Operator&, KeySet, const MicaValue*, int64_t,
                   MicaValue* results) {
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = reinterpret_cast<intptr_t>(k.context);
}
void PassAndAdd(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                MicaValue* results) {
  op.RedispatchBoxed(keys & KeySet::Below(static_cast<int>(reinterpret_cast<intptr_t>(k.context))), args, n,
                     results);
  results[0].u.i += 100;
}

std::shared_ptr<Scope> Build(intptr_t value, int layer) {
  auto s = Scope::Create("build " + std::to_string(value), "");
  s->AddBoxedKernel("stress::op", "cpu", {&ReturnContext, reinterpret_cast<void*>(value), nullptr}, {});
  s->AddBoxedKernel("stress::op", "stress_layer",
                    {&PassAndAdd, reinterpret_cast<void*>(static_cast<intptr_t>(layer)), nullptr}, {});
  return s;
}

TEST_CASE("calls go on while plugins come and go", "[stress]") {
  const int layer = Layer("stress_layer", "Autocast", "Autograd");
  auto base = Scope::Create("base", "");
  REQUIRE(base->Define("stress::op(Tensor x) -> int", {}).ok());
  base->AddBoxedKernel("stress::op", "cpu", {&ReturnContext, reinterpret_cast<void*>(intptr_t{1}), nullptr},
                       {});
  REQUIRE(base->Commit().ok());
  const Operator& op = GetOperator("stress::op");

  const char* text = std::getenv("MICA_STRESS_SECONDS");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(text ? std::atoi(text) : 10);
  std::atomic<bool> stop{false};
  std::atomic<int64_t> calls{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const Tensor x = EmptyTensor({4}, DType::kF32, {});
      const IncludeGuard include(KeySet::Of(layer));
      int64_t n = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        const int64_t r = CallWithTensor(op, x);
        // 1 or 2 or 3 from the kernel, and 100 if the layer stood there.
        const bool right = (r % 100 >= 1 && r % 100 <= 3) && (r / 100 == 0 || r / 100 == 1);
        if (!right) wrong.fetch_add(1);
        ++n;
      }
      calls.fetch_add(n);
    });
  }
  int64_t cycles = 0;
  while (std::chrono::steady_clock::now() < end) {
    auto two = Build(2, layer);
    REQUIRE(two->Commit().ok());
    two->Disable();
    REQUIRE(two->Enable().ok());
    auto three = Build(3, layer);
    REQUIRE(three->Commit().ok());
    two.reset();
    three->Disable();
    ++cycles;
  }
  stop = true;
  for (std::thread& t : threads) t.join();
  INFO("calls " << calls.load() << ", cycles " << cycles);
  CHECK(wrong.load() == 0);
  CHECK(calls.load() > 1000);
  CHECK(cycles > 10);
  CHECK(CallWithTensor(op, EmptyTensor({4}, DType::kF32, {})) == 1);
}

}  // namespace
}  // namespace mica::testing
