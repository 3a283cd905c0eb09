// Which names a derivative's formulas read, and where they come from.
#include "codegen/emit/autograd_plan.h"

#include <algorithm>

#include "codegen/text.h"

namespace mica::codegen {
namespace {

const schema::FunctionSchema& SchemaOf(const Derivative& d) { return d.entry->primary().schema; }

void CollectCalls(const FormulaExpr& e, std::vector<const Function*>* calls) {
  if (e.kind == FormulaExpr::Kind::kCall) calls->push_back(e.function);
  for (const FormulaExpr& operand : e.operands) CollectCalls(operand, calls);
}

void AddSaved(DerivativePlan* plan, SavedName saved, const std::set<int>& edges) {
  for (SavedName& s : plan->saved) {
    if (s.kind != saved.kind || s.name != saved.name) continue;
    s.edges.insert(edges.begin(), edges.end());
    return;
  }
  saved.edges = edges;
  plan->saved.push_back(std::move(saved));
}

// A name read as a value.
void AddValue(DerivativePlan* plan, const std::string& name, const std::set<int>& edges) {
  using Kind = SavedName::Kind;
  const schema::FunctionSchema& schema = SchemaOf(*plan->derivative);
  if (const int argument = schema.FindArgument(name); argument >= 0) {
    const schema::Type& type = schema.arguments[argument].type;
    const Kind kind = type.is_tensor()        ? Kind::kTensor
                      : type.is_tensor_list() ? Kind::kTensors
                                              : Kind::kValue;
    AddSaved(plan, {kind, name, argument, -1, {}}, edges);
  } else if (const int result = NumberedName(name, "result"); result >= 0) {
    AddSaved(plan, {Kind::kResult, name, -1, result, {}}, edges);
  }
}

void AddMetadata(DerivativePlan* plan, const std::string& name, const GradientRule& rule,
                 const std::set<int>& edges) {
  const schema::FunctionSchema& schema = SchemaOf(*plan->derivative);
  const int argument = schema.FindArgument(name);
  if (argument >= 0 && schema.arguments[argument].type.is_tensor_list())
    return AddSaved(plan, {SavedName::Kind::kInfos, name, argument, -1, {}}, edges);
  const bool is_input = std::find(rule.inputs.begin(), rule.inputs.end(), argument) != rule.inputs.end();
  if (argument >= 0 && !is_input) AddSaved(plan, {SavedName::Kind::kInfo, name, argument, -1, {}}, edges);
}

void AddInputs(DerivativePlan* plan) {
  const Derivative& d = *plan->derivative;
  std::set<int> arguments;
  for (const GradientRule& rule : d.rules) {
    if (rule.kind == GradientRule::Kind::kNone) continue;
    arguments.insert(rule.inputs.begin(), rule.inputs.end());
  }
  for (const int argument : arguments) {
    if (!plan->inputs.empty() && plan->inputs.back().is_list)
      throw Mistake(d.location, StrCat("Derivative of ", d.entry->primary().full_name,
                                       " gives a gradient to an argument after a list of tensors; expected "
                                       "the list as the last argument with a gradient."));
    const bool is_list = SchemaOf(d).arguments[argument].type.is_tensor_list();
    plan->inputs.push_back({argument, static_cast<int>(plan->inputs.size()), is_list});
  }
}

}  // namespace

int NumberedName(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem)) return -1;
  name.remove_prefix(stem.size());
  if (name.empty()) return 0;
  int number = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return -1;
    number = number * 10 + (c - '0');
  }
  return number;
}

const GradientInput* DerivativePlan::InputOf(int argument) const {
  for (const GradientInput& input : inputs)
    if (input.argument == argument) return &input;
  return nullptr;
}

const SavedName* DerivativePlan::Find(SavedName::Kind kind, std::string_view name) const {
  for (const SavedName& s : saved)
    if (s.kind == kind && s.name == name) return &s;
  return nullptr;
}

DerivativePlan MakePlan(const Derivative& derivative) {
  DerivativePlan plan;
  plan.derivative = &derivative;
  const auto& returns = SchemaOf(derivative).returns;
  plan.returns_list = returns.size() == 1 && returns[0].type.is_tensor_list();
  AddInputs(&plan);
  for (const GradientRule& rule : derivative.rules) {
    if (rule.kind != GradientRule::Kind::kFormula) continue;
    std::set<int> edges;
    for (const int argument : rule.inputs) {
      const GradientInput& input = *plan.InputOf(argument);
      if (input.is_list && rule.inputs.size() > 1)
        throw Mistake(derivative.location, StrCat("Derivative of ", derivative.entry->primary().full_name,
                                                  " has one formula for a list of tensors and others; "
                                                  "expected a formula of its own for the list."));
      edges.insert(input.edge);
    }
    for (const std::string& name : rule.formula->names) AddValue(&plan, name, edges);
    for (const auto& [name, builtins] : rule.formula->metadata) {
      if (!rule.formula->names.count(name)) AddMetadata(&plan, name, rule, edges);
    }
    CollectCalls(rule.formula->root, &plan.called);
  }
  return plan;
}

}  // namespace mica::codegen
