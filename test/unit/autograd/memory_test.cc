// Graphs are freed: no cycle between nodes, saved tensors and results. The small
// pool counts every tensor, node and small storage.
#include "mica/ops/add.h"
#include "mica/ops/exp.h"
#include "mica/ops/mul.h"
#include "mica/ops/slice.h"
#include "mica/ops/sum.h"
#include "mica/ops/topk.h"
#include "mica/ops/view.h"
#include "tensor/small_pool.h"
#include "test/unit/autograd/fixture.h"

namespace mica {
namespace {

using namespace mica::testing;

int64_t InUse() { return internal::GetSmallStats().bytes_in_use; }

// `f` twice, so that what is made once and kept does not count.
void RequireFreed(const std::function<void()>& f) {
  f();
  const int64_t before = InUse();
  f();
  REQUIRE(InUse() == before);
}

TEST_CASE("a graph goes with its result", "[autograd]") {
  RequireFreed([] {
    const Tensor x = Leaf({1, 2});
    const Tensor y = ops::sum(ops::mul(x, x));
  });
  RequireFreed([] {
    const Tensor x = Leaf({1, 2});
    Backward(ops::sum(ops::mul(x, x)));
  });
}

TEST_CASE("a saved result makes no cycle", "[autograd]") {
  RequireFreed([] { ops::exp(Leaf({1, 2})); });
  RequireFreed([] {
    const Tensor y = ops::mul(Leaf({1, 2}), Values({2}));
    ops::exp_(y);
  });
  RequireFreed([] { ops::topk(Leaf({1, 2}), 1); });
}

TEST_CASE("writes through views make no cycle", "[autograd]") {
  RequireFreed([] {
    const Tensor y = ops::mul(Leaf({1, 2}), Values({2}));
    const Tensor v = ops::slice(y, 0, 0, 1);
    ops::mul_(v, Leaf({3}));
    ops::exp_(v);
    Backward(ops::sum(y));
  });
}

TEST_CASE("retained gradients, hooks and second gradients are freed", "[autograd]") {
  RequireFreed([] {
    const Tensor x = Leaf({1, 2});
    const Tensor y = ops::mul(x, x);
    Autograd().RetainGrad(y);
    Autograd().AddTensorHook(y, [](const Tensor& g) { return ops::mul(g, g); });
    Backward(ops::sum(y));
    const Tensor z = ops::sum(ops::exp(x));
    const Tensor g = ops::sum(Autograd().Gradients({&z, 1}, {&x, 1}, {}, Create())[0]);
    Backward(g);
    Autograd().SetGrad(x, Tensor());
  });
}

TEST_CASE("a graph whose backward failed is freed", "[autograd]") {
  RequireFreed([] {
    const Tensor x = Leaf({1, 2});
    const Tensor w = ops::mul(x, Values({1}));
    const Tensor z = ops::sum(ops::mul(w, w));
    ops::add_(w, Values({1}));
    CHECK_THROWS(Backward(z));
  });
}

TEST_CASE("a leaf lives as long as a graph that needs it", "[autograd]") {
  Tensor y;
  double seen = 0;
  {
    const Tensor x = Leaf({3});
    Autograd().AddAccumulateHook(x, [&](const Tensor& t) { seen = Read(Autograd().Grad(t))[0]; });
    y = ops::sum(ops::mul(x, x));
  }
  Backward(y);
  CHECK(seen == 6);
}

}  // namespace
}  // namespace mica
