// Hooks, retained gradients, anomaly mode.
#include <limits>

#include "mica/ops/log.h"
#include "mica/ops/mul.h"
#include "mica/ops/sum.h"
#include "test/unit/autograd/fixture.h"

namespace mica {
namespace {

using namespace mica::testing;
using V = std::vector<double>;

TEST_CASE("a tensor's hook sees and changes its gradient", "[autograd]") {
  const Tensor x = Leaf({2});
  const Tensor mid = ops::mul(x, x);
  V seen;
  const HookRemover remove = Autograd().AddTensorHook(mid, [&](const Tensor& g) {
    seen = Read(g);
    return ops::mul(g, g);
  });
  const Tensor z = ops::sum(ops::mul(mid, Values({5})));
  Backward(z, Retain());
  CHECK(seen == V{5});
  CHECK(GradOf(x) == V{100});
  remove();
  Backward(z);
  CHECK(GradOf(x) == V{120});
}

TEST_CASE("a leaf's hooks run once a backward, before the sum", "[autograd]") {
  const Tensor x = Leaf({2});
  int calls = 0, accumulated = 0;
  Autograd().AddTensorHook(x, [&](const Tensor& g) {
    ++calls;
    return ops::mul(g, Values({10}));
  });
  Autograd().AddAccumulateHook(x, [&](const Tensor& t) {
    ++accumulated;
    CHECK(t.is_same(x));
    CHECK(GradOf(x) == V{40});
  });
  Backward(ops::sum(ops::mul(x, x)));
  CHECK(calls == 1);
  CHECK(accumulated == 1);
  const Tensor z = ops::sum(ops::mul(x, x));
  CHECK(Read(Autograd().Gradients({&z, 1}, {&x, 1}, {}, {})[0]) == V{40});
  MICA_REQUIRE_ERROR(Autograd().AddTensorHook(Values({1}), [](const Tensor&) { return Tensor(); }),
                     "requires grad");
}

TEST_CASE("retain_grad keeps what flows into a tensor that is no leaf", "[autograd]") {
  const Tensor x = Leaf({2});
  const Tensor mid = ops::mul(x, x);
  Autograd().RetainGrad(mid);
  CHECK(Autograd().RetainsGrad(mid));
  const Tensor z = ops::sum(ops::mul(mid, mid));
  Backward(z, Retain());
  CHECK(GradOf(mid) == V{8});
  Backward(z);
  CHECK(GradOf(mid) == V{16});
}

TEST_CASE("retain_grad follows a tensor through a write in place", "[autograd]") {
  const Tensor x = Leaf({2});
  const Tensor y = ops::mul(x, Values({3}));
  Autograd().RetainGrad(y);
  ops::mul_(y, Values({5}));
  Backward(ops::sum(ops::mul(y, Values({7}))));
  CHECK(GradOf(y) == V{7});
  CHECK(GradOf(x) == V{105});
}

TEST_CASE("node hooks see gradients before and after", "[autograd]") {
  const Tensor x = Leaf({3});
  const Tensor z = ops::sum(ops::mul(x, Values({2})));
  const NodePtr node = Autograd().NextEdges(Autograd().GradFn(z).get())[0].node;
  CHECK(node.name() == "MulBackward0");
  const HookRemover remove =
      Autograd().AddNodeHook(node.get(), [](std::vector<Tensor>& g) { g[0] = ops::mul(g[0], Values({10})); });
  const HookRemover remove_post =
      Autograd().AddNodePostHook(node.get(), [](std::vector<Tensor>& in, const std::vector<Tensor>& out) {
        CHECK(Read(out[0]) == V{10});
        CHECK(Read(in[0]) == V{20});
        in[0] = ops::mul(in[0], Values({2}));
      });
  Backward(z, Retain());
  CHECK(GradOf(x) == V{40});
  remove();
  remove_post();
  Backward(z);
  CHECK(GradOf(x) == V{42});
}

TEST_CASE("a hook must return a gradient like the one that it got", "[autograd]") {
  for (const bool leaf : {true, false}) {
    const Tensor x = Leaf({3});
    const Tensor y = leaf ? x : ops::mul(x, x);
    const HookRemover remove = Autograd().AddTensorHook(y, [](const Tensor&) { return Values({1, 2}); });
    const Tensor z = ops::sum(ops::mul(y, Values({2})));
    MICA_REQUIRE_ERROR((Backward(z), 0), "returned one of the shape [2]");
  }
}

TEST_CASE("taking a hook away holds neither tensor nor node", "[autograd]") {
  HookRemover leaf, middle;
  {
    const Tensor x = Leaf({3});
    const Tensor y = ops::mul(x, x);
    const uint64_t before = x.impl()->refs();
    leaf = Autograd().AddTensorHook(x, [](const Tensor& g) { return g; });
    middle = Autograd().AddTensorHook(y, [](const Tensor& g) { return g; });
    CHECK(x.impl()->refs() == before);
  }
  leaf();
  middle();
}

TEST_CASE("the graph can be walked", "[autograd]") {
  const Tensor x = Leaf({3}), c = Values({2});
  const Tensor y = ops::mul(x, c);
  const std::vector<GraphEdge> next = Autograd().NextEdges(Autograd().GradFn(y).get());
  REQUIRE(next.size() == 2);
  CHECK(next[0].node.name() == "AccumulateGrad");
  CHECK(Autograd().Variable(next[0].node.get()).is_same(x));
  CHECK_FALSE(next[1].node);
  CHECK(Autograd().GradientEdge(x).node.get() == next[0].node.get());
}

TEST_CASE("anomaly mode prints the forward of the node that failed", "[autograd]") {
  std::vector<std::string> reports;
  const auto record = [](void*, void* to, void (*write)(void*, MicaStr)) {
    write(to, python::StrOf("  train.py:12 loss = log(x)"));
    return MicaStatus{};
  };
  const auto report = [](void* to, MicaStr text) {
    static_cast<std::vector<std::string>*>(to)->emplace_back(python::ViewOf(text));
    return MicaStatus{};
  };
  ThrowIfError(Autograd()->set_anomaly_hooks(record, report, {&reports, nullptr}));
  Autograd()->set_anomaly_mode(MICA_ANOMALY_ON | MICA_ANOMALY_CHECK_NAN);
  const Tensor x = Leaf({0});
  const Tensor z = ops::sum(ops::mul(ops::log(x), Values({0})));
  MICA_REQUIRE_ERROR((Backward(z), 0), "Function 'LogBackward0' returned nan values in its 0th output.");
  Autograd()->set_anomaly_mode(0);
  ThrowIfError(Autograd()->set_anomaly_hooks(nullptr, nullptr, {}));
  REQUIRE(reports.size() == 1);
  CHECK_THAT(reports[0], Catch::Matchers::Contains("train.py:12"));
}

}  // namespace
}  // namespace mica
