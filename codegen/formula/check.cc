// Names, infix operators and the forms of the language; calls are in calls.cc.
#include "codegen/formula/check.h"

#include <algorithm>

#include "codegen/names.h"
#include "codegen/syntax/parser.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using schema::Type;
using schema::TypeKind;
using syntax::Node;
using syntax::NodeKind;
using Kind = FormulaExpr::Kind;

struct Infix {
  std::string_view sign;
  std::string_view op;
};
constexpr Infix kInfix[] = {
    {"+", "add"},       {"-", "sub"},  {"*", "mul"},         {"/", "div"},        {"//", "floor_divide"},
    {"%", "remainder"}, {"**", "pow"}, {"&", "bitwise_and"}, {"|", "bitwise_or"}, {"^", "bitwise_xor"},
    {"==", "eq"},       {"!=", "ne"},  {"<", "lt"},          {"<=", "le"},        {">", "gt"},
    {">=", "ge"}};

bool IsCompare(std::string_view s) {
  return s == "==" || s == "!=" || s == "<" || s == "<=" || s == ">" || s == ">=";
}
bool IsInt(const Type& t) { return t.is(TypeKind::kInt) || t.is(TypeKind::kSymInt); }
bool IsNumber(const Type& t) {
  return IsInt(t) || t.is(TypeKind::kFloat) || t.is(TypeKind::kScalar) || t.is(TypeKind::kBool);
}

// The type of a number made of two numbers.
Type Widest(const Type& a, const Type& b) {
  if (a.is(TypeKind::kScalar) || b.is(TypeKind::kScalar)) return Type(TypeKind::kScalar);
  if (a.is(TypeKind::kFloat) || b.is(TypeKind::kFloat)) return Type(TypeKind::kFloat);
  return Type(TypeKind::kInt);
}

FormulaExpr Must(std::optional<Conversion> conversion) { return std::move(conversion->expr); }

}  // namespace

FormulaExpr FormulaChecker::Make(Kind kind, Type type, std::string text, const Node& node,
                                 std::vector<FormulaExpr> operands) const {
  FormulaExpr expr;
  expr.kind = kind;
  expr.type = std::move(type);
  expr.text = std::move(text);
  expr.operands = std::move(operands);
  expr.location = text_.At(node.begin);
  return expr;
}

FormulaExpr FormulaChecker::Check(const Node& node) {
  switch (node.kind) {
    case NodeKind::kInt:
      return Make(Kind::kLiteral, Type(TypeKind::kInt), std::to_string(node.i), node);
    case NodeKind::kFloat:
      return Make(Kind::kLiteral, Type(TypeKind::kFloat), CppDouble(node.f), node);
    case NodeKind::kBool:
      return Make(Kind::kLiteral, Type(TypeKind::kBool), node.i ? "true" : "false", node);
    case NodeKind::kString:
      return Make(Kind::kLiteral, Type(TypeKind::kStr), CppString(node.text), node);
    case NodeKind::kNone:
      return Make(Kind::kNone, Type(TypeKind::kNone), "", node);
    case NodeKind::kName:
      return CheckName(node);
    case NodeKind::kUnary:
      return CheckUnary(node);
    case NodeKind::kBinary:
      return CheckBinary(node);
    case NodeKind::kCall:
      return CheckCall(node);
    case NodeKind::kSubscript:
      return CheckSubscript(node);
    case NodeKind::kSlice:
      return CheckSlice(node);
    case NodeKind::kList:
      return CheckList(node);
    case NodeKind::kFor:
      return CheckFor(node);
    case NodeKind::kIf:
      return CheckIf(node);
    case NodeKind::kLet:
      return CheckLet(node, nullptr);
    case NodeKind::kCheck:
      return CheckCheck(node, nullptr);
    case NodeKind::kDo:
      return CheckDo(node, nullptr);
  }
  __builtin_unreachable();
}

FormulaExpr FormulaChecker::CheckName(const Node& node) {
  const auto local = locals_.find(node.text);
  if (local != locals_.end()) return Make(Kind::kLocal, local->second, node.text, node);
  const auto it = scope_.names.find(node.text);
  if (it != scope_.names.end()) return Make(Kind::kName, it->second, node.text, node);
  if (node.text == "inf" || node.text == "nan" || node.text == "pi")
    return Make(Kind::kLiteral, Type(TypeKind::kFloat),
                node.text == "inf"   ? "INFINITY"
                : node.text == "nan" ? "NAN"
                                     : "3.141592653589793",
                node);
  const std::string format = CppMemoryFormat(node.text);
  if (!format.empty()) return Make(Kind::kLiteral, Type(TypeKind::kMemoryFormat), format, node);
  const std::string dtype = CppDType(node.text);
  if (!dtype.empty()) return Make(Kind::kLiteral, Type(TypeKind::kScalarType), dtype, node);
  std::vector<std::string> names;
  for (const auto& [name, type] : scope_.names) names.push_back(name);
  for (const auto& [name, type] : locals_) names.push_back(name);
  throw Mistake(text_.At(node.begin),
                StrCat("Name (", node.text, ") is unknown", DidYouMean(node.text, names),
                       "; expected one of ", JoinNames(names), "."));
}

FormulaExpr FormulaChecker::CheckUnary(const Node& node) {
  FormulaExpr a = Check(node.children[0]);
  if (node.text == "not") {
    if (!a.type.unwrapped().is(TypeKind::kBool))
      throw Mistake(text_.At(node.offset),
                    StrCat("Operand of `not` is a ", TypeText(a.type), "; expected a bool."));
    a = Must(Convert(a, Type(TypeKind::kBool)));
    return Make(Kind::kLogical, Type(TypeKind::kBool), "not", node, {std::move(a)});
  }
  if (node.text == "+") return a;
  if (a.type.is_tensor()) {
    std::string why;
    std::optional<Conversion> call =
        Resolve(CandidatesOf(node.text == "-" ? "neg" : "bitwise_not"), {{a, ""}}, &why);
    if (!call)
      throw Mistake(text_.At(node.offset), StrCat("Operator `", node.text, "` needs the operator ",
                                                  node.text == "-" ? "neg" : "bitwise_not",
                                                  ", which native_functions.yaml lacks; expected it there."));
    return std::move(call->expr);
  }
  if (node.text != "-" || !IsNumber(a.type))
    throw Mistake(text_.At(node.offset), StrCat("Operand of `", node.text, "` is a ", TypeText(a.type),
                                                "; expected a number or a Tensor."));
  const Type type = a.type.is(TypeKind::kBool) ? Type(TypeKind::kInt) : a.type;
  return Make(Kind::kArithmetic, type, "neg", node, {std::move(a)});
}

FormulaExpr FormulaChecker::CheckBinary(const Node& node) {
  const std::string& sign = node.text;
  FormulaExpr a = Check(node.children[0]);
  FormulaExpr b = Check(node.children[1]);
  const auto fail = [&](const char* expected) {
    return Mistake(text_.At(node.offset), StrCat("Operands of `", sign, "` are a ", TypeText(a.type),
                                                 " and a ", TypeText(b.type), "; expected ", expected, "."));
  };
  if (sign == "is" || sign == "is not") {
    if (b.kind != Kind::kNone) throw fail("`x is None`");
    if (!a.type.is_optional()) throw fail("an optional at the left of `is None`");
    return Make(Kind::kIsNone, Type(TypeKind::kBool), sign, node, {std::move(a)});
  }
  if (sign == "and" || sign == "or") {
    const Type flag(TypeKind::kBool);
    if (!a.type.unwrapped().is(TypeKind::kBool) || !b.type.unwrapped().is(TypeKind::kBool))
      throw fail("two bools");
    a = Must(Convert(a, flag));
    b = Must(Convert(b, flag));
    return Make(Kind::kLogical, Type(TypeKind::kBool), sign, node, {std::move(a), std::move(b)});
  }
  if (a.type.is_tensor() || b.type.is_tensor()) return CheckTensorInfix(node, std::move(a), std::move(b));
  if (a.type.is(TypeKind::kList) && b.type.is(TypeKind::kList))
    return CheckListInfix(node, std::move(a), std::move(b));
  if (IsCompare(sign)) {
    const bool equality = sign == "==" || sign == "!=";
    const bool optional_numbers = IsNumber(a.type.unwrapped()) && IsNumber(b.type.unwrapped());
    // To be less or greater, an optional must have been found given.
    if (optional_numbers && !equality) {
      a = Must(Convert(a, a.type.unwrapped()));
      b = Must(Convert(b, b.type.unwrapped()));
    }
    const bool numbers = IsNumber(a.type) && IsNumber(b.type);
    if (!numbers && !(equality && (optional_numbers || a.type.unwrapped().kind == b.type.unwrapped().kind)))
      throw fail("two numbers, or `==` of two values of one type");
    // A Scalar compares with a Scalar; under a `?` it must have been found given.
    const Type scalar(TypeKind::kScalar);
    if (optional_numbers &&
        (a.type.unwrapped().is(TypeKind::kScalar) || b.type.unwrapped().is(TypeKind::kScalar))) {
      a = Must(Convert(a, scalar));
      b = Must(Convert(b, scalar));
    }
    return Make(Kind::kCompare, Type(TypeKind::kBool), sign, node, {std::move(a), std::move(b)});
  }
  if (!IsNumber(a.type.unwrapped()) || !IsNumber(b.type.unwrapped())) throw fail("numbers or Tensors");
  a = Must(Convert(a, a.type.unwrapped()));
  b = Must(Convert(b, b.type.unwrapped()));
  if (sign == "&" || sign == "|" || sign == "^" || sign == "<<" || sign == ">>")
    throw fail("Tensors, since bit operations are for them");
  Type type = Widest(a.type, b.type);
  if ((sign == "/" || sign == "**") && type.is(TypeKind::kInt)) type = Type(TypeKind::kFloat);
  a = Must(Convert(a, type.is(TypeKind::kInt) ? a.type : type));
  b = Must(Convert(b, type.is(TypeKind::kInt) ? b.type : type));
  return Make(Kind::kArithmetic, type, sign, node, {std::move(a), std::move(b)});
}

FormulaExpr FormulaChecker::CheckTensorInfix(const Node& node, FormulaExpr a, FormulaExpr b) {
  std::string_view op;
  for (const Infix& infix : kInfix)
    if (infix.sign == node.text) op = infix.op;
  std::string why = "there is no such operator";
  std::optional<Conversion> call;
  const bool number_first = !a.type.is_tensor() && IsNumber(a.type);
  if (number_first && (node.text == "+" || node.text == "*")) {
    std::swap(a, b);
  } else if (number_first && node.text == "-") {
    call = Resolve(CandidatesOf("rsub"), {{b, ""}, {a, ""}}, &why);
  } else if (number_first && node.text == "/") {
    std::optional<Conversion> inverse = Resolve(CandidatesOf("reciprocal"), {{b, ""}}, &why);
    if (inverse) call = Resolve(CandidatesOf("mul"), {{inverse->expr, ""}, {a, ""}}, &why);
  }
  if (!call && !op.empty()) call = Resolve(CandidatesOf(op), {{a, ""}, {b, ""}}, &why);
  if (!call)
    throw Mistake(text_.At(node.offset),
                  StrCat("Operator `", node.text, "` does not fit a ", TypeText(a.type), " and a ",
                         TypeText(b.type), " (", why, "); expected operands that an overload of ",
                         op.empty() ? "an operator" : op, " takes."));
  call->expr.location = text_.At(node.offset);
  return std::move(call->expr);
}

// Lists of numbers are joined and compared, lists of Tensors joined.
FormulaExpr FormulaChecker::CheckListInfix(const Node& node, FormulaExpr a, FormulaExpr b) const {
  const bool is_join = node.text == "+";
  const auto fail = [&] {
    return Mistake(text_.At(node.offset),
                   StrCat("Operands of `", node.text, "` are a ", TypeText(a.type), " and a ",
                          TypeText(b.type), "; expected lists of one type, for `+`, `==` or `!=`."));
  };
  const bool a_decides = a.kind != Kind::kList || (b.kind == Kind::kList && !a.operands.empty());
  const Type type = a_decides ? a.type : b.type;
  std::optional<Conversion> left = Convert(a, type), right = Convert(b, type);
  const bool comparable = type.elements[0].is(TypeKind::kInt) || type.elements[0].is(TypeKind::kSymInt);
  if (!left || !right || !(is_join || (comparable && (node.text == "==" || node.text == "!=")))) throw fail();
  return Make(is_join ? Kind::kConcat : Kind::kCompare, is_join ? type : Type(TypeKind::kBool), node.text,
              node, {std::move(left->expr), std::move(right->expr)});
}

FormulaExpr FormulaChecker::CheckIf(const Node& node) {
  FormulaExpr condition = CheckBool(node.children[0], "Condition");
  FormulaExpr a = Check(node.children[1]);
  FormulaExpr b = Check(node.children[2]);
  // `x if c else None` is an optional.
  for (FormulaExpr* none : {&a, &b}) {
    const FormulaExpr& other = none == &a ? b : a;
    if (none->kind == Kind::kNone && other.kind != Kind::kNone && !other.type.is_optional())
      none->type = Type::OptionalOf(other.type);
  }
  std::optional<Conversion> b_as_a = Convert(b, a.type), a_as_b = Convert(a, b.type);
  const bool to_a = b_as_a && (!a_as_b || b_as_a->cost <= a_as_b->cost);
  if (!b_as_a && !a_as_b)
    throw Mistake(text_.At(node.offset), StrCat("Branches of `if` are a ", TypeText(a.type), " and a ",
                                                TypeText(b.type), "; expected one type."));
  const Type type = to_a ? a.type : b.type;
  if (to_a)
    b = std::move(b_as_a->expr);
  else
    a = std::move(a_as_b->expr);
  return Make(Kind::kIf, type, "if", node, {std::move(condition), std::move(a), std::move(b)});
}

FormulaExpr FormulaChecker::CheckSubscript(const Node& node) {
  FormulaExpr base = Check(node.children[0]);
  if (base.type.is(TypeKind::kTuple)) {
    const Node& index = node.children[1];
    const int64_t count = static_cast<int64_t>(base.type.elements.size());
    if (index.kind != NodeKind::kInt || index.i >= count)
      throw Mistake(text_.At(index.begin), StrCat("Index of a tuple of ", count,
                                                  " is no number below it; expected 0 to ", count - 1, "."));
    const Type type = base.type.elements[index.i];
    FormulaExpr element = Make(Kind::kElement, type, "", node, {std::move(base)});
    element.index = static_cast<int>(index.i);
    return element;
  }
  FormulaExpr index = Check(node.children[1]);
  if (!base.type.is(TypeKind::kList) || !IsInt(index.type))
    throw Mistake(text_.At(node.offset),
                  StrCat("A ", TypeText(base.type), " is indexed by a ", TypeText(index.type),
                         "; expected a list or a tuple, and an int."));
  const Type type = base.type.elements[0];
  return Make(Kind::kElement, type, "list", node, {std::move(base), std::move(index)});
}

FormulaExpr FormulaChecker::CheckList(const Node& node) {
  std::vector<FormulaExpr> items;
  for (const Node& child : node.children) {
    FormulaExpr item = Check(child);
    // An optional number in a list must have been found given.
    if (IsNumber(item.type.unwrapped())) item = Must(Convert(item, item.type.unwrapped()));
    items.push_back(std::move(item));
  }
  const Type element = items.empty() ? Type(TypeKind::kInt) : items[0].type;
  return Make(Kind::kList, Type::ListOf(element), "", node, std::move(items));
}

namespace {
// Which names a tree reads, as values and for their metadata.
void CollectNames(const FormulaExpr& expr, FormulaTree* tree) {
  if (expr.kind == Kind::kName) tree->names.insert(expr.text);
  const bool is_metadata = expr.kind == Kind::kMetadata;
  if (is_metadata) tree->metadata[expr.operands[0].text].insert(expr.text);
  for (size_t i = is_metadata ? 1 : 0; i < expr.operands.size(); ++i) CollectNames(expr.operands[i], tree);
}
FormulaTree CheckTree(const Node& node, const PlacedText& text, const Model& model,
                      const FormulaScope& scope) {
  FormulaTree tree;
  tree.source = text.text();
  tree.root = FormulaChecker(text, model, scope).CheckRoot(node, scope.expected);
  CollectNames(tree.root, &tree);
  return tree;
}
}  // namespace

FormulaTree ParseFormula(const PlacedText& text, const Model& model, const FormulaScope& scope) {
  return CheckTree(syntax::Parse(text), text, model, scope);
}

FormulaTree ParseCheckFormula(const PlacedText& text, const Model& model, FormulaScope scope) {
  scope.is_body = true;
  scope.expected = Type(TypeKind::kInt);
  return CheckTree(syntax::ParseCheck(text), text, model, scope);
}

}  // namespace mica::codegen
