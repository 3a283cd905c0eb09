// The table of third-party layers: complete, and what it says of operators. What it does is
// tested through plugins, in test/abi/test_layers.py and examples/my_layer.
#include "dispatcher/layers/layers_extension.h"

#include "dispatcher/plugins/host.h"
#include "mica/ops/ones.h"
#include "test/support/mica_test.h"

namespace mica::testing {
namespace {

TEST_CASE("no slot of the table of layers is empty", "[dispatcher]") {
  const MicaLayers& table = *LayersExtension();
  CHECK(table.struct_size == sizeof(MicaLayers));
  const auto* slots = reinterpret_cast<void* const*>(&table.register_layer);
  const size_t count = (sizeof(MicaLayers) - offsetof(MicaLayers, register_layer)) / sizeof(void*);
  for (size_t i = 0; i < count; ++i) {
    INFO("slot " << i);
    CHECK(slots[i] != nullptr);
  }
}

std::string Flagged(const MicaOperatorInfo& info, uint64_t flag) {
  std::string names;
  for (int32_t i = 0; i < info.num_args; ++i)
    if (info.args[i].flags & flag) names += std::string(info.args[i].name) + " ";
  return names;
}

TEST_CASE("an operator's entry is told by class, arguments, equation and programs", "[dispatcher]") {
  const MicaOperatorInfo& add = InfoOf(GetOperator("add.Tensor"));
  CHECK(std::string(add.class_name) == "pointwise");
  CHECK(add.programs[3] != nullptr);
  CHECK(Flagged(add, MICA_ARGUMENT_KEYWORD) == "alpha ");
  CHECK(add.args[2].tag == MICA_VALUE_SCALAR);
  CHECK(&InfoOf(GetOperator("add.Tensor")) == &add);

  const MicaOperatorInfo& out = InfoOf(GetOperator("add.out"));
  CHECK(out.form == MICA_FORM_OUT);
  CHECK(Flagged(out, MICA_ARGUMENT_WRITTEN) == "out ");
  CHECK(std::string(out.functional_name) == "mica::add.Tensor");

  for (const auto& [name, equation, operands] :
       {std::tuple("mm", "ij,jk->ik", "self mat2 "), std::tuple("addmm", "ij,jk->ik", "mat1 mat2 "),
        std::tuple("baddbmm", "bij,bjk->bik", "batch1 batch2 ")}) {
    const MicaOperatorInfo& info = InfoOf(GetOperator(name));
    CHECK(std::string(info.class_name) == "contraction");
    CHECK(std::string(info.equation) == equation);
    CHECK(Flagged(info, MICA_ARGUMENT_OPERAND) == operands);
  }

  const MicaOperatorInfo& view = InfoOf(GetOperator("transpose.int"));
  CHECK((view.flags & MICA_OPERATOR_VIEW) != 0);
  CHECK(Flagged(view, MICA_ARGUMENT_ALIAS) == "self ");
  const MicaOperatorInfo& composite = InfoOf(GetOperator("linear"));
  CHECK((composite.flags & MICA_OPERATOR_COMPOSITE) != 0);
  CHECK(Flagged(composite, MICA_ARGUMENT_OPTIONAL) == "bias ");
  CHECK(std::string(composite.equation).empty());
}

TEST_CASE("a boxed call without room for its results, or with arguments missing, is refused",
          "[dispatcher]") {
  const MicaHost& host = *HostTable();
  const auto refused = [&](MicaStatus status) {
    REQUIRE(status != nullptr);
    const std::string sentence(status->message, static_cast<size_t>(status->message_length));
    status->destroy(status);
    return sentence;
  };
  void* op = nullptr;
  REQUIRE(host.op_find(MicaStr{"mica::frexp.Tensor", 18}, &op) == nullptr);
  const Tensor x = ops::ones({2});
  MicaValue arg{}, results[2] = {};
  arg.tag = MICA_VALUE_TENSOR;
  arg.u.tensor = x.impl();
  results[0].u.i = results[1].u.i = 77;
  const uint64_t keys = x.keys().bits();
  for (int64_t room : {0, 1}) {
    CHECK(refused(host.op_call_boxed(op, &arg, 1, results, room)).find("gives (2) results") !=
          std::string::npos);
    CHECK(refused(LayersExtension()->redispatch(op, keys, &arg, 1, results, room)).find("has room for (") !=
          std::string::npos);
  }
  CHECK(refused(host.op_call_boxed(op, &arg, 0, results, 2)).find("takes (1) boxed arguments") !=
        std::string::npos);
  CHECK((results[0].u.i == 77 && results[1].u.i == 77));
  REQUIRE(host.op_call_boxed(op, &arg, 1, results, 2) == nullptr);
  for (const MicaValue& r : results) host.tensor_release(r.u.tensor);
}

}  // namespace
}  // namespace mica::testing
