// Threads: separate graphs, shared leaves, shared graphs. Run it under the thread
// sanitizer too.
#include <thread>

#include "mica/ops/add.h"
#include "mica/ops/mul.h"
#include "mica/ops/slice.h"
#include "mica/ops/sum.h"
#include "test/unit/autograd/fixture.h"

namespace mica {
namespace {

using namespace mica::testing;
using V = std::vector<double>;

void OnThreads(int n, const std::function<void()>& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back(f);
  for (std::thread& t : threads) t.join();
}

TEST_CASE("threads run their own graphs over shared leaves", "[autograd]") {
  const Tensor x = Leaf({1, 2});
  const Tensor two = Values({2});
  constexpr int kThreads = 4, kRounds = 100;
  OnThreads(kThreads, [&] {
    for (int i = 0; i < kRounds; ++i) Backward(ops::sum(ops::mul(ops::mul(x, x), two)));
  });
  CHECK(GradOf(x) == V{4.0 * kThreads * kRounds, 8.0 * kThreads * kRounds});
}

TEST_CASE("threads share one retained graph", "[autograd]") {
  const Tensor x = Leaf({3});
  Tensor y = x;
  for (int i = 0; i < 20; ++i) y = ops::add(y, ops::mul(x, x));
  const Tensor z = ops::sum(y);
  std::atomic<int> right{0};
  OnThreads(4, [&] {
    for (int i = 0; i < 50; ++i)
      right += Read(Autograd().Gradients({&z, 1}, {&x, 1}, {}, Retain())[0]) == V{121};
  });
  CHECK(right == 200);
}

TEST_CASE("a view's history is made anew by one of several threads", "[autograd]") {
  for (int round = 0; round < 20; ++round) {
    const Tensor x = Leaf({1, 2, 3});
    const Tensor y = ops::mul(x, Values({1}));
    const Tensor v = ops::slice(y, 0, 0, 2);
    ops::mul_(y, Values({2}));
    OnThreads(3, [&] { static_cast<void>(ops::sum(v)); });
    Backward(ops::sum(v));
    CHECK(GradOf(x) == V{2, 2, 0});
  }
}

}  // namespace
}  // namespace mica
