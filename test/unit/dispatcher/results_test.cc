// What boxed kernels of plugins give back: held to the schema always, and to the operator's meta function and
// the callers' references in the checked mode.
#include "dispatcher/calls/write_check.h"
#include "mica/ops.h"
#include "test/support/mica_test.h"
#include "test/unit/dispatcher/test_operators.h"

namespace mica::testing {
namespace {

// A plugin whose one kernel, for `name` on the CPU, is `function`.
std::shared_ptr<Scope> KernelScope(const char* name, const char* schema, MicaBoxedFunction function) {
  auto scope = Scope::Create("results", "");
  if (schema) REQUIRE(scope->Define(schema, {}).ok());
  MicaKernelRecord record{};
  record.struct_size = sizeof(record);
  record.name = name;
  record.backend = "cpu";
  record.boxed = function;
  REQUIRE(scope->AddLeaf(record).ok());
  REQUIRE(scope->Commit().ok());
  return scope;
}

void Call(const char* name, const Tensor& t) {
  MicaValue arg{};
  arg.tag = MICA_VALUE_TENSOR;
  arg.u.tensor = t.impl();
  MicaValue results[2];
  GetOperator(name).CallBoxed(&arg, 1, results);
}

MicaValue Retained(const MicaValue& v) {
  static_cast<TensorImpl*>(v.u.tensor)->Retain();
  return v;
}

TEST_CASE("a boxed kernel's result of another kind than the schema's is refused", "[dispatcher]") {
  const Tensor x = ops::ones({2});
  const auto refused = [&](const char* schema, MicaBoxedFunction function, const char* sentence) {
    const auto scope = KernelScope("test::gives", schema, function);
    MICA_REQUIRE_ERROR(Call("test::gives", x), sentence);
    scope->Disable();
  };
  refused(
      "test::gives(Tensor x) -> Tensor",
      [](const MicaCall*, const MicaValue*, int64_t, MicaValue*, int64_t) { return MicaStatus{}; },
      "The kernel of test::gives at (cpu) returned nothing as result (0), which its schema says is a value "
      "of the "
      "type Tensor");
  refused(
      "test::gives(Tensor x) -> Tensor",
      [](const MicaCall*, const MicaValue*, int64_t, MicaValue* results, int64_t) {
        results[0] = {MICA_VALUE_FLOAT, 0, {.f = 2.5}};
        return MicaStatus{};
      },
      "as result (0), which its schema says is a value of the type Tensor");
  refused(
      "test::gives(Tensor x) -> (Tensor, int)",
      [](const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
        results[0] = Retained(args[0]);
        results[1] = Retained(args[0]);
        return MicaStatus{};
      },
      "as result (1), which its schema says is a value of the type int");
  refused(
      "test::gives(Tensor x) -> Tensor[]",
      [](const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
        results[0] = Retained(args[0]);
        return MicaStatus{};
      },
      "as result (0), which its schema says is a value of the type Tensor[]");
  CHECK(x.impl()->refs() == 1);  // what was returned is released
}

TEST_CASE("a boxed kernel's result has the kind of value of its type, whatever that is", "[dispatcher]") {
  const Tensor x = ops::ones({2});
  for (const char* type : {"str", "Device", "int[]", "float[]", "bool[]", "Scalar[]", "ScalarType", "Layout",
                           "MemoryFormat", "int", "bool", "Tensor", "Tensor[]", "str?", "int[]?"}) {
    INFO(type);
    const std::string schema = std::string("test::gives(Tensor x) -> ") + type;
    const auto scope =
        KernelScope("test::gives", schema.c_str(),
                    [](const MicaCall*, const MicaValue*, int64_t, MicaValue* results, int64_t) {
                      results[0] = {MICA_VALUE_FLOAT, 0, {.f = 2.5}};
                      return MicaStatus{};
                    });
    MICA_REQUIRE_ERROR(Call("test::gives", x),
                       std::string("which its schema says is a value of the type ") + type);
    scope->Disable();
  }
}

class Checked {
 public:
  Checked() : before_(SetCheckWrites(true)) {}
  ~Checked() { SetCheckWrites(before_); }

 private:
  const bool before_;
};

TEST_CASE("in the checked mode a kernel neither releases nor resizes what it was lent", "[dispatcher]") {
  const Tensor x = ops::ones({2});
  const Checked checked;
  const auto takes = [&](MicaBoxedFunction function, const char* sentence) {
    const auto scope = KernelScope("test::takes", "test::takes(Tensor(a) x) -> Tensor(a)", function);
    MICA_REQUIRE_ERROR(Call("test::takes", x), sentence);
    scope->Disable();
  };
  takes(
      [](const MicaCall* call, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
        call->host->tensor_release(args[0].u.tensor);
        results[0] = MicaValue{};
        return MicaStatus{};
      },
      "A kernel of test::takes released its argument `x` (1 times), which the caller owns");
  takes(
      [](const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
        results[0] = args[0];
        return MicaStatus{};
      },
      "A kernel of test::takes released its argument `x` (1 times)");
  takes(
      [](const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
        static_cast<TensorImpl*>(args[0].u.tensor)->SetSizesStrides({1}, {1});
        results[0] = MicaValue{};
        return MicaStatus{};
      },
      "changed the shape, strides or memory of its argument `x`: it had the shape [2] and has [1]");
  x.impl()->SetSizesStrides({2}, {1});
  CHECK(x.impl()->refs() == 1);
}

TEST_CASE("in the checked mode a result has the shape that the operator's meta function gives",
          "[dispatcher]") {
  const Tensor x = ops::ones({2, 3});
  const Checked checked;
  const auto scope = KernelScope(
      "mica::relu", nullptr, [](const MicaCall*, const MicaValue*, int64_t, MicaValue* results, int64_t) {
        results[0] = {MICA_VALUE_TENSOR, 0, {.tensor = ops::ones({3, 2}).release()}};
        return MicaStatus{};
      });
  MICA_REQUIRE_ERROR(
      Call("mica::relu", x),
      "A kernel of mica::relu returned float32[3, 2] on cpu as result (0), where the operator's meta "
      "function gives float32[2, 3] on cpu.");
  scope->Disable();
}

}  // namespace
}  // namespace mica::testing
