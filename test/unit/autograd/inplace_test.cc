// Writes in place, views, versions: the meaning of torch's test_autograd cases.
#include "mica/ops/add.h"
#include "mica/ops/as_strided.h"
#include "mica/ops/copy_.h"
#include "mica/ops/detach.h"
#include "mica/ops/exp.h"
#include "mica/ops/expand.h"
#include "mica/ops/fill.h"
#include "mica/ops/mul.h"
#include "mica/ops/select.h"
#include "mica/ops/sin.h"
#include "mica/ops/slice.h"
#include "mica/ops/sum.h"
#include "mica/ops/transpose.h"
#include "mica/ops/unbind.h"
#include "mica/ops/view.h"
#include "mica/ops/zero.h"
#include "mica/ops/zeros.h"
#include "test/unit/autograd/fixture.h"

namespace mica {
namespace {

using namespace mica::testing;
using V = std::vector<double>;

Tensor Head(const Tensor& t, int64_t n) { return ops::slice(t, 0, 0, n); }

TEST_CASE("a write in place becomes part of the history", "[autograd]") {
  const Tensor x = Leaf({2, 3});
  const Tensor y = ops::mul(x, Values({5, 5}));
  ops::mul_(y, x);
  CHECK(Autograd().GradFn(y).name() == "MulBackward0");
  Backward(ops::sum(y));
  CHECK(GradOf(x) == V{20, 30});
}

TEST_CASE("a leaf that requires grad is not written", "[autograd]") {
  const Tensor x = Leaf({2, 3});
  MICA_REQUIRE_ERROR((ops::mul_(x, Values({1, 1})), 0),
                     "a leaf Variable that requires grad is being used in an in-place operation");
  MICA_REQUIRE_ERROR((ops::mul_(ops::view(x, {2, 1}), Values({1})), 0),
                     "a view of a leaf Variable that requires grad is being used in an in-place operation");
  const GradModeGuard guard(false);
  ops::mul_(x, Values({2, 2}));
  CHECK(Read(x) == V{4, 6});
}

TEST_CASE("a write through a view gives its base a history", "[autograd]") {
  const Tensor x = Leaf({1, 2, 3, 4}), w = Leaf({10, 20});
  const Tensor y = ops::mul(x, Values({1, 1, 1, 1}));
  const Tensor v = Head(y, 2);
  ops::mul_(v, w);
  CHECK(Autograd().GradFn(y).name() == "CopySlices");
  CHECK(Autograd().GradFn(v).name() == "AsStridedBackward0");
  Backward(ops::sum(ops::mul(y, Values({1, 2, 3, 4}))));
  CHECK(GradOf(x) == V{10, 40, 3, 4});
  CHECK(GradOf(w) == V{1, 4});
}

TEST_CASE("views that nobody recorded follow a write through another view", "[autograd]") {
  const Tensor base = Values({1, 2, 3, 4}), w = Leaf({5, 6, 7, 8});
  const Tensor u = Head(base, 2), v = ops::view(base, {4});
  CHECK_FALSE(Autograd().RequiresGrad(u));
  ops::copy_(v, w);
  CHECK(Autograd().RequiresGrad(u));
  CHECK(Autograd().RequiresGrad(base));
  Backward(ops::sum(ops::mul(u, u)));
  CHECK(GradOf(w) == V{10, 12, 0, 0});
}

TEST_CASE("a view's grad_fn is made anew when its base was written", "[autograd]") {
  const Tensor x = Leaf({1, 2, 3, 4}, {2, 2});
  const Tensor y = ops::mul(x, Values({1}));
  const Tensor v = ops::select(y, 0, 1);
  ops::mul_(y, Values({10}));
  CHECK(Read(v) == V{30, 40});
  Backward(ops::sum(ops::mul(v, v)));
  CHECK(GradOf(x) == V{0, 0, 600, 800});
}

TEST_CASE("writes through a transposed view and a view of a view", "[autograd]") {
  const Tensor x = Leaf({1, 2, 3, 4, 5, 6}, {2, 3}), w = Leaf({7, 8});
  const Tensor y = ops::mul(x, Values({1}));
  const Tensor row = ops::select(ops::transpose(y, 0, 1), 0, 2);  // elements 3 and 6
  ops::mul_(row, w);
  ops::add_(ops::view(y, {6}), Values({1}));
  CHECK(Read(y) == V{2, 3, 22, 5, 6, 49});
  Backward(ops::sum(ops::mul(y, y)));
  CHECK(GradOf(w) == V{2 * 22 * 3, 2 * 49 * 6});
  CHECK(GradOf(x) == V{4, 6, 2 * 22 * 7, 10, 12, 2 * 49 * 8});
}

TEST_CASE("fill and copy through a view cut the gradient", "[autograd]") {
  const Tensor x = Leaf({1, 2, 3}), s = Leaf({9});
  const Tensor y = ops::mul(x, Values({2}));
  ops::fill_(Head(y, 1), Scalar(0.0));
  ops::copy_(ops::slice(y, 0, 1, 2), s);
  Backward(ops::sum(ops::mul(y, Values({1, 2, 3}))));
  CHECK(GradOf(x) == V{0, 0, 6});
  CHECK(GradOf(s) == V{2});
}

TEST_CASE("zero_ in place ends the history", "[autograd]") {
  const Tensor x = Leaf({1, 2});
  const Tensor y = ops::mul(x, x);
  ops::zero_(y);
  Backward(ops::sum(ops::add(y, x)));
  CHECK(GradOf(x) == V{1, 1});
}

TEST_CASE("in-place forms save what they overwrite", "[autograd]") {
  const Tensor x = Leaf({0.3, 0.4});
  const Tensor y = ops::mul(x, Values({1}));
  ops::sin_(y);  // cos(self) needs the old value
  Backward(ops::sum(y));
  CHECK(GradOf(x)[0] == Approx(std::cos(0.3)));
  const Tensor z = Leaf({0.5});
  const Tensor e = ops::mul(z, Values({1}));
  ops::exp_(e);  // reads its result
  Backward(ops::sum(e));
  CHECK(GradOf(z)[0] == Approx(std::exp(0.5)));
}

TEST_CASE("a saved tensor that was written is refused, with both operators named", "[autograd]") {
  const Tensor x = Leaf({1, 2});
  const Tensor y = ops::exp(x);
  ops::mul_(y, Values({2}));
  MICA_REQUIRE_ERROR(
      (Backward(ops::sum(y)), 0),
      "modified by an inplace operation: float64[2] on cpu, which ExpBackward0 saved for backward");
  const Tensor w = ops::mul(x, Values({1}));
  const Tensor z = ops::sum(ops::mul(w, w));
  ops::add_(w, Values({1}));
  MICA_REQUIRE_ERROR((Backward(z), 0),
                     "is at version 1; expected version 0 instead. The write that made version (1) "
                     "was mica::add_.Tensor.");
}

TEST_CASE("a write that nobody saved does no harm", "[autograd]") {
  const Tensor x = Leaf({1, 2});
  const Tensor y = ops::mul(x, Values({3}));  // saves the factor alone
  const Tensor z = ops::add(y, Values({1}));
  ops::mul_(y, Values({0}));
  Backward(ops::sum(z));
  CHECK(GradOf(x) == V{3, 3});
}

TEST_CASE("views made under no_grad are not written while recording", "[autograd]") {
  const Tensor x = Leaf({1, 2}), w = Leaf({3, 4});
  const Tensor y = ops::mul(x, Values({1}));
  Tensor v, plain;
  {
    const GradModeGuard guard(false);
    v = ops::view(y, {2, 1});
    plain = ops::view(Values({1, 2}), {2});
  }
  CHECK_FALSE(Autograd().GradFn(v));
  MICA_REQUIRE_ERROR((ops::mul_(v, Values({2})), 0), "A view was created in no_grad mode");
  MICA_REQUIRE_ERROR((ops::mul_(plain, w), 0), "A view was created in no_grad mode");
  MICA_REQUIRE_ERROR((ops::mul_(ops::view(v, {2}), Values({2})), 0), "A view was created in no_grad mode");
  const GradModeGuard guard(false);
  ops::mul_(v, Values({2}));
}

TEST_CASE("none of several views of one call is written while gradients are recorded", "[autograd]") {
  const Tensor x = Leaf({1, 2});
  const Tensor y = ops::mul(x, Values({1}));
  const std::vector<Tensor> parts = ops::unbind(y);
  MICA_REQUIRE_ERROR((ops::mul_(parts[0], Values({2}, {})), 0), "a function that returns multiple views");
  MICA_REQUIRE_ERROR((ops::mul_(ops::view(parts[0], {1}), Values({2}, {})), 0),
                     "a function that returns multiple views");
  ops::mul_(ops::select(y, 0, 1), Values({3}, {}));
  Backward(ops::sum(ops::mul(parts[1], Values({2}, {}))));
  CHECK(GradOf(x) == V{0, 6});
}

TEST_CASE("detach shares memory and version, not history", "[autograd]") {
  const Tensor x = Leaf({1, 2});
  const Tensor y = ops::mul(x, x);
  const Tensor d = ops::detach(y);
  CHECK_FALSE(Autograd().RequiresGrad(d));
  CHECK(d.data() == y.data());
  CHECK(Autograd().IsLeaf(d));
  const Tensor z = ops::sum(ops::mul(y, y));
  ops::mul_(d, Values({2}));
  MICA_REQUIRE_ERROR((Backward(z), 0), "modified by an inplace operation");
  Autograd().DetachInPlace(y);
  CHECK_FALSE(Autograd().RequiresGrad(y));
  MICA_REQUIRE_ERROR((Autograd().DetachInPlace(ops::view(ops::mul(x, x), {2})), 0),
                     "A view cannot be detached in place");
}

TEST_CASE("inference tensors are neither saved nor made to require grad", "[autograd]") {
  const Tensor x = Leaf({1, 2});
  Tensor i;
  {
    const InferenceModeGuard guard(true);
    SetInferenceMode(true);
    i = Values({1, 2});
    SetInferenceMode(false);
  }
  REQUIRE(i.is_inference());
  MICA_REQUIRE_ERROR(ops::mul(x, i), "Inference tensors cannot be saved for backward");
  CHECK_NOTHROW(ops::add(x, i));
  MICA_REQUIRE_ERROR((Autograd().SetRequiresGrad(i, true), 0), "inference mode cannot require grad");
}

TEST_CASE("out= with a gradient is refused", "[autograd]") {
  const Tensor x = Leaf({1, 2}), out = ops::zeros({2}, DType::kF64);
  MICA_REQUIRE_ERROR((ops::add_out(out, x, x), 0), "don't support automatic differentiation");
  const GradModeGuard guard(false);
  ops::add_out(out, x, x);
  CHECK(Read(out) == V{2, 4});
}

TEST_CASE("as_strided's gradient counts overlap", "[autograd]") {
  const Tensor x = Leaf({1, 2, 3});
  Backward(ops::sum(ops::as_strided(x, {2, 2}, {1, 1}, 0)));
  CHECK(GradOf(x) == V{1, 2, 1});
  const Tensor y = Leaf({1});
  Backward(ops::sum(ops::as_strided(ops::expand(y, {3}), {1}, {1}, 0)));
  CHECK(GradOf(y) == V{1});
}

TEST_CASE("a write through a view is differentiated twice", "[autograd]") {
  const auto f = [](const std::vector<Tensor>& in) {
    const Tensor y = ops::mul(in[0], in[0]);
    ops::mul_(Head(y, 2), in[1]);
    return ops::mul(y, y);
  };
  CHECK(GradientError(f, {Leaf({1, 2, 3}), Leaf({0.5, 2})}) < 1e-7);
  CHECK(SecondGradientError(f, {Leaf({1, 2, 3}), Leaf({0.5, 2})}) < 1e-5);
}

TEST_CASE("a write through a view that saves its result is differentiated twice", "[autograd]") {
  const auto f = [](const std::vector<Tensor>& in) {
    const Tensor y = ops::mul(in[0], Values({1}));
    ops::exp_(Head(y, 2));
    return ops::mul(y, y);
  };
  CHECK(GradientError(f, {Leaf({0.1, 0.2, 0.3})}) < 1e-7);
  CHECK(SecondGradientError(f, {Leaf({0.1, 0.2, 0.3})}) < 1e-5);
}

}  // namespace
}  // namespace mica
