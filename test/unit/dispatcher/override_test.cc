// Kernels that decline a call leave it to the kernels that they replaced, youngest first.
#include "dispatcher/calls/adapters.h"
#include "dispatcher/tables/dispatcher.h"
#include "test/support/mica_test.h"
#include "test/unit/dispatcher/test_operators.h"

namespace mica::testing {
namespace {

using Names = std::vector<std::string>;

MicaStatus Says(const MicaCall* call, const MicaValue*, int64_t, MicaValue* results, int64_t) {
  Trace().emplace_back(static_cast<const char*>(call->context));
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = 3;
  return nullptr;
}
MicaStatus Declines(const MicaCall* call, const MicaValue*, int64_t, MicaValue*, int64_t) {
  Trace().emplace_back(static_cast<const char*>(call->context));
  return BareStatus(MICA_ERROR_NOT_IMPLEMENTED);
}
MicaStatus ClassSays(const MicaCall* call, const MicaValue*, int64_t, MicaTensor* const*, int64_t) {
  Trace().emplace_back(static_cast<const char*>(call->context));
  return nullptr;
}
MicaStatus ClassDeclines(const MicaCall* call, const MicaValue*, int64_t, MicaTensor* const*, int64_t) {
  Trace().emplace_back(static_cast<const char*>(call->context));
  return BareStatus(MICA_ERROR_NOT_IMPLEMENTED);
}

std::shared_ptr<Scope> WithLeaf(const char* name, MicaBoxedFunction boxed) {
  auto scope = Scope::Create(name, "");
  MicaKernelRecord r{};
  r.struct_size = sizeof(r);
  r.name = "test::declined";
  r.backend = "cpu";
  r.boxed = boxed;
  r.context = const_cast<char*>(name);
  REQUIRE(scope->AddLeaf(r).ok());
  REQUIRE(scope->Commit().ok());
  return scope;
}
std::shared_ptr<Scope> WithClass(const char* name, MicaClassFunction function) {
  auto scope = Scope::Create(name, "");
  MicaClassRecord r{};
  r.struct_size = sizeof(r);
  r.class_name = "pointwise";
  r.backend = "cpu";
  r.function = function;
  r.context = const_cast<char*>(name);
  REQUIRE(scope->AddClass(r).ok());
  REQUIRE(scope->Commit().ok());
  return scope;
}

TEST_CASE("an override that declines leaves the call to the kernel that it replaced", "[dispatcher]") {
  auto definition = Scope::Create("definition", "");
  REQUIRE(definition->Define("test::declined(Tensor x) -> int", {}).ok());
  REQUIRE(definition->Commit().ok());
  const Tensor x = EmptyTensor({2}, DType::kF32, {});
  const auto oldest = WithLeaf("oldest", &Says), base = WithLeaf("base", &Says);
  const auto over = WithLeaf("over", &Declines), top = WithLeaf("top", &Declines);
  Trace().clear();
  CHECK(CallWithTensor(GetOperator("test::declined"), x) == 3);
  CHECK(Trace() == Names{"top", "over", "base"});
  base->Disable();
  Trace().clear();
  CHECK(CallWithTensor(GetOperator("test::declined"), x) == 3);
  CHECK(Trace() == Names{"top", "over", "oldest"});
}

TEST_CASE("a class kernel that declines leaves the call to the one that it replaced", "[dispatcher]") {
  const Tensor x = EmptyTensor({2}, DType::kF32, {});
  const MicaValue arg = AbiType<const Tensor&>::Box(x.impl());
  MicaValue result;
  const auto call = [&] {
    GetOperator("mica::neg").CallBoxed(&arg, 1, &result);
    return TakeTensor(result);
  };
  call();  // opens the plugin of the CPU, whose kernels are then the oldest
  const auto base = WithClass("base", &ClassSays);
  const auto over = WithClass("over", &ClassDeclines), top = WithClass("top", &ClassDeclines);
  Trace().clear();
  CHECK(call().sizes() == x.sizes());
  CHECK(Trace() == Names{"top", "over", "base"});
}

}  // namespace
}  // namespace mica::testing
