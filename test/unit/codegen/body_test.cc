// Bodies: `let`, `check`, `do`, lists and definitions, and the statements that
// they become.
#include "codegen/formula/formula.h"
#include "codegen/names.h"
#include "test/unit/codegen/codegen_test.h"

namespace mica::codegen {
namespace {

constexpr const char* kOperators = R"(
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  class: pointwise
  compute: self + alpha * other
  doc: Adds.
- func: reshape(Tensor self, SymInt[] shape) -> Tensor
  class: decompose
  composite: reshape
  doc: Reshapes.
- func: fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)
  class: custom
  portable: fill
  doc: Fills.
- func: cat(Tensor[] tensors, int dim=0) -> Tensor
  class: fold
  meta: cat
  portable: cat
  doc: Joins.
)";

// The statements of `f(arguments) -> result` with this body.
std::string Body(const std::string& arguments, const std::string& body,
                 const std::string& result = "Tensor") {
  const std::string entry = "- func: f(" + arguments + ") -> " + result +
                            "\n  class: decompose\n  body: |\n    " + body + "\n  doc: F.\n";
  const auto model = LoadTexts(std::string(kOperators) + entry);
  const Entry& f = *model->entries.back();
  EmitOptions options;
  options.name = [](const FormulaExpr& e) { return e.text; };
  return EmitStatements(f.formula->root, options, f.functional != nullptr, 0);
}

std::string Refusal(const std::string& arguments, const std::string& body) {
  try {
    return Body(arguments, body);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("let and check become statements, and so does the last if", "[codegen]") {
  CHECK(Body("Tensor x, int n", "let m = n + 1 in x + m") ==
        "const int64_t m = scalar_math::Add(n, 1);\nreturn ::mica::ops::op::add_Tensor::call(x, "
        "WrappedNumber(Scalar(m)), "
        "Scalar(1));\n");
  CHECK(Body("Tensor x, int n", "check.index n > 0 else \"Count ({n}) of {sizes(x)} is low.\" in x") ==
        "MICA_CHECK_INDEX(((n > 0)), \"Count (\", ::mica::formula::Show(n), \") of \", "
        "::mica::formula::Show((x).sizes()), \" is low.\");\nreturn x;\n");
  CHECK(
      Body("Tensor x, Tensor? y", "x if y is None else x + y") ==
      "if (!(y).defined()) {\n  return x;\n}\nreturn ::mica::ops::op::add_Tensor::call(x, y, Scalar(1));\n");
  CHECK(Body("Tensor x, int n", "reshape(x, let m = n * n in [m])") ==
        "return ::mica::ops::op::reshape::call(x, [&]() -> Dims {\n  const int64_t m = scalar_math::Mul(n, "
        "n);\n  return "
        "::mica::formula::Own(IntSpan({m}));\n}());\n");
}

TEST_CASE("a call that hands on all arguments means another overload", "[codegen]") {
  const auto body = [](const std::string& text) {
    const auto model = LoadTexts(
        std::string(kOperators) +
        "- func: add.Number(Scalar self, Tensor other) -> Tensor\n  class: decompose\n  body: " + text +
        "\n  doc: Adds.\n");
    EmitOptions options;
    options.name = [](const FormulaExpr& e) { return e.text; };
    return EmitStatements(model->entries.back()->formula->root, options, true, 0);
  };
  CHECK(body("add(self, other)") ==
        "return ::mica::ops::op::add_Tensor::call(WrappedNumber(Scalar(self)), other, Scalar(1));\n");
  CHECK(body("add(2, other)") == "return ::mica::ops::op::add_Number::call(Scalar(2), other);\n");
}

TEST_CASE("do calls an in-place operator", "[codegen]") {
  CHECK(Body("Tensor x", "do fill_(x, 1) in x") ==
        "::mica::ops::op::fill__Scalar::call(x, Scalar(1));\nreturn x;\n");
  CHECK_THAT(Refusal("Tensor x", "do add(x, x) in x"),
             Catch::Matchers::Contains("Operator (add) is unknown"));
}

TEST_CASE("lists are joined, sliced, compared and walked", "[codegen]") {
  CHECK(Body("Tensor x, int n", "reshape(x, sizes(x)[:-1] + [n, 2])") ==
        "return ::mica::ops::op::reshape::call(x, "
        "::mica::formula::Concat(::mica::formula::Slice((x).sizes(), 0, "
        "(-1)), IntSpan({n, 2})));\n");
  CHECK(Body("Tensor x", "reshape(x, [s for s in sizes(x) if s != 1])") ==
        "return ::mica::ops::op::reshape::call(x, [&] { Dims items_; for (const auto& s : "
        "::mica::formula::Own((x).sizes())) { if ((s != 1)) items_.push_back(s); } return items_; }());\n");
  CHECK(
      Body("Tensor x, int n", "cat([x + d for d in range(1, n)])") ==
      "return ::mica::ops::op::cat::call([&] { std::vector<Tensor> items_; for (int64_t d = 1; d < n; d += "
      "1) { "
      "items_.push_back(::mica::ops::op::add_Tensor::call(x, WrappedNumber(Scalar(d)), Scalar(1))); } return "
      "items_; }(), 0);\n");
  CHECK(
      Body("Tensor x, int[] s", "x if sizes(x) == s else reshape(x, s)") ==
      "if ((IntSpan((x).sizes()) == IntSpan(s))) {\n  return x;\n}\nreturn ::mica::ops::op::reshape::call(x, "
      "s);\n");
  CHECK(Body("Tensor x", "let last = sizes(x)[-1] in reshape(x, [last, -1])") ==
        "const int64_t last = ::mica::formula::At((x).sizes(), (-1));\nreturn "
        "::mica::ops::op::reshape::call(x, "
        "IntSpan({last, (-1)}));\n");
}

TEST_CASE("several results, functions of numbers, and definitions", "[codegen]") {
  CHECK(Body("Tensor x, int n", "[x + min(n, 3), None]", "(Tensor, Tensor)") ==
        "return std::tuple<Tensor, Tensor>(::mica::ops::op::add_Tensor::call(x, "
        "WrappedNumber(Scalar(::mica::formula::Min(n, 3))), Scalar(1)), Tensor());\n");
  const auto model =
      LoadTexts(std::string(kOperators) +
                "- def: twice(Tensor x) -> Tensor\n  body: x + x\n"
                "- func: f(Tensor x) -> Tensor\n  class: decompose\n  body: twice(twice(x))\n  doc: "
                "F.\n");
  EmitOptions options;
  options.name = [](const FormulaExpr& e) { return e.text; };
  CHECK(EmitFormula(model->entries.back()->formula->root, options) ==
        "::mica::composites::twice(::mica::composites::twice(x))");
  REQUIRE(model->helpers.size() == 1);
  CHECK(model->helpers[0]->formula != nullptr);
}

TEST_CASE("an in-place body ends in self", "[codegen]") {
  const std::string head = "- func: g_(Tensor(a!) self) -> Tensor(a!)\n  class: decompose\n  doc: G.\n";
  const auto model = LoadTexts(kOperators + head + "  body: do fill_(self, 2) in self\n");
  EmitOptions options;
  options.name = [](const FormulaExpr& e) { return e.text; };
  CHECK(EmitStatements(model->entries.back()->formula->root, options, false, 2) ==
        "  ::mica::ops::op::fill__Scalar::call(self, Scalar(2));\n  return;\n");
  CHECK_THROWS_WITH(
      LoadTexts(kOperators + head + "  body: self + self\n"),
      Catch::Matchers::Contains("native.yaml:22:14: Body of the in-place operator g_ gives another"));
}

TEST_CASE("mistakes in bodies have their place", "[codegen]") {
  const auto at = [](const std::string& body, const std::string& message) {
    INFO(body);
    CHECK_THAT(Refusal("Tensor x, int n", body), Catch::Matchers::Contains(message));
  };
  at("let x = n in x", "native.yaml:22:5: Name (x) is given again");
  at("let m = n x", "native.yaml:22:15: Found `x` after the value of `m`; expected `in`.");
  at("check n in x", "after the condition of a `check`; expected `else`.");
  at("check n > 0 else n in x", "native.yaml:22:22: The message of a `check` is no string");
  at("check x else \"No.\" in x", "native.yaml:22:11: Condition of `check` is a Tensor; expected a bool");
  at("check n > 0 else \"Count ({m}).\" in x", "native.yaml:22:31: Name (m) is unknown");
  at("check n > 0 else \"Count ({n\" in x", "native.yaml:22:30: A value in the message has no end");
  at("do x in x", "native.yaml:22:8: `do` calls nothing");
  at("reshape(x, [d for d in n])", "native.yaml:22:28: `for` walks a int; expected a list or `range(...)`.");
  at("reshape(x, [d for d in range()])", "Built-in (range) gets 0 arguments; expected 1 to 3.");
  at("x[0:1]", "native.yaml:22:6: A Tensor is sliced; expected a list");
  at("reshape(x, sizes(x) + x)", "Operator `+` does not fit");
  at("reshape(x, sizes(x) * [1])", "expected lists of one type");
  at("let m = None in x", "Name (m) stands for a NoneType; expected a value.");
}

}  // namespace mica::codegen
