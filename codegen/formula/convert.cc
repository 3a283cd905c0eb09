// Conversions between schema types, and the fit of arguments to one signature.
#include "codegen/formula/check.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using schema::Type;
using schema::TypeKind;

bool IsInt(const Type& t) { return t.is(TypeKind::kInt) || t.is(TypeKind::kSymInt); }

// Without alias annotations, and SymInt as int: what C++ sees.
Type Plain(const Type& type) {
  Type plain = type;
  plain.alias.reset();
  if (plain.kind == TypeKind::kSymInt) plain.kind = TypeKind::kInt;
  plain.list_size = 0;
  for (Type& element : plain.elements) element = Plain(element);
  return plain;
}

Conversion Wrapped(const FormulaExpr& expr, const Type& target, int cost) {
  FormulaExpr out;
  out.kind = FormulaExpr::Kind::kConvert;
  out.type = target;
  out.location = expr.location;
  out.operands.push_back(expr);
  return {std::move(out), cost};
}

std::optional<Conversion> ConvertList(const FormulaExpr& expr, const Type& list) {
  const Type& element = list.elements[0];
  if (expr.kind == FormulaExpr::Kind::kList) {
    FormulaExpr out = expr;
    out.type = list;
    int cost = 0;
    for (FormulaExpr& operand : out.operands) {
      std::optional<Conversion> converted = Convert(operand, element);
      if (!converted) return std::nullopt;
      operand = std::move(converted->expr);
      cost += converted->cost;
    }
    return Conversion{std::move(out), cost};
  }
  // `dim` for int[1]: one value alone.
  if (element.is(TypeKind::kTensor) || element.is_optional()) return std::nullopt;
  std::optional<Conversion> single = Convert(expr, element);
  if (!single) return std::nullopt;
  FormulaExpr out;
  out.kind = FormulaExpr::Kind::kList;
  out.type = list;
  out.location = expr.location;
  out.operands.push_back(std::move(single->expr));
  return Conversion{std::move(out), single->cost + 4};
}

bool IsNumber(const Type& t) {
  return IsInt(t) || t.is(TypeKind::kFloat) || t.is(TypeKind::kBool) || t.is(TypeKind::kScalar);
}

}  // namespace

std::optional<Conversion> Convert(const FormulaExpr& expr, const Type& target) {
  const Type from = Plain(expr.type), to = Plain(target);
  if (expr.kind == FormulaExpr::Kind::kNone) {
    if (!to.is_optional() && !to.is(TypeKind::kGenerator)) return std::nullopt;
    FormulaExpr none = expr;
    none.type = target;
    return Conversion{std::move(none), 1};
  }
  if (expr.kind != FormulaExpr::Kind::kList && from == to) return Conversion{expr, 0};
  // Tensor and Tensor? are one C++ type.
  if (from.is_tensor() && to.is_tensor()) return Conversion{expr, to.is_optional() ? 0 : 1};
  // So are an object and an optional one.
  if (!from.object_name().empty() && from.object_name() == to.object_name())
    return Conversion{expr, to.is_optional() ? 0 : 1};
  if (from.is_tensor_list() && to.is_tensor_list() && expr.kind != FormulaExpr::Kind::kList)
    return Conversion{expr, 1};
  if (to.is_optional()) {
    std::optional<Conversion> inner = Convert(expr, to.elements[0]);
    if (!inner) return std::nullopt;
    if (to.is_tensor()) return inner;
    return Wrapped(inner->expr, target, inner->cost + 1);
  }
  if (to.is(TypeKind::kList)) {
    if (from.is_optional() && from.elements[0] == to) return Wrapped(expr, target, 6);
    return ConvertList(expr, target);
  }
  if (expr.kind == FormulaExpr::Kind::kList) return std::nullopt;
  if (from.is_optional() && !from.is_tensor()) {
    const FormulaExpr value = Wrapped(expr, from.elements[0], 6).expr;
    std::optional<Conversion> inner = Convert(value, target);
    if (inner) inner->cost += 6;
    return inner;
  }
  if (to.is(TypeKind::kFloat) && IsInt(from)) return Wrapped(expr, target, 2);
  if (to.is(TypeKind::kScalar) && IsNumber(from))
    return Wrapped(expr, target, from.is(TypeKind::kBool) ? 3 : 2);
  if (to.is(TypeKind::kTensor) && IsNumber(from)) return Wrapped(expr, target, 20);
  return std::nullopt;
}

std::optional<Conversion> TryCall(const Candidate& candidate, const std::vector<CallArgument>& arguments,
                                  std::string* why) {
  const schema::FunctionSchema& schema = *candidate.schema;
  const int count = static_cast<int>(schema.arguments.size());
  std::vector<const CallArgument*> given(count, nullptr);
  int position = 0;
  for (const CallArgument& argument : arguments) {
    int at = position;
    if (argument.keyword.empty()) {
      if (position >= schema.NumPositional()) {
        *why = StrCat("it takes at most ", schema.NumPositional(), " positional arguments");
        return std::nullopt;
      }
      ++position;
    } else {
      at = schema.FindArgument(argument.keyword);
      if (at < 0 || given[at]) {
        *why =
            StrCat(at < 0 ? "it has no argument `" : "it gets twice the argument `", argument.keyword, "`");
        return std::nullopt;
      }
    }
    given[at] = &argument;
  }
  Conversion call;
  call.expr.kind = candidate.function ? FormulaExpr::Kind::kCall : FormulaExpr::Kind::kHelper;
  call.expr.function = candidate.function;
  call.expr.helper = candidate.helper;
  for (int i = 0; i < count; ++i) {
    const schema::Argument& parameter = schema.arguments[i];
    if (!given[i]) {
      if (!parameter.default_value) {
        *why = StrCat("it lacks the argument `", parameter.name, "`");
        return std::nullopt;
      }
      FormulaExpr literal;
      literal.kind = FormulaExpr::Kind::kLiteral;
      literal.type = parameter.type;
      literal.text = CppDefault(parameter);
      call.expr.operands.push_back(std::move(literal));
      continue;
    }
    std::optional<Conversion> value = Convert(given[i]->expr, parameter.type);
    if (!value) {
      *why = StrCat("its argument `", parameter.name, "` is a ", TypeText(parameter.type), ", not a ",
                    TypeText(given[i]->expr.type));
      return std::nullopt;
    }
    call.cost += value->cost;
    call.expr.operands.push_back(std::move(value->expr));
  }
  if (schema.returns.size() == 1) {
    call.expr.type = Plain(schema.returns[0].type);
  } else {
    call.expr.type = Type(TypeKind::kTuple);
    for (const schema::Return& r : schema.returns) call.expr.type.elements.push_back(Plain(r.type));
  }
  return call;
}

}  // namespace mica::codegen
