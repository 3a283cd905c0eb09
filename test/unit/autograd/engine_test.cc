// The engine: order, accumulation, grad() with inputs, retain and create graph,
// depth, errors.
#include "mica/ops/add.h"
#include "mica/ops/exp.h"
#include "mica/ops/mul.h"
#include "mica/ops/neg.h"
#include "mica/ops/sin.h"
#include "mica/ops/sum.h"
#include "mica/ops/topk.h"
#include "test/unit/autograd/fixture.h"

namespace mica {
namespace {

using namespace mica::testing;
using V = std::vector<double>;

TEST_CASE("a product gives each factor the other", "[autograd]") {
  const Tensor x = Leaf({1, 2, 3}), y = Leaf({4, 5, 6});
  const Tensor z = ops::sum(ops::mul(x, y));
  CHECK(Autograd().RequiresGrad(z));
  CHECK_FALSE(Autograd().IsLeaf(z));
  CHECK(Autograd().GradFn(z).name() == "SumBackward0");
  Backward(z);
  CHECK(GradOf(x) == V{4, 5, 6});
  CHECK(GradOf(y) == V{1, 2, 3});
  CHECK(GradOf(z).empty());
}

TEST_CASE("gradients accumulate over uses and over calls", "[autograd]") {
  const Tensor x = Leaf({2, 3});
  for (int i = 1; i <= 2; ++i) {
    Backward(ops::sum(ops::add(ops::mul(x, x), x)));
    CHECK(GradOf(x) == V{5.0 * i, 7.0 * i});
  }
}

TEST_CASE("an input that needs no gradient gets none", "[autograd]") {
  const Tensor x = Leaf({2}), c = Values({3});
  Backward(ops::sum(ops::mul(x, c)));
  CHECK(GradOf(x) == V{3});
  CHECK_FALSE(Autograd().Grad(c).defined());
}

TEST_CASE("broadcast dimensions are summed away", "[autograd]") {
  const Tensor x = Leaf({1, 2, 3, 4, 5, 6}, {2, 3}), row = Leaf({1, 1, 1}, {3}),
               column = Leaf({1, 2}, {2, 1});
  Backward(ops::sum(ops::mul(ops::mul(x, row), column)));
  CHECK(GradOf(row) == V{9, 12, 15});
  CHECK(GradOf(column) == V{6, 15});
}

TEST_CASE("no_grad records nothing", "[autograd]") {
  const Tensor x = Leaf({1, 2});
  const GradModeGuard guard(false);
  const Tensor y = ops::mul(x, x);
  CHECK_FALSE(Autograd().RequiresGrad(y));
  CHECK(Autograd().IsLeaf(y));
}

TEST_CASE("backward a second time needs retain_graph", "[autograd]") {
  const Tensor x = Leaf({2, 3});
  const Tensor z = ops::sum(ops::mul(x, x));
  Backward(z, Retain());
  Backward(z);
  CHECK(GradOf(x) == V{8, 12});
  MICA_REQUIRE_ERROR((Backward(z), 0), "MulBackward0 saved are freed");
}

TEST_CASE("grad() answers for inputs and leaves .grad alone", "[autograd]") {
  const Tensor x = Leaf({2}), unused = Leaf({5});
  const Tensor mid = ops::mul(x, x);
  const Tensor z = ops::sum(ops::mul(mid, mid));
  const Tensor inputs[] = {x, mid};
  const std::vector<Tensor> g = Autograd().Gradients({&z, 1}, {inputs, 2}, {}, Retain());
  CHECK(Read(g[0]) == V{32});
  CHECK(Read(g[1]) == V{8});
  CHECK(GradOf(x).empty());
  MICA_REQUIRE_ERROR(Autograd().Gradients({&z, 1}, {&unused, 1}, {}, Retain()),
                     "appears to not have been used in the graph");
  CHECK_FALSE(
      Autograd().Gradients({&z, 1}, {&unused, 1}, {}, Retain() | MICA_BACKWARD_ALLOW_UNUSED)[0].defined());
  CHECK(Read(Autograd().Gradients({&z, 1}, {&unused, 1}, {},
                                  Retain() | MICA_BACKWARD_MATERIALIZE_GRADS)[0]) == V{0});
  const Tensor plain = Values({1});
  MICA_REQUIRE_ERROR(Autograd().Gradients({&z, 1}, {&plain, 1}, {}, {}), "does not require grad");
}

TEST_CASE("backward(inputs=) accumulates into these alone", "[autograd]") {
  const Tensor x = Leaf({2}), y = Leaf({3});
  const Tensor mid = ops::mul(x, y);
  const Tensor z = ops::sum(ops::mul(mid, mid));
  const Tensor inputs[] = {x, mid};
  Autograd().Backward({&z, 1}, {}, {inputs, 2}, {});
  CHECK(GradOf(x) == V{36});
  CHECK(GradOf(mid) == V{12});
  CHECK(GradOf(y).empty());
}

TEST_CASE("create_graph makes gradients of gradients", "[autograd]") {
  const Tensor x = Leaf({2});
  const Tensor z = ops::sum(ops::mul(ops::mul(x, x), x));
  const Tensor first = Autograd().Gradients({&z, 1}, {&x, 1}, {}, Create())[0];
  CHECK(Read(first) == V{12});
  REQUIRE(Autograd().RequiresGrad(first));
  const Tensor second = Autograd().Gradients({&first, 1}, {&x, 1}, {}, Create())[0];
  CHECK(Read(second) == V{12});
  const Tensor third = Autograd().Gradients({&second, 1}, {&x, 1}, {}, {})[0];
  CHECK(Read(third) == V{6});
}

TEST_CASE("a result that a formula reads is differentiated through", "[autograd]") {
  const Tensor x = Leaf({0.5});
  const Tensor y = ops::sum(ops::exp(x));
  const Tensor g = Autograd().Gradients({&y, 1}, {&x, 1}, {}, Create())[0];
  const Tensor h = Autograd().Gradients({&g, 1}, {&x, 1}, {}, {})[0];
  CHECK(Read(h)[0] == Approx(std::exp(0.5)));
}

TEST_CASE("later nodes run first", "[autograd]") {
  std::vector<std::string> order;
  const auto traced = [&](const std::string& name, const Tensor& in) {
    NodePtr node = Autograd().MakeCustomNode(LambdaBackward(name,
                                                            [&order, name](std::vector<Tensor> g) {
                                                              order.push_back(name);
                                                              return g;
                                                            }),
                                             {&in, 1});
    const Tensor copy = Autograd().Detach(in);
    return Autograd().FinishCustom(node, {.inputs = {&in, 1}, .outputs = {&copy, 1}})[0];
  };
  const Tensor x = Leaf({1});
  const Tensor a = traced("a", x), b = traced("b", a), c = traced("c", x), d = traced("d", a);
  Backward(ops::add(ops::add(d, b), c));
  CHECK(order == std::vector<std::string>{"d", "c", "b", "a"});
  CHECK(GradOf(x) == V{3});
}

TEST_CASE("a graph of 100,000 nodes neither overflows in backward nor when freed", "[autograd]") {
  const Tensor x = Leaf({1});
  {
    Tensor y = x;
    for (int i = 0; i < 100000; ++i) y = ops::neg(y);
    Backward(ops::sum(y), Retain());
    const Tensor z = ops::sum(y);
    CHECK(Read(Autograd().Gradients({&z, 1}, {&x, 1}, {}, {})[0]) == V{1});
  }
  CHECK(GradOf(x) == V{1});
  Tensor y = x;
  for (int i = 0; i < 100000; ++i) y = ops::mul(y, y);
  y.reset();  // never run: freed as one loop
}

TEST_CASE("backward's own mistakes are sentences", "[autograd]") {
  const Tensor x = Leaf({1, 2});
  MICA_REQUIRE_ERROR(
      (Backward(ops::mul(x, x)), 0),
      "grad can be implicitly created only for scalar outputs, and output (0) has the shape [2]");
  MICA_REQUIRE_ERROR((Backward(Values({1})), 0),
                     "element 0 of tensors does not require grad and does not have a grad_fn");
  MICA_REQUIRE_ERROR((Backward(ops::mul(x, x), Values({1, 2, 3})), 0),
                     "The shape [3] of gradient (0) differs from the shape [2]");
  const Tensor ints = EmptyTensor({2}, DType::kI64, Device{});
  MICA_REQUIRE_ERROR((Autograd().SetRequiresGrad(ints, true), 0),
                     "can require gradients; this one's dtype is (int64)");
  MICA_REQUIRE_ERROR((Autograd().SetRequiresGrad(ops::mul(x, x), false), 0),
                     "you can only change requires_grad flags of leaf variables");
}

TEST_CASE("results without gradient stay without", "[autograd]") {
  const Tensor x = Leaf({3, 1, 2});
  const auto [values, indices] = ops::topk(x, 2);
  CHECK(Autograd().RequiresGrad(values));
  CHECK_FALSE(Autograd().RequiresGrad(indices));
  Backward(ops::sum(values));
  CHECK(GradOf(x) == V{1, 0, 1});
}

TEST_CASE("backward may run inside backward", "[autograd]") {
  const Tensor x = Leaf({2}), inner = Leaf({3});
  NodePtr node = Autograd().MakeCustomNode(LambdaBackward("Nested",
                                                          [&](std::vector<Tensor> g) {
                                                            CHECK(Autograd().InBackward());
                                                            const GradModeGuard on(true);
                                                            Backward(ops::sum(ops::mul(inner, inner)));
                                                            return g;
                                                          }),
                                           {&x, 1});
  const Tensor copy = Autograd().Detach(x);
  const Tensor y = Autograd().FinishCustom(node, {.inputs = {&x, 1}, .outputs = {&copy, 1}})[0];
  Backward(ops::mul(y, y));
  CHECK_FALSE(Autograd().InBackward());
  CHECK(GradOf(inner) == V{6});
  CHECK(GradOf(x) == V{4});
}

TEST_CASE("callbacks run when backward ends", "[autograd]") {
  const Tensor x = Leaf({2});
  int ran = 0;
  Autograd().AddTensorHook(x, [&](const Tensor&) {
    Autograd().QueueCallback([&] { ++ran; });
    CHECK(ran == 0);
    return Tensor();
  });
  Backward(ops::sum(ops::sin(x)));
  CHECK(ran == 1);
  MICA_REQUIRE_ERROR((Autograd().QueueCallback([] {}), 0), "during backward only");
}

}  // namespace
}  // namespace mica
