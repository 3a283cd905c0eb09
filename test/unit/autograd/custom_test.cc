// Custom functions, saved-tensor hooks, set_data.
#include "mica/ops/add.h"
#include "mica/ops/exp.h"
#include "mica/ops/mul.h"
#include "mica/ops/sum.h"
#include "mica/ops/view.h"
#include "test/unit/autograd/fixture.h"

namespace mica {
namespace {

using namespace mica::testing;
using V = std::vector<double>;

// y = 2 * x with a backward that says 20, to see that ours is the one that runs.
Tensor Twice(const Tensor& x, std::vector<Tensor> dirty = {}) {
  NodePtr node = Autograd().MakeCustomNode(
      LambdaBackward("Twice",
                     [](std::vector<Tensor> g) { return std::vector<Tensor>{ops::mul(g[0], Values({20}))}; }),
      {&x, 1});
  Tensor y;
  {
    const GradModeGuard off(false);
    y = dirty.empty() ? ops::mul(x, Values({2})) : ops::mul_(x, Values({2}));
  }
  return Autograd().FinishCustom(node, {.inputs = {&x, 1}, .outputs = {&y, 1}, .dirty = dirty})[0];
}

TEST_CASE("a custom function's backward runs", "[autograd]") {
  const Tensor x = Leaf({3});
  const Tensor y = Twice(x);
  CHECK(Autograd().GradFn(y).name() == "Twice");
  CHECK(Read(y) == V{6});
  Backward(ops::sum(y));
  CHECK(GradOf(x) == V{20});
  CHECK_FALSE(Autograd().RequiresGrad(Twice(Values({3}))));
}

TEST_CASE("a custom function may write its input if it says so", "[autograd]") {
  const Tensor x = Leaf({3});
  const Tensor y = ops::mul(x, Values({1}));
  const Tensor z = Twice(y, {y});
  CHECK(z.is_same(y));
  Backward(ops::sum(y));
  CHECK(GradOf(x) == V{20});
  MICA_REQUIRE_ERROR(Twice(x, {x}), "leaf Variable that requires grad");
}

TEST_CASE("outputs that are inputs, that get no gradient, that are none", "[autograd]") {
  const Tensor x = Leaf({3});
  std::vector<size_t> defined;
  NodePtr node = Autograd().MakeCustomNode(LambdaBackward("Three",
                                                          [&](std::vector<Tensor> g) {
                                                            for (const Tensor& t : g)
                                                              defined.push_back(t.defined());
                                                            return std::vector<Tensor>{g[0]};
                                                          }),
                                           {&x, 1});
  const Tensor outputs[] = {x, Values({1}), Tensor()};
  const std::vector<Tensor> y = Autograd().FinishCustom(
      node, {.inputs = {&x, 1}, .outputs = {outputs, 3}, .non_differentiable = {&outputs[1], 1}});
  CHECK_FALSE(y[0].is_same(x));
  CHECK(y[0].data() == x.data());
  CHECK(Autograd().GradFn(y[0]).name() == "Three");
  CHECK_FALSE(Autograd().RequiresGrad(y[1]));
  Backward(ops::sum(ops::mul(y[0], Values({4}))));
  CHECK(GradOf(x) == V{4});
  CHECK(defined == std::vector<size_t>{1, 1, 0});  // zeros where no gradient comes, as torch says of them
}

TEST_CASE("misshapen gradients of a custom function are refused", "[autograd]") {
  const Tensor x = Leaf({3, 4});
  const auto run = [&](std::vector<Tensor> result) {
    NodePtr node = Autograd().MakeCustomNode(
        LambdaBackward("Bad", [=](std::vector<Tensor>) { return result; }), {&x, 1});
    const Tensor y = Autograd().Detach(x);
    Backward(ops::sum(Autograd().FinishCustom(node, {.inputs = {&x, 1}, .outputs = {&y, 1}})[0]));
  };
  MICA_REQUIRE_ERROR(
      (run({Values({1, 1, 1})}), 0),
      "The backward of Bad returned a gradient of shape [3] for input (0); expected shape [2]");
}

TEST_CASE("save_for_backward checks versions and is released", "[autograd]") {
  const Tensor x = Leaf({3});
  const Tensor kept = ops::mul(x, Values({1}));
  int released = 0;
  std::unique_ptr<SavedTensorBox> box;
  NodePtr node = Autograd().MakeCustomNode(
      LambdaBackward(
          "Square", [&](std::vector<Tensor> g) { return std::vector<Tensor>{ops::mul(g[0], box->Unpack())}; },
          [&] { ++released; }),
      {&kept, 1});
  const Tensor raw = Autograd().Detach(ops::mul(kept, kept));
  const Tensor y = Autograd().FinishCustom(node, {.inputs = {&kept, 1}, .outputs = {&raw, 1}})[0];
  box = Autograd().SaveTensor(kept, node.get(), false);
  Backward(ops::sum(y), Retain());
  CHECK(released == 0);
  CHECK(GradOf(x) == V{3});
  ops::mul_(kept, Values({2}));
  MICA_REQUIRE_ERROR((Backward(ops::sum(y)), 0), "which Square saved for backward");
}

TEST_CASE("saved-tensor hooks pack and unpack", "[autograd]") {
  const Tensor x = Leaf({2, 3});
  int packed = 0, unpacked = 0;
  const auto pack = [&](const Tensor& t) {
    ++packed;
    return Read(t);
  };
  const auto unpack = [&](const V& v) {
    ++unpacked;
    return Values(v);
  };
  Autograd().PushSavedTensorHooks({pack, unpack});
  const Tensor y = ops::exp(ops::mul(x, x));
  Autograd().PopSavedTensorHooks();
  CHECK(packed == 3);
  const Tensor z = ops::sum(y);
  const Tensor g = Autograd().Gradients({&z, 1}, {&x, 1}, {}, Create())[0];
  CHECK(unpacked == 3);
  CHECK(Read(g)[0] == Approx(4 * std::exp(4.0)));
  const Tensor s = ops::sum(g);
  const Tensor h = Autograd().Gradients({&s, 1}, {&x, 1}, {}, {})[0];
  CHECK(Read(h)[0] == Approx((2 + 16) * std::exp(4.0)));
  MICA_REQUIRE_ERROR((Autograd().PopSavedTensorHooks(), 0), "No saved-tensor hooks");
}

TEST_CASE("set_data replaces the values of a leaf", "[autograd]") {
  const Tensor x = Leaf({1, 2});
  Autograd().SetData(x, Values({5, 6, 7}));
  CHECK(Read(x) == V{5, 6, 7});
  CHECK(Autograd().RequiresGrad(x));
  Backward(ops::sum(ops::mul(x, x)));
  CHECK(GradOf(x) == V{10, 12, 14});
  Autograd().SetGrad(x, Tensor());
  CHECK(GradOf(x).empty());
  MICA_REQUIRE_ERROR((Autograd().SetGrad(x, Values({1})), 0),
                     "The gradient's shape [1] differs from the tensor's shape [3]");
}

}  // namespace
}  // namespace mica
