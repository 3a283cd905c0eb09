// How operators without a generated kernel pass the layer: composites decompose,
// the rest is refused in backward, resize_ at once.
#include "dispatcher/calls/adapters.h"
#include "dispatcher/explain/explain.h"
#include "dispatcher/registration/registration.h"
#include "dispatcher/tables/operator.h"
#include "mica/ops/argmax.h"
#include "mica/ops/linear.h"
#include "mica/ops/mul.h"
#include "mica/ops/resize_.h"
#include "mica/ops/softmax.h"
#include "mica/ops/sum.h"
#include "test/unit/autograd/fixture.h"

namespace mica {
namespace {

using namespace mica::testing;
using V = std::vector<double>;

TEST_CASE("composites decompose at the layer", "[autograd]") {
  const Tensor x = Leaf({1, 2}, {1, 2}), w = Leaf({3, 4, 5, 6}, {2, 2}), b = Leaf({1, 1});
  Backward(ops::sum(ops::linear(x, w, b)));
  CHECK(GradOf(x) == V{8, 10});
  CHECK(GradOf(w) == V{1, 2, 1, 2});
  CHECK(GradOf(b) == V{1, 1});
}

TEST_CASE("operators that say differentiable: false pass", "[autograd]") {
  const Tensor x = Leaf({1, 3, 2});
  const Tensor i = ops::argmax(x);
  CHECK(*i.data_as<int64_t>() == 1);
  CHECK_FALSE(Autograd().RequiresGrad(i));
}

// A run-time operator with a kernel for the CPU and no formula.
void TwiceKernel(const BoxedKernel&, const Operator&, KeySet, const MicaValue* args, int64_t,
                 MicaValue* results) {
  const GradModeGuard off(false);
  results[0] = OwnedTensorValue(ops::mul(Autograd().Detach(Tensor::Ref(args[0].u.tensor)), Values({2})));
}

TEST_CASE("an operator without formula says so in backward", "[autograd]") {
  Autograd();
  const std::shared_ptr<Scope> scope = Scope::Create("test operators", "");
  REQUIRE(scope->Define("acme::twice(Tensor self) -> Tensor", {__FILE__, __LINE__}).ok());
  scope->AddBoxedKernel("acme::twice", "cpu", {&TwiceKernel, nullptr, nullptr}, {__FILE__, __LINE__});
  REQUIRE(scope->Commit().ok());
  const Operator& op = GetOperator("acme::twice");
  const Tensor x = Leaf({3});
  MicaValue arg, result;
  arg.tag = MICA_VALUE_TENSOR;
  arg.u.tensor = x.impl();
  op.CallBoxed(&arg, 1, &result);
  const Tensor y = TakeTensor(result);
  CHECK(Read(y) == V{6});
  CHECK(Autograd().RequiresGrad(y));
  MICA_REQUIRE_ERROR((Backward(ops::sum(y)), 0), "the derivative for 'acme::twice' is not implemented");
  const Tensor plain = Values({3});
  arg.u.tensor = plain.impl();
  op.CallBoxed(&arg, 1, &result);
  CHECK_FALSE(Autograd().RequiresGrad(TakeTensor(result)));
}

TEST_CASE("resize_ of a tensor that requires grad is refused", "[autograd]") {
  const Tensor x = Leaf({1, 2, 3});
  MICA_REQUIRE_ERROR((ops::resize_(x, {2}), 0), "cannot resize variables that require grad");
  {
    const GradModeGuard off(false);
    ops::resize_(x, {2});
  }
  Backward(ops::sum(ops::mul(x, x)));  // the leaf's node knows the new shape
  CHECK(GradOf(x) == V{2, 4});
}

TEST_CASE("formulas agree with differences", "[autograd]") {
  const auto softmax = [](const std::vector<Tensor>& in) { return ops::softmax(in[0], 1); };
  const auto linear = [](const std::vector<Tensor>& in) { return ops::linear(in[0], in[1], in[2]); };
  const std::vector<Tensor> x = {Leaf({0.1, -0.3, 0.7, 1.1, 0.4, -2}, {2, 3})};
  CHECK(GradientError(softmax, x) < 1e-7);
  CHECK(SecondGradientError(softmax, x) < 1e-5);
  const std::vector<Tensor> l = {Leaf({0.1, -0.3, 0.7, 1.1}, {2, 2}), Leaf({1, 2, 3, 4}, {2, 2}),
                                 Leaf({0, 1})};
  CHECK(GradientError(linear, l) < 1e-7);
  CHECK(SecondGradientError(linear, l) < 1e-5);
}

TEST_CASE("explain names the layer's kernel", "[autograd]") {
  const Tensor x = Leaf({1});
  const std::string text = ExplainText(GetOperator("mica::neg"), x.keys());
  CHECK_THAT(text, Catch::Matchers::Contains("Autograd"));
}

}  // namespace
}  // namespace mica
