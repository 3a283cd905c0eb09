// The forward-mode rule of a derivative: its `tangent:`, or what follows from the
// operator's class.
//
// By class: a pointwise operator's Jacobian is diagonal, so the gradient formula
// itself maps a tangent; a result of a reduction depends on its slice alone, so the
// gradient of ones weighs the slice's tangents; a view of the tangent is the tangent
// of the view; fold and gather move elements about; a contraction is linear in each
// input.
#include <algorithm>

#include "codegen/load.h"
#include "codegen/tangents.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using schema::Type;
using schema::TypeKind;
using Kind = TangentRule::Kind;

const schema::FunctionSchema& SchemaOf(const Derivative& d) { return d.entry->primary().schema; }

std::vector<std::string> TangentNames(const Derivative& d) {
  std::vector<std::string> names;
  for (const int input : TangentInputs(d)) names.push_back(TangentName(SchemaOf(d).arguments[input].name));
  return names;
}

// Whether each input has a gradient formula of its own, which reads nothing of the
// inputs of `d` or its results but their metadata.
bool HasOwnRules(const Derivative& d) {
  for (const GradientRule& rule : d.rules)
    if (rule.kind == GradientRule::Kind::kFormula && rule.inputs.size() != 1) return false;
  return true;
}

bool ReadsNoInput(const Derivative& d) {
  for (const GradientRule& rule : d.rules) {
    if (rule.kind != GradientRule::Kind::kFormula) continue;
    if (rule.formula->names.count("result")) return false;
    for (const int input : TangentInputs(d))
      if (rule.formula->names.count(SchemaOf(d).arguments[input].name)) return false;
  }
  return true;
}

Kind KindOfClass(const Derivative& d) {
  const Entry& e = *d.entry;
  const size_t inputs = TangentInputs(d).size();
  if (inputs == 0) return Kind::kZero;
  if (!e.functional || SchemaOf(d).returns.size() != 1 || !HasOwnRules(d)) return Kind::kGeneric;
  switch (e.op_class) {
    case OpClass::kPointwise:
      return Kind::kPointwise;
    case OpClass::kView:
      return Kind::kLinear;
    case OpClass::kReduction:
      return inputs == 1 ? Kind::kReduction : Kind::kGeneric;
    case OpClass::kFold:
      return inputs == 1 ? Kind::kLinear : Kind::kGeneric;
    case OpClass::kGather:  // what is out of bounds may be filled with a number
      return inputs == 1 && !e.class_args.count("fill") && ReadsNoInput(d) ? Kind::kLinear : Kind::kGeneric;
    case OpClass::kContraction:
      return inputs == 2 && e.portable.empty() ? Kind::kMultilinear : Kind::kGeneric;
    default:
      return Kind::kGeneric;
  }
}

void CollectTangents(const FormulaExpr& e, const Derivative& d, std::vector<int>* inputs) {
  if (e.kind == FormulaExpr::Kind::kName) {
    for (const int input : TangentInputs(d)) {
      if (e.text != TangentName(SchemaOf(d).arguments[input].name)) continue;
      if (std::find(inputs->begin(), inputs->end(), input) == inputs->end()) inputs->push_back(input);
    }
  }
  for (const FormulaExpr& operand : e.operands) CollectTangents(operand, d, inputs);
}

// `a + b` and `a - b` of Tensors.
bool IsSum(const FormulaExpr& e) {
  if (e.kind != FormulaExpr::Kind::kCall || e.operands.size() != 3) return false;
  const std::string& name = e.function->full_name;
  return (name == "mica::add.Tensor" || name == "mica::sub.Tensor") && e.operands[2].text == "Scalar(1)";
}

void AddTerms(const FormulaExpr& e, const Derivative& d, bool subtracted, std::vector<TangentTerm>* terms) {
  if (IsSum(e)) {
    const bool minus = e.function->full_name == "mica::sub.Tensor";
    AddTerms(e.operands[0], d, subtracted, terms);
    AddTerms(e.operands[1], d, subtracted != minus, terms);
    return;
  }
  TangentTerm term{&e, subtracted, {}};
  CollectTangents(e, d, &term.inputs);
  terms->push_back(std::move(term));
}

// The formula of each result that has one alone; the whole where one call gives several.
std::vector<const FormulaExpr*> FormulasOf(const FormulaExpr& root) {
  if (root.kind != FormulaExpr::Kind::kTuple) return {&root};
  std::vector<const FormulaExpr*> parts;
  for (const FormulaExpr& part : root.operands) parts.push_back(&part);
  return parts;
}

void CheckTerms(const Derivative& d, const TangentRule& rule) {
  std::vector<int> read;
  const std::vector<std::string> names = TangentNames(d);
  for (const FormulaExpr* part : FormulasOf(rule.formula->root)) {
    for (const TangentTerm& term : TangentTerms(*part, d)) {
      if (term.inputs.empty())
        throw Mistake(term.expr->location.file ? term.expr->location : rule.text.At(0),
                      StrCat("A term of the tangent of ", d.entry->base_name, " reads no tangent of an input",
                             "; expected one of ", JoinNames(names), " in each."));
      read.insert(read.end(), term.inputs.begin(), term.inputs.end());
    }
  }
  for (const int input : TangentInputs(d)) {
    if (std::find(read.begin(), read.end(), input) != read.end()) continue;
    const std::string& name = SchemaOf(d).arguments[input].name;
    throw Mistake(
        rule.text.At(0),
        StrCat("Tangent of ", d.entry->base_name, " does not read (", TangentName(name), "), though `", name,
               "` has a gradient; expected it in a term, or `", name, ": zeros`."));
  }
}

FormulaScope ScopeOf(const Derivative& d) {
  FormulaScope scope;
  const schema::FunctionSchema& schema = SchemaOf(d);
  for (const schema::Argument& a : schema.arguments) scope.names[a.name] = a.type;
  for (const int input : TangentInputs(d)) {
    const schema::Argument& a = schema.arguments[input];
    if (scope.names.count(TangentName(a.name)))
      throw Mistake(d.location, StrCat("Operator (", d.entry->primary().full_name, ") has an argument (",
                                       TangentName(a.name), "), which formulas know as the tangent of `",
                                       a.name, "`; expected another name of the argument."));
    scope.names[TangentName(a.name)] =
        a.type.is_tensor_list() ? Type::ListOf(Type(TypeKind::kTensor)) : Type(TypeKind::kTensor);
  }
  const size_t results = schema.returns.size();
  for (size_t i = 0; i < results; ++i)
    scope.names[results == 1 ? "result" : StrCat("result", i)] = Type(TypeKind::kTensor);
  const size_t count = TangentResults(d).size();
  scope.expected = Type(count == 1 ? TypeKind::kTensor : TypeKind::kTuple);
  for (size_t i = 0; count > 1 && i < count; ++i) scope.expected.elements.emplace_back(TypeKind::kTensor);
  return scope;
}

// `linear` and `multilinear`, which need a functional form to call.
void CheckLinear(const Derivative& d, const PlacedText& text) {
  if (d.entry->functional && TangentResults(d).size() == 1) return;
  throw Mistake(text.At(0), StrCat("Tangent of ", d.entry->base_name, " is (", text.text(),
                                   "), which needs a functional form with one result that has a tangent; "
                                   "expected a formula."));
}

}  // namespace

std::string TangentName(const std::string& argument) { return StrCat(argument, "_t"); }

std::vector<int> TangentInputs(const Derivative& derivative) {
  std::vector<int> inputs;
  for (const GradientRule& rule : derivative.rules)
    if (rule.kind == GradientRule::Kind::kFormula)
      inputs.insert(inputs.end(), rule.inputs.begin(), rule.inputs.end());
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

std::vector<int> TangentResults(const Derivative& derivative) {
  std::vector<int> results;
  for (size_t i = 0; i < derivative.output_differentiability.size(); ++i)
    if (derivative.output_differentiability[i]) results.push_back(static_cast<int>(i));
  return results;
}

std::vector<TangentTerm> TangentTerms(const FormulaExpr& root, const Derivative& derivative) {
  std::vector<TangentTerm> terms;
  AddTerms(root, derivative, false, &terms);
  return terms;
}

TangentRule ReadTangentRule(const PlacedText* text, const Derivative& derivative, const Model& model) {
  TangentRule rule;
  if (!text) {
    rule.kind = KindOfClass(derivative);
    rule.from_class = rule.kind != Kind::kGeneric;
    return rule;
  }
  rule.text = *text;
  if (TangentInputs(derivative).empty())
    throw Mistake(text->At(0), StrCat("Tangent of ", derivative.entry->base_name,
                                      " stands where all gradients are zero; expected none."));
  if (text->text() == "linear" || text->text() == "multilinear") {
    CheckLinear(derivative, *text);
    rule.kind = text->text() == "linear" ? Kind::kLinear : Kind::kMultilinear;
    return rule;
  }
  if (text->text() == "parts") {
    if (derivative.entry->op_class != OpClass::kDecompose)
      throw Mistake(text->At(0), StrCat("Tangent of ", derivative.entry->base_name,
                                        " is (parts), but it is not composed of others; expected `linear`, "
                                        "`multilinear` or a formula."));
    rule.kind = Kind::kParts;
    return rule;
  }
  rule.kind = Kind::kFormula;
  rule.formula = std::make_shared<FormulaTree>(ParseFormula(*text, model, ScopeOf(derivative)));
  CheckTerms(derivative, rule);
  return rule;
}

}  // namespace mica::codegen
