// The frame kinds grad and jvp from C++: nested derivatives of x^4, what outer levels and
// plain tensors that require grad see of an inner one, writes, and what stays alive.
#include "dispatcher/frames/frames.h"

#include "mica/ops/copy_.h"
#include "mica/ops/mul.h"
#include "mica/ops/narrow.h"
#include "mica/ops/pow.h"
#include "mica/ops/sum.h"
#include "mica/ops/zeros.h"
#include "test/unit/autograd/fixture.h"

namespace mica {
namespace {

using namespace mica::testing;
using V = std::vector<double>;
using frames::FrameScope;
using Function = std::function<Tensor(const Tensor&)>;

int Kind(const char* name) {
  Autograd();
  return frames::KindNumber(name);
}

Function Grad(const Function& f) {
  return [f](const Tensor& x) {
    const FrameScope scope(Kind("grad"));
    const Tensor input = Autograd().GradInput(x);
    const Tensor out = ops::sum(f(input));
    return frames::Unwrap(Autograd().Gradients({&out, 1}, {&input, 1}, {}, {})[0], scope.frame());
  };
}

Function Jvp(const Function& f) {
  return [f](const Tensor& x) {
    const FrameScope scope(Kind("jvp"));
    const Tensor out = f(Autograd().MakeDual(x, Values(V(static_cast<size_t>(x.numel()), 1))));
    const frames::LeaveFrame left;
    return Autograd().Tangent(out);
  };
}

Tensor FourthPower(const Tensor& x) { return ops::pow(x, Scalar(4)); }

TEST_CASE("grad and jvp nest in any order", "[frames]") {
  const Tensor x = Values({2, 3});
  for (int order = 0; order < 8; ++order) {
    Function f = FourthPower;
    for (int bit = 0; bit < 3; ++bit) f = (order >> bit) & 1 ? Grad(f) : Jvp(f);
    CHECK(Read(f(x)) == V{48, 72});
  }
  CHECK(frames::Current() == nullptr);
}

TEST_CASE("a derivative is recorded where it depends on what requires grad", "[frames]") {
  const Tensor w = Leaf({5, 7}), x = Values({2, 3});
  const Function f = [&](const Tensor& t) { return ops::mul(w, ops::mul(t, t)); };
  for (const Function& derivative : {Grad(f), Jvp(f)}) {
    const Tensor slope = derivative(x);
    CHECK(Read(slope) == V{20, 42});
    REQUIRE(Autograd().RequiresGrad(slope));
    Autograd().SetGrad(w, Tensor());
    Backward(ops::sum(slope));
    CHECK(GradOf(w) == V{4, 6});
  }
  const GradModeGuard off(false);
  CHECK_FALSE(Autograd().RequiresGrad(Grad(f)(x)));
}

TEST_CASE("a tangent reaches a tensor by a write through its view", "[frames]") {
  const Function f = [](const Tensor& t) {
    const Tensor out = ops::zeros({3}, DType::kF64);
    const Tensor part = ops::narrow(out, 0, 1, 2);
    ops::copy_(part, ops::mul(t, t));
    return out;
  };
  CHECK(Read(Jvp(f)(Values({2, 3}))) == V{0, 4, 6});
  CHECK(Read(Grad(f)(Values({2, 3}))) == V{4, 6});
}

TEST_CASE("transforms leave nothing behind", "[frames]") {
  const Tensor x = Values({2, 3});
  static_cast<void>(Grad(Jvp(Grad(FourthPower)))(x));
  CHECK(x.impl()->refs().load() == 1);
  CHECK(x.impl()->storage->use_count() == 1);
  const Function fails = [](const Tensor& t) -> Tensor {
    static_cast<void>(ops::mul(t, t));
    MICA_THROW(kValue, "on the way");
  };
  MICA_REQUIRE_ERROR((Grad(fails)(x), 0), "on the way");
  CHECK(frames::Current() == nullptr);
  CHECK(x.impl()->refs().load() == 1);
}

}  // namespace
}  // namespace mica
