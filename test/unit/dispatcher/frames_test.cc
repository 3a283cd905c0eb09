// Frames: a kind of the test's own ("counting"), whose kernels run with the parent current,
// fallbacks and refusals of a kind, wrappers that escape, and what is restored.
#include "dispatcher/frames/frames.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/explain/explain.h"
#include "test/support/mica_test.h"
#include "test/unit/dispatcher/test_operators.h"

namespace mica::testing {
namespace {

using frames::FrameScope;

int g_depth_seen = 0;  // frames that were current where the operator's leaf ran
int Depth() {
  int depth = 0;
  for (const frames::Frame* f = frames::Current(); f; f = f->parent) ++depth;
  return depth;
}

bool IsEven(const Tensor&, const frames::Wrapper& w) { return w.number % 2 == 0; }

int Counting() {
  static const int kind = frames::RegisterKind({"counting", "Do not.", false, &IsEven});
  return kind;
}

void NoteDepth(const BoxedKernel&, const Operator&, KeySet, const MicaValue* args, int64_t,
               MicaValue* results) {
  g_depth_seen = Depth();
  results[0] = OwnedTensorValue(MakeView(Tensor::Ref(args[0].u.tensor), {1}, {1}, 0));
}

// Notes its name and goes on in the parent.
void InParent(const BoxedKernel& k, const Operator& op, KeySet, const MicaValue* args, int64_t n,
              MicaValue* results) {
  Trace().push_back(static_cast<const char*>(k.context));
  frames::CallInParent(op, args, n, results);
}

const Operator& Noted() {
  static const std::shared_ptr<Scope> scope = [] {
    static_cast<void>(Counting());
    auto s = Scope::Create("frames", "");
    MICA_CHECK(s->Define("test::noted(Tensor x) -> Tensor", {}).ok(), "");
    s->AddBoxedKernel("test::noted", "cpu", {&NoteDepth, nullptr, nullptr}, {});
    s->AddBoxedKernel("test::noted", "counting", {&InParent, const_cast<char*>("counting"), nullptr}, {});
    MICA_CHECK(s->Commit().ok(), "");
    return s;
  }();
  return GetOperator("test::noted");
}

Tensor Call(const Operator& op, const Tensor& t) {
  const MicaValue arg = AbiType<const Tensor&>::Box(t.impl());
  MicaValue result;
  op.CallBoxed(&arg, 1, &result);
  return TakeTensor(result);
}

TEST_CASE("each level runs its kernel with the parent current", "[frames]") {
  const Operator& op = Noted();
  const Tensor x = EmptyTensor({2}, DType::kF32, {});
  Trace().clear();
  CHECK_FALSE(frames::IsWrapper(Call(op, x)));
  CHECK(Trace().empty());
  std::vector<std::unique_ptr<FrameScope>> six;
  for (int i = 0; i < 6; ++i) six.push_back(std::make_unique<FrameScope>(Counting()));
  Tensor w = x;
  for (const auto& scope : six) w = frames::Wrap(w, scope->frame());
  const Tensor y = Call(op, w);
  CHECK(Trace().size() == 6);
  CHECK(g_depth_seen == 0);
  CHECK(y.is_view());
  CHECK(y.view_base().is_same(w));
  Tensor value = y;
  for (int i = 5; i >= 0; --i) {
    REQUIRE(frames::Own(value, six[static_cast<size_t>(i)]->frame()));
    value = frames::Unwrap(value, six[static_cast<size_t>(i)]->frame());
  }
  CHECK(value.data() == x.data());
  while (!six.empty()) six.pop_back();
}

TEST_CASE("what a frame changes of the thread comes back, on every path", "[frames]") {
  const ThreadState before = CurrentThread();
  try {
    const FrameScope scope(Counting());
    CHECK(CurrentThread().include.has(keys::kFrame));
    const frames::LeaveFrame left;
    CHECK_FALSE(CurrentThread().include.has(keys::kFrame));
    CHECK(CurrentThread().exclude.has(keys::kAutocast));
    MICA_THROW(kRuntime, "on the way");
  } catch (const Error&) {
  }
  CHECK(CurrentThread().frame == nullptr);
  CHECK(CurrentThread().include == before.include);
  CHECK(CurrentThread().exclude == before.exclude);
}

TEST_CASE("a wrapper that escaped raises, a constant stands for its value", "[frames]") {
  const Operator& op = Noted();
  Tensor w;
  {
    const FrameScope scope(Counting());
    w = frames::Wrap(EmptyTensor({2}, DType::kF32, {}), scope.frame());
  }
  CHECK_FALSE(frames::IsWrapper(Call(op, w)));
  frames::WrapperOf(w).number = 1;
  MICA_REQUIRE_ERROR((Call(op, w), 0), "escaped from that counting. Do not.");
  const FrameScope other(Counting());
  MICA_REQUIRE_ERROR((Call(op, w), 0), "escaped from that counting");
  // Its frame may be entered again.
  const FrameScope again(Counting(), nullptr, frames::WrapperOf(w).tag);
  CHECK(frames::Own(Call(op, w), again.frame()));
}

TEST_CASE("an operator without a rule says so, and explain shows the kind", "[frames]") {
  static const int strict = frames::RegisterKind({"strict", "", false, nullptr});
  const std::shared_ptr<Scope> scope = Scope::Create("strict", "");
  REQUIRE(scope->Define("test::strange(Tensor x) -> Tensor", {}).ok());
  scope->AddBoxedKernel("test::strange", "cpu", {&NoteDepth, nullptr, nullptr}, {});
  REQUIRE(scope->Commit().ok());
  const Operator& op = GetOperator("test::strange");
  const Tensor x = EmptyTensor({2}, DType::kF32, {});
  {
    const FrameScope frame(strict);
    MICA_REQUIRE_ERROR((Call(op, x), 0), "test::strange has no rule for the frame kind (strict)");
    const std::string text = ExplainText(op, x.keys() | CurrentThread().include);
    CHECK(text.find("Frame strict: the kind has no rule") != std::string::npos);
  }
  const std::shared_ptr<Scope> fallback = Scope::Create("strict's fallback", "");
  fallback->AddBoxedFallback("strict", {&InParent, const_cast<char*>("fallback"), nullptr}, {});
  REQUIRE(fallback->Commit().ok());
  Trace().clear();
  {
    const FrameScope frame(strict);
    CHECK(Call(op, x).defined());
  }
  CHECK(Trace() == std::vector<std::string>{"fallback"});
  fallback->Disable();
}

TEST_CASE("wrappers live no longer than who holds them", "[frames]") {
  const Tensor x = EmptyTensor({2}, DType::kF32, {});
  {
    const FrameScope scope(Counting());
    const Tensor w = Call(Noted(), frames::Wrap(x, scope.frame()));
    CHECK(x.impl()->refs().load() > 1);
  }
  CHECK(x.impl()->refs().load() == 1);
  CHECK(x.impl()->storage->use_count() == 1);
}

}  // namespace
}  // namespace mica::testing
