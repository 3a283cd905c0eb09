// Formulas: overload resolution, conversions, and the C++ that they become.
#include "codegen/formula/formula.h"
#include "codegen/names.h"
#include "codegen/tangents.h"
#include "test/unit/codegen/codegen_test.h"

namespace mica::codegen {
namespace {

constexpr const char* kOperators = R"(
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  class: pointwise
  compute: self + alpha * other
  doc: Adds.
- func: add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
  out_name: Scalar_out
  class: pointwise
  compute: self + alpha * other
  doc: Adds.
- func: mul.Tensor(Tensor self, Tensor other) -> Tensor
  class: pointwise
  compute: self * other
  doc: Multiplies.
- func: mul.Scalar(Tensor self, Scalar other) -> Tensor
  out_name: Scalar_out
  class: pointwise
  compute: self * other
  doc: Multiplies.
- func: rsub.Scalar(Tensor self, Scalar other) -> Tensor
  class: pointwise
  compute: other - self
  doc: Subtracts.
- func: neg(Tensor self) -> Tensor
  class: pointwise
  compute: -self
  doc: Negates.
- func: sum.dim(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor
  class: reduction(dims=dim, keepdim=keepdim)
  reduce: {init: 0, combine: a + b}
  doc: Sums.
- func: max.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)
  class: reduction(dims=dim)
  portable: max_dim
  doc: Largest.
- func: clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor
  class: decompose
  composite: clamp
  doc: Clamps.
- func: cat(Tensor[] tensors, int dim=0) -> Tensor
  class: fold
  meta: cat
  portable: cat
  doc: Joins.
)";

schema::Type TypeOf(const char* text) { return *schema::ParseType(text); }

// The formula's C++ with x, y: Tensor, s: Scalar, p: Scalar?, n: int, w: Tensor?, d: int[], o: int[]?.
std::string Emit(const std::string& text, const char* expected = "Tensor") {
  static const std::unique_ptr<const Model> model = LoadTexts(kOperators);
  FormulaScope scope;
  for (const auto& [name, type] : {std::pair{"x", "Tensor"},
                                   {"y", "Tensor"},
                                   {"s", "Scalar"},
                                   {"p", "Scalar?"},
                                   {"n", "int"},
                                   {"w", "Tensor?"},
                                   {"d", "int[]"},
                                   {"o", "int[]?"}})
    scope.names[name] = TypeOf(type);
  scope.expected = TypeOf(expected);
  EmitOptions options;
  options.name = [](const FormulaExpr& e) { return e.text; };
  const PlacedText placed(text, {SourceFile::FromText("f.yaml", text), 1, 1});
  return EmitFormula(ParseFormula(placed, *model, scope).root, options);
}

}  // namespace

TEST_CASE("infix operators choose the overload by type", "[codegen]") {
  CHECK(Emit("x * y") == "::mica::ops::op::mul_Tensor::call(x, y)");
  CHECK(Emit("x * s") == "::mica::ops::op::mul_Scalar::call(x, s)");
  CHECK(Emit("x * 2") == "::mica::ops::op::mul_Scalar::call(x, Scalar(2))");
  CHECK(Emit("2 * x") == "::mica::ops::op::mul_Scalar::call(x, Scalar(2))");
  CHECK(Emit("1 - x") == "::mica::ops::op::rsub_Scalar::call(x, Scalar(1))");
  CHECK(Emit("-x") == "::mica::ops::op::neg::call(x)");
  CHECK(Emit("x + y") == "::mica::ops::op::add_Tensor::call(x, y, Scalar(1))");
}

TEST_CASE("calls fill in defaults and keywords, and convert", "[codegen]") {
  CHECK(Emit("sum(x, [0, n], True)") ==
        "::mica::ops::op::sum_dim::call(x, std::optional<IntSpan>(IntSpan({0, n})), true)");
  CHECK(Emit("sum(x, n)") ==
        "::mica::ops::op::sum_dim::call(x, std::optional<IntSpan>(IntSpan({n})), false)");
  CHECK(Emit("sum(x, None, keepdim=True)") == "::mica::ops::op::sum_dim::call(x, std::nullopt, true)");
  CHECK(Emit("sum(x, d)") == "::mica::ops::op::sum_dim::call(x, std::optional<IntSpan>(d), false)");
  CHECK(Emit("clamp(x, max=s)") == "::mica::ops::op::clamp::call(x, std::nullopt, std::optional<Scalar>(s))");
  CHECK(Emit("clamp(x, p)") == "::mica::ops::op::clamp::call(x, p, std::nullopt)");
  CHECK(Emit("cat([x, y])") == "::mica::ops::op::cat::call(TensorSpan({Tensor(x), Tensor(y)}), 0)");
  CHECK(Emit("add.Scalar(x, 1.5)") == "::mica::ops::op::add_Scalar::call(x, Scalar(1.5), Scalar(1))");
  CHECK(Emit("max(x, 0)[1]") == "std::get<1>(::mica::ops::op::max_dim::call(x, 0))");
}

TEST_CASE("numbers compute in C++ or as Scalars", "[codegen]") {
  CHECK(Emit("x * (s - 1)") == "::mica::ops::op::mul_Scalar::call(x, scalar_math::Sub(s, Scalar(1)))");
  CHECK(Emit("x * (n + 1)") == "::mica::ops::op::mul_Scalar::call(x, Scalar(scalar_math::Add(n, 1)))");
  CHECK(Emit("x * (1 / n)") ==
        "::mica::ops::op::mul_Scalar::call(x, Scalar((static_cast<double>(1) / static_cast<double>(n))))");
  CHECK(Emit("sum(x, n // 2)") ==
        "::mica::ops::op::sum_dim::call(x, std::optional<IntSpan>(IntSpan({scalar_math::FloorDiv(n, 2)})), "
        "false)");
}

TEST_CASE("conditions, None and built-ins", "[codegen]") {
  CHECK(Emit("x if n == 0 else y") == "((n == 0) ? Tensor(x) : Tensor(y))");
  CHECK(Emit("x if p is None else x * p") ==
        "(!(p).has_value() ? Tensor(x) : Tensor(::mica::ops::op::mul_Scalar::call(x, (p).value())))");
  CHECK(Emit("x if w is not None else y") == "((w).defined() ? Tensor(x) : Tensor(y))");
  CHECK(Emit("x if is_complex(y) and s != 1 else y") ==
        "((IsComplex((y).dtype()) && !scalar_math::Equal(s, Scalar(1))) ? Tensor(x) : Tensor(y))");
  CHECK(Emit("x if p is not None and p == 2 else y") ==
        "(((p).has_value() && scalar_math::Equal((p).value(), Scalar(2))) ? Tensor(x) : Tensor(y))");
  CHECK(Emit("sum(x, sizes(y))") ==
        "::mica::ops::op::sum_dim::call(x, std::optional<IntSpan>((y).sizes()), false)");
  CHECK(Emit("x if len(d) == 0 else y") ==
        "((static_cast<int64_t>((d).size()) == 0) ? Tensor(x) : Tensor(y))");
  CHECK(Emit("x if o is None or len(o) == 0 else y") ==
        "((!(o).has_value() || (static_cast<int64_t>(((o).value()).size()) == 0)) ? Tensor(x) : Tensor(y))");
  CHECK(Emit("x * size(y, -1)") == "::mica::ops::op::mul_Scalar::call(x, Scalar((y).size((-1))))");
}

TEST_CASE("a formula knows which names it reads, and which for metadata alone", "[codegen]") {
  const auto model = LoadTexts(kOperators,
                               "derivatives:\n- op: mul.Tensor\n  self: grad * other\n  other: sum(grad, "
                               "sizes(self)) * numel(other)\n");
  const auto& rules = model->derivatives.at(0)->rules;
  REQUIRE(rules.size() == 2);
  CHECK(rules[0].formula->names == std::set<std::string>{"grad", "other"});
  CHECK(rules[0].formula->metadata.empty());
  CHECK(rules[1].formula->names == std::set<std::string>{"grad"});
  CHECK(rules[1].formula->metadata ==
        std::map<std::string, std::set<std::string>>{{"self", {"sizes"}}, {"other", {"numel"}}});
}

TEST_CASE("of the elements of a list a formula may read metadata alone", "[codegen]") {
  const auto rule = [](const std::string& formula) {
    const auto model = LoadTexts(kOperators, "derivatives:\n- op: cat\n  tensors: \"" + formula + "\"\n");
    return model->derivatives.at(0)->rules.at(0);
  };
  const GradientRule sized = rule("[sum(grad, [size(t, dim) for t in tensors if ndim(t) > 1])]");
  CHECK(sized.formula->names == std::set<std::string>{"dim", "grad"});
  CHECK(sized.formula->metadata == std::map<std::string, std::set<std::string>>{{"tensors", {"elements"}}});
  const GradientRule valued = rule("[grad * t * size(t, dim) for t in tensors]");
  CHECK(valued.formula->names == std::set<std::string>{"dim", "grad", "tensors"});
  CHECK(valued.formula->metadata.empty());
}

TEST_CASE("rules for several inputs take a tuple or a list", "[codegen]") {
  const auto model = LoadTexts(kOperators,
                               "helpers:\n- both(Tensor grad, Tensor x) -> (Tensor, Tensor)\nderivatives:\n"
                               "- op: mul.Tensor\n  self, other: both(grad, self)\n- op: add.Tensor\n  self, "
                               "other: \"[grad, grad * alpha]\"\n");
  EmitOptions options;
  options.name = [](const FormulaExpr& e) { return e.text; };
  CHECK(EmitFormula(model->derivatives[0]->rules[0].formula->root, options) ==
        "::mica::autograd::both(grad, self)");
  CHECK(EmitFormula(model->derivatives[1]->rules[0].formula->root, options) ==
        "std::tuple<Tensor, Tensor>(grad, ::mica::ops::op::mul_Scalar::call(grad, alpha))");
  CHECK(model->derivatives[0]->rules[0].inputs == std::vector<int>{0, 1});
}

TEST_CASE("none and zeros are rules without a formula", "[codegen]") {
  const auto model = LoadTexts(kOperators, "derivatives:\n- op: mul.Tensor\n  self: none\n  other: zeros\n");
  CHECK(model->derivatives[0]->rules[0].kind == GradientRule::Kind::kNone);
  CHECK(model->derivatives[0]->rules[1].kind == GradientRule::Kind::kZeros);
  CHECK(model->Find("mul.Tensor")->entry->derivative == model->derivatives[0].get());
}

TEST_CASE("forward-mode rules follow from the class, or stand in the file", "[codegen]") {
  const std::string native = std::string(kOperators) + R"(
- func: flip(Tensor self, int[] dims) -> Tensor
  class: gather(dims=dims)
  index: n - 1 - i
  meta: flip
  doc: Flips.
- func: pad(Tensor self, int[] pad, Scalar value=0) -> Tensor
  class: gather(bounds=fill, fill=value)
  index: i - pad.before
  meta: pad
  doc: Pads.
- func: twice(Tensor self) -> Tensor
  class: decompose
  body: self + self
  doc: Doubles.
)";
  using Kind = TangentRule::Kind;
  const auto kind = [&](const std::string& derivative) {
    return LoadTexts(native, "derivatives:\n- op: " + derivative)->derivatives.at(0)->tangent.kind;
  };
  CHECK(kind("mul.Tensor\n  self: grad * other\n  other: grad * self\n") == Kind::kPointwise);
  CHECK(kind("mul.Tensor\n  self, other: \"[grad, grad]\"\n") == Kind::kGeneric);
  CHECK(kind("mul.Tensor\n  self: zeros\n  other: none\n") == Kind::kZero);
  CHECK(kind("sum.dim\n  self: grad\n") == Kind::kReduction);
  CHECK(kind("sum.dim\n  self: grad\n  tangent: linear\n") == Kind::kLinear);
  CHECK(kind("flip\n  self: flip(grad, dims)\n") == Kind::kLinear);
  CHECK(kind("flip\n  self: flip(grad * self, dims)\n") == Kind::kGeneric);
  CHECK(kind("pad\n  self: grad\n") == Kind::kGeneric);
  CHECK(kind("pad\n  self: grad\n  tangent: pad(self_t, pad)\n") == Kind::kFormula);
  CHECK(kind("twice\n  self: grad + grad\n") == Kind::kGeneric);
  CHECK(kind("twice\n  self: grad + grad\n  tangent: parts\n") == Kind::kParts);
}

TEST_CASE("a tangent is a sum of terms", "[codegen]") {
  const auto model = LoadTexts(kOperators,
                               "derivatives:\n- op: mul.Tensor\n  self: grad\n  other: grad\n"
                               "  tangent: mul(self_t, other) + add(mul(self, other_t), self_t, alpha=2)\n");
  const Derivative& d = *model->derivatives[0];
  const std::vector<TangentTerm> terms = TangentTerms(d.tangent.formula->root, d);
  REQUIRE(terms.size() == 2);  // the second sum is scaled, and so is one term
  CHECK(terms[0].inputs == std::vector<int>{0});
  CHECK(terms[1].inputs == std::vector<int>{1, 0});
  CHECK_FALSE(terms[1].subtracted);
}

}  // namespace mica::codegen
