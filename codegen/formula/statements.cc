// What gives names, walks lists and orders effects: `let`, `for`, slices, `check`
// and `do`; and the fit of a formula's value to what is expected of it.
#include "codegen/formula/check.h"
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

bool IsInt(const Type& t) { return t.is(TypeKind::kInt) || t.is(TypeKind::kSymInt); }

}  // namespace

FormulaExpr FormulaChecker::Fit(FormulaExpr value, const Type& expected, const Node& node) const {
  if (expected.is(TypeKind::kTuple)) {
    // A list of as many values, or one call that gives them all.
    if (value.kind == Kind::kList && value.operands.size() == expected.elements.size()) {
      for (size_t i = 0; i < value.operands.size(); ++i)
        value.operands[i] = Fit(std::move(value.operands[i]), expected.elements[i], node);
      value.kind = Kind::kTuple;
      value.type = expected;
      return value;
    }
    if (value.type.is(TypeKind::kTuple) && value.type.elements.size() == expected.elements.size())
      return value;
    throw Mistake(text_.At(node.begin),
                  StrCat("Formula gives a ", TypeText(value.type), "; expected ", expected.elements.size(),
                         " Tensors, one for each of the named inputs."));
  }
  // An absent Tensor is an undefined one.
  if (value.kind == Kind::kNone && expected.is_tensor()) {
    value.type = expected;
    return value;
  }
  std::optional<Conversion> converted = Convert(value, expected);
  if (!converted)
    throw Mistake(text_.At(node.begin),
                  StrCat("Formula gives a ", TypeText(value.type), "; expected a ", TypeText(expected), "."));
  return std::move(converted->expr);
}

FormulaExpr FormulaChecker::CheckRoot(const Node& node, const Type& expected) {
  switch (node.kind) {
    case NodeKind::kLet:
      return CheckLet(node, &expected);
    case NodeKind::kCheck:
      return CheckCheck(node, &expected);
    case NodeKind::kDo:
      return CheckDo(node, &expected);
    case NodeKind::kIf: {
      if (!scope_.is_body) break;
      FormulaExpr condition = CheckBool(node.children[0], "Condition");
      FormulaExpr a = CheckRoot(node.children[1], expected), b = CheckRoot(node.children[2], expected);
      return Make(Kind::kIf, expected, "if", node, {std::move(condition), std::move(a), std::move(b)});
    }
    default:
      break;
  }
  return Fit(Check(node), expected, node);
}

FormulaExpr FormulaChecker::CheckRest(const Node& node, const Type* expected) {
  return expected ? CheckRoot(node, *expected) : Check(node);
}

void FormulaChecker::Declare(const Node& node, const Type& type) {
  if (scope_.names.count(node.text) || locals_.count(node.text))
    throw Mistake(text_.At(node.begin),
                  StrCat("Name (", node.text, ") is given again; expected a new name."));
  if (CppValueType(type).empty())
    throw Mistake(text_.At(node.begin),
                  StrCat("Name (", node.text, ") stands for a ", TypeText(type), "; expected a value."));
  Type plain = type;
  plain.alias.reset();
  locals_[node.text] = plain;
}

FormulaExpr FormulaChecker::CheckLet(const Node& node, const Type* expected) {
  FormulaExpr value = Check(node.children[0]);
  if (value.kind == Kind::kList) value = Fit(value, value.type, node.children[0]);
  Declare(node, value.type);
  FormulaExpr rest = CheckRest(node.children[1], expected);
  locals_.erase(node.text);
  const Type type = rest.type;
  return Make(Kind::kLet, type, node.text, node, {std::move(value), std::move(rest)});
}

// The message's `{expression}` parts are checked at their places in the text.
FormulaExpr FormulaChecker::CheckCheck(const Node& node, const Type* expected) {
  if (!scope_.is_body)
    throw Mistake(text_.At(node.offset), "`check` has no place in a gradient; expected it in a `body`.");
  std::vector<FormulaExpr> operands = {CheckBool(node.children[0], "Condition of `check`")};
  const Node& message = node.children[1];
  std::vector<std::string> pieces(1);
  for (size_t i = 0; i < message.text.size(); ++i) {
    if (message.text[i] != '{') {
      pieces.back() += message.text[i];
      continue;
    }
    const size_t end = message.text.find('}', i), begin = message.offset + 1;
    if (end == std::string::npos)
      throw Mistake(text_.At(begin + i), "A value in the message has no end; expected `}`.");
    operands.push_back(Check(syntax::ParsePart(text_, begin + i + 1, begin + end)));
    pieces.emplace_back();
    i = end;
  }
  operands.push_back(CheckRest(node.children[2], expected));
  std::string macro = "MICA_CHECK";
  if (!node.text.empty()) macro += '_';
  for (const char c : node.text) macro += static_cast<char>(c - 'a' + 'A');
  const Type type = operands.back().type;
  FormulaExpr check = Make(Kind::kCheck, type, macro, node, std::move(operands));
  check.pieces = std::move(pieces);
  return check;
}

FormulaExpr FormulaChecker::CheckDo(const Node& node, const Type* expected) {
  if (!scope_.is_body)
    throw Mistake(text_.At(node.offset), "`do` has no place in a gradient; expected it in a `body`.");
  const Node& call = node.children[0];
  if (call.kind != NodeKind::kCall)
    throw Mistake(text_.At(call.begin),
                  "`do` calls nothing; expected an in-place operator such as `fill_(x, 0)`.");
  FormulaExpr effect = CheckOperatorCall(call, OpForm::kInplace);
  std::vector<FormulaExpr> operands = {std::move(effect)};
  if (node.children.size() > 2) operands.push_back(CheckBool(node.children[2], "Condition"));
  operands.push_back(CheckRest(node.children[1], expected));
  const Type type = operands.back().type;
  return Make(Kind::kDo, type, "do", node, std::move(operands));
}

FormulaExpr FormulaChecker::CheckRange(const Node& node) {
  const size_t count = node.children.size();
  if (count < 1 || count > 3)
    throw Mistake(text_.At(node.offset),
                  StrCat("Built-in (range) gets ", count, " arguments; expected 1 to 3."));
  const auto literal = [&](const char* text) {
    return Make(Kind::kLiteral, Type(TypeKind::kInt), text, node);
  };
  std::vector<FormulaExpr> bounds;
  if (count == 1) bounds.push_back(literal("0"));
  for (const Node& child : node.children) {
    bounds.push_back(Check(child));
    if (!IsInt(bounds.back().type))
      throw Mistake(text_.At(child.begin),
                    StrCat("Bound of `range` is a ", TypeText(bounds.back().type), "; expected an int."));
  }
  if (count < 3) bounds.push_back(literal("1"));
  return Make(Kind::kRange, Type::ListOf(Type(TypeKind::kInt)), "range", node, std::move(bounds));
}

namespace {
// Whether `e` reads of the local `name`, a Tensor, its metadata alone.
bool ReadsMetadataAlone(const FormulaExpr& e, const std::string& name) {
  if (e.kind == Kind::kLocal && e.text == name) return false;
  const FormulaExpr* first = e.operands.empty() ? nullptr : &e.operands[0];
  const bool is_metadata = e.kind == Kind::kBuiltin && first->kind == Kind::kLocal && first->text == name;
  for (size_t i = is_metadata ? 1 : 0; i < e.operands.size(); ++i)
    if (!ReadsMetadataAlone(e.operands[i], name)) return false;
  return true;
}
}  // namespace

FormulaExpr FormulaChecker::CheckFor(const Node& node) {
  const Node& source = node.children[1];
  const bool is_range = source.kind == NodeKind::kCall && source.text == "range";
  FormulaExpr list = is_range ? CheckRange(source) : Check(source);
  if (!list.type.is(TypeKind::kList))
    throw Mistake(text_.At(source.begin),
                  StrCat("`for` walks a ", TypeText(list.type), "; expected a list or `range(...)`."));
  Declare(node, list.type.elements[0]);
  FormulaExpr item = Check(node.children[0]);
  std::vector<FormulaExpr> operands;
  const Type type = Type::ListOf(item.type);
  if (CppValueType(type).empty())
    throw Mistake(text_.At(node.children[0].begin),
                  StrCat("Item is a ", TypeText(item.type), "; expected what a list can hold."));
  operands.push_back(std::move(item));
  operands.push_back(std::move(list));
  if (node.children.size() > 2) operands.push_back(CheckBool(node.children[2], "Condition"));
  locals_.erase(node.text);
  FormulaExpr& walked = operands[1];
  bool is_metadata = walked.kind == Kind::kName && walked.type.is_tensor_list();
  for (size_t i = 0; is_metadata && i < operands.size(); ++i)
    is_metadata = i == 1 || ReadsMetadataAlone(operands[i], node.text);
  if (is_metadata) {
    const Type elements = walked.type;
    walked = Make(Kind::kMetadata, elements, "elements", node, {std::move(walked)});
  }
  return Make(Kind::kFor, type, node.text, node, std::move(operands));
}

FormulaExpr FormulaChecker::CheckSlice(const Node& node) {
  FormulaExpr list = Check(node.children[0]);
  if (!list.type.is(TypeKind::kList))
    throw Mistake(text_.At(node.offset),
                  StrCat("A ", TypeText(list.type), " is sliced; expected a list (of a Tensor: `slice`)."));
  const Type type = list.type;
  std::vector<FormulaExpr> operands = {std::move(list)};
  for (int i = 1; i <= 2; ++i) {
    operands.push_back(Check(node.children[i]));
    const FormulaExpr& bound = operands.back();
    if (bound.kind != Kind::kNone && !IsInt(bound.type))
      throw Mistake(text_.At(node.children[i].begin),
                    StrCat("Bound of a slice is a ", TypeText(bound.type), "; expected an int."));
  }
  return Make(Kind::kSlice, type, "", node, std::move(operands));
}

FormulaExpr FormulaChecker::CheckBool(const Node& node, const char* what) {
  FormulaExpr value = Check(node);
  if (value.type.unwrapped().is(TypeKind::kBool)) return Fit(std::move(value), Type(TypeKind::kBool), node);
  throw Mistake(text_.At(node.begin), StrCat(what, " is a ", TypeText(value.type),
                                             "; expected a bool, such as `x is None` or `is_complex(x)`."));
}

}  // namespace mica::codegen
