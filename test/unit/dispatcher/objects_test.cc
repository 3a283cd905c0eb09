// Objects as arguments: unboxed and boxed kernels get them, of the schema's type alone, and the C++17 face
// reads what it made alone.
#include <mica/object.h>
#include "dispatcher/calls/adapters.h"
#include "dispatcher/plugins/host.h"
#include "dispatcher/registration/vendor_operators.h"
#include "mica/ops.h"
#include "test/support/mica_test.h"
#include "test/unit/dispatcher/test_operators.h"

namespace mica::testing {
namespace {

struct Counted {
  static constexpr const char* kTypeName = "test.Counted";
  explicit Counted(int64_t n) : number(n) { ++alive; }
  ~Counted() { --alive; }
  int64_t number;
  static inline int alive = 0;
};
struct Impostor {
  static constexpr const char* kTypeName = "test.Counted";
  int64_t number;
};
using plugin::Object;

MicaValue Boxed(MicaObject* o) { return AbiType<MicaObject*>::Box(o); }

TEST_CASE("a typed object of a plugin is counted and destroyed by the plugin's own code", "[objects]") {
  plugin::Host() = HostTable();
  {
    Object<Counted> made = Object<Counted>::Make(5);
    CHECK(made->number == 5);
    const Object<Counted> second = made;
    CHECK(made.get()->refcount == 2);
    MicaValue result{};
    std::move(made).Give(&result);
    CHECK_FALSE(made);
    CHECK(result.tag == MICA_VALUE_OBJECT);
    CHECK(Object<Counted>::In(result).number == 5);
    CHECK(Object<Counted>::Of(result)->number == 5);
    CHECK_FALSE(Object<Counted>::Of(MicaValue{}));
    CHECK(Counted::alive == 1);
    HostTable()->object_release(result.u.object);
  }
  CHECK(Counted::alive == 0);
}

TEST_CASE("an object of the same name that another made is not read", "[objects]") {
  plugin::Host() = HostTable();
  const Object<Impostor> other = Object<Impostor>::Make(int64_t{5});
  const MicaValue v = Boxed(other.get());
  CHECK_THROWS_WITH(
      Object<Counted>::In(v),
      "The object of the type (test.Counted) was not made by the plugin that reads it here, which "
      "knows the memory of its own objects alone.");
}

TEST_CASE("an unboxed kernel gets the object's pointer, and NULL for None", "[objects]") {
  plugin::Host() = HostTable();
  using Signature = int64_t(const Tensor&, MicaObject*);
  const auto leaf = +[](const MicaCall*, MicaTensor*, MicaObject* o) -> MicaIntResult {
    return {o ? static_cast<int64_t>(o->refcount) : -1, nullptr};
  };
  const Tensor x = ops::ones({2});
  const Object<Counted> made = Object<Counted>::Make(5);
  const auto call = [&](MicaObject* o) {
    const MicaValue args[] = {AbiType<const Tensor&>::Box(x.impl()), Boxed(o)};
    MicaValue result{};
    const MicaCall c{};
    const auto function = reinterpret_cast<MicaFunction>(leaf);
    CHECK(kAdapters<Signature>.call_leaf(function, &c, args, 2, nullptr, &result) == nullptr);
    return result.u.i;
  };
  CHECK(call(made.get()) == 1);
  CHECK(call(nullptr) == -1);
}

TEST_CASE("a call holds objects to the schema's types by their names", "[objects]") {
  plugin::Host() = HostTable();
  const auto scope = Scope::Create("objects", "");
  REQUIRE(scope->Define("test::takes(test.Counted a, test.Counted? b=None) -> int", {}).ok());
  scope->AddBoxedKernel("test::takes", "cpu", Leaf("cpu"), {});
  REQUIRE(scope->Commit().ok());
  const auto call = [](const MicaValue& a, const MicaValue& b) {
    const MicaValue args[] = {a, b};
    MicaValue result;
    GetOperator("test::takes").CallBoxed(args, 2, &result);
    return result.u.i;
  };
  const Object<Counted> made = Object<Counted>::Make(5);
  const MicaValue good = Boxed(made.get()), none{};
  CHECK(call(good, none) == 9);
  CHECK(call(good, good) == 9);
  MICA_REQUIRE_ERROR(call(none, good),
                     "The argument `a` of test::takes is (None), where an object of the type (test.Counted)");
  static const MicaObjectType other = {sizeof(other), "test.Other", [](MicaObject*) {}};
  MicaObject stranger = {1, &other};
  MICA_REQUIRE_ERROR(
      call(good, Boxed(&stranger)),
      "The argument `b` of test::takes is an object of the type (test.Other), where one of the "
      "type (test.Counted) is expected.");
  scope->Disable();
}

TEST_CASE("an operator of a plugin that gives an object has no gradient", "[objects]") {
  const auto scope = Scope::Create("objects", "");
  MicaOperatorRecord record{};
  record.struct_size = sizeof(record);
  record.schema = "test::gives(Tensor x) -> (Tensor, test.Counted)";
  record.differentiable = 1;
  record.backward = [](void*, const MicaValue*, int64_t, MicaTensor* const*, MicaTensor* const*, int64_t,
                       const uint8_t*, MicaTensor**) { return MicaStatus{}; };
  MICA_REQUIRE_ERROR(ThrowIfError(OperatorsExtension()->define(scope.get(), &record)),
                     "The operator (test::gives) of a plugin has a gradient and gives a value of the type "
                     "(test.Counted); its results have to be Tensors alone.");
}

}  // namespace
}  // namespace mica::testing
