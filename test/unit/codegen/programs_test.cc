// Programs that mica-gen makes from `compute`, `reduce` and `stages`, as listings.
#include "codegen/program.h"
#include "test/unit/codegen/codegen_test.h"

namespace mica::codegen {
namespace {

enum { kBool, kUnsigned, kSigned, kFloating, kComplex };

std::unique_ptr<const Model> Pointwise(const std::string& rest) {
  return LoadTexts(
      "- func: f(Tensor self, Tensor other, Scalar s, bool flag) -> Tensor\n  class: pointwise\n  doc: F.\n" +
      rest);
}
std::string MainOf(const std::string& compute, int kind = kFloating) {
  const auto model = Pointwise("  compute: \"" + compute + "\"\n");
  const auto& program = model->entries[0]->programs[kind];
  return program ? Listing(*program) : "none";
}

}  // namespace

TEST_CASE("an expression becomes instructions over registers written once", "[codegen]") {
  CHECK(MainOf("self + s * other") ==
        "main:\n  r0 = LOAD 0\n  r1 = SCALAR 0\n  r2 = LOAD 1\n  r3 = MUL r1 r2\n  r4 = ADD r0 r3\n  STORE 0 "
        "r4\n");
}

TEST_CASE("inputs and scalars are argument numbers", "[codegen]") {
  const auto model = Pointwise("  compute: other * s\n");
  const Program& p = *model->entries[0]->programs[kFloating];
  CHECK(p.input_args == std::vector<int32_t>{1});
  CHECK(p.scalar_args == std::vector<int32_t>{2});
  CHECK(p.num_registers == 3);
  CHECK(p.num_outputs == 1);
  CHECK(p.class_name == "pointwise");
  CHECK(p.source == "other * s");
}

TEST_CASE("constants fold and equal instructions are shared", "[codegen]") {
  CHECK(MainOf("self * (2 * 3 - 1)") ==
        "main:\n  r0 = LOAD 0\n  r1 = CONST 5\n  r2 = MUL r0 r1\n  STORE 0 r2\n");
  CHECK(MainOf("exp(self) / (1 + exp(self))") ==
        "main:\n  r0 = LOAD 0\n  r1 = EXP r0\n  r2 = CONST 1\n  r3 = ADD r2 r1\n  r4 = DIV r1 r3\n  STORE 0 "
        "r4\n");
  CHECK(MainOf("self ** 2") == "main:\n  r0 = LOAD 0\n  r1 = SQUARE r0\n  STORE 0 r1\n");
  CHECK(MainOf("self * (1 / 2)") ==
        "main:\n  r0 = LOAD 0\n  r1 = CONST 0.5\n  r2 = MUL r0 r1\n  STORE 0 r2\n");
  CHECK(MainOf("let t = self + 1 in t * t") ==
        "main:\n  r0 = LOAD 0\n  r1 = CONST 1\n  r2 = ADD r0 r1\n  r3 = MUL r2 r2\n  STORE 0 r3\n");
}

TEST_CASE("masks and lanes are told apart", "[codegen]") {
  CHECK(MainOf("where(self > 0 and not flag, self, 0)") ==
        "main:\n  r0 = LOAD 0\n  r1 = CONST 0\n  r2 = GT r0 r1\n  r3 = SCALAR 0\n  r4 = TO_MASK r3\n  r5 = "
        "MASK_NOT r4\n"
        "  r6 = MASK_AND r2 r5\n  r7 = SELECT r6 r0 r1\n  STORE 0 r7\n");
  CHECK(MainOf("float(self > 0) - float(self < 0)") ==
        "main:\n  r0 = LOAD 0\n  r1 = CONST 0\n  r2 = GT r0 r1\n  r3 = TO_LANE r2\n  r4 = LT r0 r1\n  r5 = "
        "TO_LANE r4\n"
        "  r6 = SUB r3 r5\n  STORE 0 r6\n");
}

TEST_CASE("precedence and associativity are Python's", "[codegen]") {
  CHECK(MainOf("self - other - s") == MainOf("(self - other) - s"));
  CHECK(MainOf("-self ** 2") == MainOf("-(self ** 2)"));
  CHECK(MainOf("self ** other ** s") == MainOf("self ** (other ** s)"));
  CHECK(MainOf("self + other * s") == MainOf("self + (other * s)"));
  CHECK(MainOf("self << 1 & other", kSigned) == MainOf("(self << 1) & other", kSigned));
  CHECK(MainOf("bool(self) or bool(other) and flag") == MainOf("bool(self) or (bool(other) and flag)"));
  CHECK(MainOf("not self == other") == MainOf("not (self == other)"));
}

TEST_CASE("kinds without a meaning drop out when `supports` is not given", "[codegen]") {
  const auto model = Pointwise("  compute: max(self, other)\n");
  CHECK(model->entries[0]->supports == 0x0f);
  CHECK(model->entries[0]->programs[kComplex] == nullptr);
  CHECK(model->entries[0]->programs[kSigned] == model->entries[0]->programs[kUnsigned]);
  // Equal programs are one.
  CHECK(model->entries[0]->programs[kSigned] == model->entries[0]->programs[kFloating]);
}

TEST_CASE("a map gives each kind its expression", "[codegen]") {
  const auto model = Pointwise("  compute: {bool: self | other, default: self + other}\n");
  CHECK_THAT(Listing(*model->entries[0]->programs[kBool]), Catch::Matchers::Contains("OR"));
  CHECK_THAT(Listing(*model->entries[0]->programs[kComplex]), Catch::Matchers::Contains("ADD"));
}

TEST_CASE("inf saturates in integer programs", "[codegen]") {
  const auto model = Pointwise("  compute: min(self, -inf)\n  supports: [int]\n");
  const MicaConstant& c = model->entries[0]->programs[kSigned]->constants.at(0);
  CHECK(c.i == INT64_MIN);
  CHECK(c.is_integer == 0);
}

TEST_CASE("a program has at most 250 registers", "[codegen]") {
  std::string sum = "self";
  for (int i = 0; i < 260; ++i) sum += " * other + " + std::to_string(i + 10);
  MICA_REQUIRE_ERROR(Pointwise("  compute: " + sum + "\n"),
                     "needs more than 250 registers; expected a shorter one");
}

TEST_CASE("expressions nest at most 100 levels deep", "[codegen]") {
  MICA_REQUIRE_ERROR(Pointwise("  compute: \"" + std::string(5000, '(') + "\"\n"),
                     "nests deeper than 100 levels");
  MICA_REQUIRE_ERROR(Pointwise("  compute: \"" + std::string(5000, '-') + "self\"\n"),
                     "nests deeper than 100 levels");
}

TEST_CASE("a short reduce is init, step, combine and finish", "[codegen]") {
  const auto model = LoadTexts(
      "- func: norm(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor\n  class: reduction(dims=dim, "
      "keepdim=keepdim, none=all)\n"
      "  dtype: float\n  reduce: {init: 0, element: x * x, combine: a + b, finish: sqrt(a)}\n  doc: N.\n");
  const Entry& entry = *model->entries[0];
  const Program& p = *entry.programs[kFloating];
  CHECK(Listing(p) ==
        "init:\n  r0 = CONST 0\n  STORE_STATE 0 r0\n"
        "main:\n  r0 = ELEMENT 0\n  r1 = MUL r0 r0\n  r2 = STATE 0\n  r3 = ADD r2 r1\n  STORE_STATE 0 r3\n"
        "combine:\n  r0 = STATE 0\n  r1 = STATE 1\n  r2 = ADD r0 r1\n  STORE_STATE 0 r2\n"
        "finish:\n  r0 = STATE 0\n  r1 = SQRT r0\n  STORE 0 r1\n");
  CHECK(p.dims_arg == 1);
  CHECK(p.keepdim_arg == 2);
  CHECK(p.flags == MICA_PROGRAM_DIMS_NONE_IS_ALL);
  CHECK(entry.programs[kSigned] == nullptr);
}

TEST_CASE("a step computes all new states from the old ones", "[codegen]") {
  const auto model = LoadTexts(
      "- func: max.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)\n  class: "
      "reduction(dims=dim)\n"
      "  supports: [float]\n  reduce:\n    state: [m, i]\n    init: [-inf, 0]\n"
      "    step: [\"where(x > m, x, m)\", \"where(x > m, index, i)\"]\n"
      "    combine: [\"where(b.m > a.m, b.m, a.m)\", \"where(b.m > a.m, b.i, a.i)\"]\n  doc: M.\n");
  const Program& p = *model->entries[0]->programs[kFloating];
  const std::string listing = Listing(p);
  CHECK_THAT(listing, Catch::Matchers::Contains(
                          "main:\n  r0 = ELEMENT 0\n  r1 = STATE 0\n  r2 = GT r0 r1\n  r3 = SELECT r2 r0 r1\n"
                          "  r4 = INDEX 0\n  r5 = STATE 1\n  r6 = SELECT r2 r4 r5\n"
                          "  STORE_STATE 0 r3\n  STORE_STATE 1 r6\n"));
  CHECK_THAT(listing,
             Catch::Matchers::Contains("combine:\n  r0 = STATE 2\n  r1 = STATE 0\n  r2 = GT r0 r1\n"));
  CHECK((p.flags & MICA_PROGRAM_USES_INDEX) != 0);
  CHECK(p.num_states == 2);
  CHECK(p.num_outputs == 2);
}

TEST_CASE("stages of a row read the results of earlier ones", "[codegen]") {
  const auto model = LoadTexts(
      "- func: softmax(Tensor self, int dim) -> Tensor\n  class: row(dim=dim)\n  supports: [float]\n  "
      "stages:\n"
      "    - {name: m, reduce: {init: \"-inf\", combine: \"max(a, b)\"}}\n"
      "    - {name: s, reduce: {init: 0, element: exp(x - m), combine: a + b}}\n  map: exp(x - m) / s\n  "
      "doc: S.\n");
  const Program& first = *model->entries[0]->programs[kFloating];
  REQUIRE(first.next);
  CHECK(first.map.empty());
  CHECK(first.num_states == 1);
  CHECK(first.next->first_state == 1);
  CHECK(first.next->num_states == 2);
  CHECK_THAT(
      Listing(*first.next),
      Catch::Matchers::Contains("main:\n  r0 = ELEMENT 0\n  r1 = STATE 0\n  r2 = SUB r0 r1\n  r3 = EXP r2\n"
                                "  r4 = STATE 1\n  r5 = ADD r4 r3\n  STORE_STATE 1 r5\n"));
  CHECK_THAT(Listing(*first.next), Catch::Matchers::Contains("combine:\n  r0 = STATE 1\n  r1 = STATE 3\n"));
  CHECK_THAT(Listing(*first.next), Catch::Matchers::Contains("map:\n  r0 = ELEMENT 0\n  r1 = STATE 0\n"));
}

TEST_CASE("random draws are never shared", "[codegen]") {
  const auto model = LoadTexts(
      "- func: triangle(Tensor self) -> Tensor\n  class: random\n  supports: [float]\n  compute: u01() + "
      "u01()\n  doc: T.\n");
  CHECK(Listing(*model->entries[0]->programs[kFloating]) ==
        "main:\n  r0 = U01 0\n  r1 = U01 1\n  r2 = ADD r0 r1\n  STORE 0 r2\n");
}

}  // namespace mica::codegen
