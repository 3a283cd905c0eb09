// Calls: candidates by name, the choice among overloads, and the built-ins.
#include "codegen/formula/check.h"
#include "codegen/formula/functions.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using schema::Type;
using schema::TypeKind;
using syntax::Node;
using Kind = FormulaExpr::Kind;

struct Builtin {
  std::string_view name;
  TypeKind result;
  bool is_list;
  int arity;
};
constexpr Builtin kTensorBuiltins[] = {
    {"sizes", TypeKind::kInt, true, 1},
    {"strides", TypeKind::kInt, true, 1},
    {"ndim", TypeKind::kInt, false, 1},
    {"numel", TypeKind::kInt, false, 1},
    {"size", TypeKind::kInt, false, 2},
    {"dtype", TypeKind::kScalarType, false, 1},
    {"device", TypeKind::kDevice, false, 1},
    {"is_complex", TypeKind::kBool, false, 1},
    {"is_floating_point", TypeKind::kBool, false, 1},
    {"defined", TypeKind::kBool, false, 1},
};

bool IsInt(const Type& t) { return t.is(TypeKind::kInt) || t.is(TypeKind::kSymInt); }

}  // namespace

std::vector<Candidate> FormulaChecker::CandidatesOf(std::string_view name, OpForm form) const {
  std::vector<Candidate> candidates;
  if (form == OpForm::kFunctional) {
    for (const auto& function : FormulaFunctions())
      if (function->schema.name == name) candidates.push_back({&function->schema, nullptr, function.get()});
    for (const Helper* helper : model_.Helpers(name))
      candidates.push_back({&helper->schema, nullptr, helper});
  }
  const size_t dot = name.find('.');
  for (const Function* f : model_.Overloads(name.substr(0, dot))) {
    const bool wanted = dot == std::string_view::npos || f->schema.overload == name.substr(dot + 1);
    if (wanted && f->form == form) candidates.push_back({&f->schema, f, nullptr});
  }
  return candidates;
}

std::optional<Conversion> FormulaChecker::Resolve(const std::vector<Candidate>& candidates,
                                                  const std::vector<CallArgument>& arguments,
                                                  std::string* why) const {
  std::optional<Conversion> best;
  std::string first_why;
  for (const Candidate& candidate : candidates) {
    std::string reason;
    std::optional<Conversion> call = TryCall(candidate, arguments, &reason);
    if (call && (!best || call->cost < best->cost)) best = std::move(call);
    if (!reason.empty())
      StrAppend(&first_why, first_why.empty() ? "" : "; ", candidate.schema->name,
                candidate.schema->overload.empty() ? "" : ".", candidate.schema->overload, ": ", reason);
  }
  *why = first_why.empty() ? "there is no such operator" : first_why;
  return best;
}

std::vector<std::string> FormulaChecker::KnownFunctions() const {
  std::vector<std::string> names = model_.BaseNames();
  for (const auto& helper : model_.helpers) names.push_back(helper->schema.name);
  for (const auto& function : FormulaFunctions()) names.push_back(function->schema.name);
  for (const Builtin& b : kTensorBuiltins) names.emplace_back(b.name);
  return names;
}

std::optional<FormulaExpr> FormulaChecker::CheckBuiltin(const Node& node) {
  const auto arity = [&](int n) {
    if (static_cast<int>(node.children.size()) != n)
      throw Mistake(text_.At(node.offset), StrCat("Built-in (", node.text, ") gets ", node.children.size(),
                                                  " arguments; expected ", n, "."));
  };
  for (const Builtin& b : kTensorBuiltins) {
    if (b.name != node.text) continue;
    // `size(x, 0)` and an operator of the same name: the built-in has a Tensor.
    arity(b.arity);
    FormulaExpr tensor = Check(node.children[0]);
    if (!tensor.type.is_tensor())
      throw Mistake(text_.At(node.children[0].begin), StrCat("Argument of built-in (", node.text, ") is a ",
                                                             TypeText(tensor.type), "; expected a Tensor."));
    const Kind kind = tensor.kind == Kind::kName ? Kind::kMetadata : Kind::kBuiltin;
    const Type type = b.is_list ? Type::ListOf(Type(b.result)) : Type(b.result);
    std::vector<FormulaExpr> operands;
    operands.push_back(std::move(tensor));
    for (int i = 1; i < b.arity; ++i) {
      operands.push_back(Check(node.children[i]));
      if (!IsInt(operands.back().type))
        throw Mistake(text_.At(node.children[i].begin),
                      StrCat("Dimension is a ", TypeText(operands.back().type), "; expected an int."));
    }
    return Make(kind, type, node.text, node, std::move(operands));
  }
  if (node.text == "len") {
    arity(1);
    FormulaExpr list = Check(node.children[0]);
    if (!list.type.is_list())
      throw Mistake(text_.At(node.offset),
                    StrCat("Argument of built-in (len) is a ", TypeText(list.type), "; expected a list."));
    const Type given = list.type.unwrapped();  // an optional must have been found given
    list = Fit(std::move(list), given, node);
    return Make(Kind::kBuiltin, Type(TypeKind::kInt), "len", node, {std::move(list)});
  }
  return std::nullopt;
}

FormulaExpr FormulaChecker::CheckCall(const Node& node) {
  if (std::optional<FormulaExpr> builtin = CheckBuiltin(node)) return *std::move(builtin);
  return CheckOperatorCall(node, OpForm::kFunctional);
}

// Whether a call hands on the arguments of the operator whose body it stands in.
bool FormulaChecker::HandsOnItsOwn(const std::vector<CallArgument>& arguments) const {
  if (!scope_.own || arguments.size() != scope_.own->arguments.size()) return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const CallArgument& a = arguments[i];
    if (!a.keyword.empty() || a.expr.kind != Kind::kName || a.expr.text != scope_.own->arguments[i].name)
      return false;
  }
  return true;
}

FormulaExpr FormulaChecker::CheckOperatorCall(const Node& node, OpForm form) {
  std::vector<Candidate> candidates = CandidatesOf(node.text, form);
  if (candidates.empty())
    throw Mistake(text_.At(node.offset),
                  StrCat("Operator (", node.text, ") is unknown", DidYouMean(node.text, KnownFunctions()),
                         "; expected an operator of native_functions.yaml, a helper or a built-in."));
  std::vector<CallArgument> arguments;
  std::vector<std::string> types;
  for (size_t i = 0; i < node.children.size(); ++i) {
    arguments.push_back({Check(node.children[i]), node.keywords[i]});
    types.push_back(TypeText(arguments.back().expr.type));
  }
  if (HandsOnItsOwn(arguments))
    std::erase_if(candidates, [&](const Candidate& c) { return c.schema == scope_.own; });
  std::string why;
  std::optional<Conversion> call = Resolve(candidates, arguments, &why);
  if (!call)
    throw Mistake(text_.At(node.offset), StrCat("No overload of ", node.text, " takes (", Join(types, ", "),
                                                "): ", why, "; expected arguments that fit one."));
  call->expr.location = text_.At(node.offset);
  return std::move(call->expr);
}

}  // namespace mica::codegen
