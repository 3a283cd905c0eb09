// The type checker and instruction selector of `compute` expressions.
#include "codegen/expr/compile.h"

#include <cmath>
#include <limits>

#include "codegen/text.h"

namespace mica::codegen {
namespace {

using syntax::Node;
using syntax::NodeKind;

struct BinaryOperator {
  std::string_view sign;
  int lanes;  // opcode on lanes, -1 if none
  int masks;  // opcode on masks, -1 if none
};
constexpr BinaryOperator kBinary[] = {
    {"+", MICA_OP_ADD, -1},
    {"-", MICA_OP_SUB, -1},
    {"*", MICA_OP_MUL, -1},
    {"/", MICA_OP_DIV, -1},
    {"//", MICA_OP_FLOOR_DIV, -1},
    {"%", MICA_OP_REMAINDER, -1},
    {"**", MICA_OP_POW, -1},
    {"&", MICA_OP_AND, MICA_OP_MASK_AND},
    {"|", MICA_OP_OR, MICA_OP_MASK_OR},
    {"^", MICA_OP_XOR, MICA_OP_MASK_XOR},
    {"<<", MICA_OP_SHL, -1},
    {">>", MICA_OP_SHR, -1},
    {"==", MICA_OP_EQ, -1},
    {"!=", MICA_OP_NE, MICA_OP_MASK_XOR},
    {"<", MICA_OP_LT, -1},
    {"<=", MICA_OP_LE, -1},
    {">", MICA_OP_GT, -1},
    {">=", MICA_OP_GE, -1},
    {"and", -1, MICA_OP_MASK_AND},
    {"or", -1, MICA_OP_MASK_OR},
};

struct NamedConstant {
  std::string_view name;
  double value;
};
constexpr NamedConstant kConstants[] = {
    {"inf", std::numeric_limits<double>::infinity()},
    {"nan", std::numeric_limits<double>::quiet_NaN()},
    {"pi", 3.14159265358979323846},
    {"e", 2.71828182845904523536},
};

const char* TypeName(LaneType type) { return type == LaneType::kMask ? "mask" : "number"; }
std::string KindsName(ComputeKind kind) { return StrCat(Name(kind), " dtypes"); }

std::vector<std::string> NamesIn(const ComputeScope& scope) {
  std::vector<std::string> names;
  for (const auto& [name, binding] : scope.names) names.push_back(name);
  return names;
}

}  // namespace

void ExpressionCompiler::ExpectType(const Node& node, const Value& value, LaneType type,
                                    const std::string& what) {
  if (value.type == type) return;
  throw Mistake(At(node.begin),
                StrCat("Operand of ", what, " is a ", TypeName(value.type), "; expected a ", TypeName(type),
                       type == LaneType::kMask ? ", such as a comparison or `bool(...)`."
                                               : "; write `float(...)` or `where(...)` around the mask."));
}

Value ExpressionCompiler::Compile(const Node& node) {
  switch (node.kind) {
    case NodeKind::kInt:
      return ProgramBuilder::Constant(node.f, node.i, true);
    case NodeKind::kFloat:
      if (builder_->kind() <= ComputeKind::kInt && node.f != std::floor(node.f))
        throw KindMistake(At(node.begin), StrCat("Number (", node.text, ") has a fraction, which ",
                                                 KindsName(builder_->kind()),
                                                 " do not hold; expected an integer, or `dtype: float`."));
      return ProgramBuilder::Constant(node.f, static_cast<int64_t>(node.f), false);
    case NodeKind::kBool:
      return ProgramBuilder::Constant(static_cast<double>(node.i), node.i, true);
    case NodeKind::kName:
      return CompileName(node);
    case NodeKind::kUnary:
      return CompileUnary(node);
    case NodeKind::kBinary:
      return CompileBinary(node);
    case NodeKind::kCall:
      return CompileCall(node);
    case NodeKind::kLet:
      return CompileLet(node);
    case NodeKind::kIf:
      throw Mistake(At(node.offset),
                    "`a if c else b` has no place in an element's expression; expected `where(c, a, b)`.");
    default:
      throw Mistake(At(node.begin),
                    "A list, string, index or None has no place in an element's expression; expected numbers "
                    "and masks.");
  }
}

void ExpressionCompiler::CompileInto(const Node& node, int store_opcode, int aux) {
  const Value value = Compile(node);
  if (!builder_->Store(store_opcode, aux, value))
    throw Mistake(At(node.begin), StrCat("Expression needs more than ", kMaxRegisters,
                                         " registers; expected a shorter one."));
}

Value ExpressionCompiler::CompileName(const Node& node) {
  const auto let = lets_.find(node.text);
  if (let != lets_.end()) return let->second;
  const auto it = scope_.names.find(node.text);
  if (it == scope_.names.end()) {
    for (const NamedConstant& c : kConstants) {
      if (c.name != node.text) continue;
      const int64_t saturated = !std::isinf(c.value) ? static_cast<int64_t>(std::isnan(c.value) ? 0 : c.value)
                                                     : std::numeric_limits<int64_t>::max();
      if (builder_->kind() <= ComputeKind::kInt && !std::isinf(c.value))
        throw KindMistake(At(node.begin),
                          StrCat("Constant (", node.text, ") has no value in ", KindsName(builder_->kind()),
                                 "; expected `dtype: float` or a kind map."));
      return ProgramBuilder::Constant(c.value, saturated, false);
    }
    throw Mistake(At(node.begin),
                  StrCat("Name (", node.text, ") is unknown", DidYouMean(node.text, NamesIn(scope_)),
                         "; expected one of ", JoinNames(NamesIn(scope_)), "."));
  }
  const Binding& binding = it->second;
  Value value;
  switch (binding.kind) {
    case Binding::Kind::kTensor:
      value = builder_->Load(binding.number);
      break;
    case Binding::Kind::kNumber:
      value = builder_->Scalar(binding.number);
      break;
    case Binding::Kind::kFlag:
      return ToMask(node, builder_->Scalar(binding.number));
    case Binding::Kind::kSource:
      value = builder_->Source(binding.opcode, binding.number);
      break;
    case Binding::Kind::kList:
      value = builder_->List(binding.opcode, binding.number);
      break;
    case Binding::Kind::kRefused:
      throw Mistake(At(node.begin), binding.refusal);
  }
  if (value.reg < 0)
    throw Mistake(At(node.begin), StrCat("Expression needs more than ", kMaxRegisters,
                                         " registers; expected a shorter one."));
  return value;
}

Value ExpressionCompiler::Apply(const Node& node, int opcode, std::vector<Value> operands) {
  bool all_constant = true;
  for (const Value& v : operands) all_constant = all_constant && v.is_constant();
  if (!HasMeaning(opcode, builder_->kind()) && !(all_constant && !operands.empty()))
    throw KindMistake(At(node.offset),
                      StrCat("Operation (", node.text, ") has no meaning for ", KindsName(builder_->kind()),
                             "; expected `supports:` without them, a kind map, or another `dtype:`."));
  Value result;
  if (!builder_->Emit(opcode, operands.data(), static_cast<int>(operands.size()), &result))
    throw Mistake(At(node.begin), StrCat("Expression needs more than ", kMaxRegisters,
                                         " registers; expected a shorter one."));
  if (result.is_constant() && builder_->kind() <= ComputeKind::kInt && std::isfinite(result.constant->f) &&
      result.constant->f != std::floor(result.constant->f))
    throw KindMistake(At(node.begin), StrCat("Constant has a fraction, which ", KindsName(builder_->kind()),
                                             " do not hold; expected an integer, or `dtype: float`."));
  return result;
}

Value ExpressionCompiler::ToMask(const Node& node, const Value& value) {
  return value.type == LaneType::kMask ? value : Apply(node, MICA_OP_TO_MASK, {value});
}

Value ExpressionCompiler::CompileUnary(const Node& node) {
  const Value a = Compile(node.children[0]);
  const std::string what = StrCat("`", node.text, "`");
  if (node.text == "not") {
    ExpectType(node.children[0], a, LaneType::kMask, what);
    return Apply(node, MICA_OP_MASK_NOT, {a});
  }
  if (node.text == "~") {
    if (a.type == LaneType::kMask) return Apply(node, MICA_OP_MASK_NOT, {a});
    if (builder_->kind() != ComputeKind::kBool) return Apply(node, MICA_OP_NOT, {a});
    return Apply(node, MICA_OP_MASK_NOT, {ToMask(node, a)});
  }
  ExpectType(node.children[0], a, LaneType::kLane, what);
  return node.text == "+" ? a : Apply(node, MICA_OP_NEG, {a});
}

Value ExpressionCompiler::CompileBinary(const Node& node) {
  const BinaryOperator* op = nullptr;
  for (const BinaryOperator& candidate : kBinary)
    if (candidate.sign == node.text) op = &candidate;
  if (!op)
    throw Mistake(
        At(node.offset),
        StrCat("Operator (", node.text,
               ") has no place in an element's expression; expected arithmetic, comparisons, `and`, `or`."));
  const Value a = Compile(node.children[0]);
  const Value b = Compile(node.children[1]);
  const std::string what = StrCat("`", node.text, "`");
  // What both have, the left operand decides.
  const bool masks = op->lanes < 0 || (op->masks >= 0 && a.type == LaneType::kMask) ||
                     (node.text == "==" && a.type == LaneType::kMask);
  ExpectType(node.children[0], a, masks ? LaneType::kMask : LaneType::kLane, what);
  ExpectType(node.children[1], b, masks ? LaneType::kMask : LaneType::kLane, what);
  if (!masks) return Apply(node, op->lanes, {a, b});
  if (node.text == "==") return Apply(node, MICA_OP_MASK_NOT, {Apply(node, MICA_OP_MASK_XOR, {a, b})});
  return Apply(node, op->masks, {a, b});
}

Value ExpressionCompiler::CompileCast(const Node& node) {
  if (node.children.size() != 1)
    throw Mistake(At(node.begin),
                  StrCat("Cast (", node.text, ") gets ", node.children.size(), " arguments; expected 1."));
  const Value a = Compile(node.children[0]);
  if (node.text == "bool") return ToMask(node, a);
  if (a.type == LaneType::kMask) return Apply(node, MICA_OP_TO_LANE, {a});
  const bool is_integer = builder_->kind() <= ComputeKind::kInt;
  if (node.text == "int") return is_integer ? a : Apply(node, MICA_OP_TRUNC, {a});
  if (is_integer && !a.is_constant())
    throw KindMistake(At(node.begin), StrCat("Cast (float) has no meaning for ", KindsName(builder_->kind()),
                                             ", whose lanes hold integers; expected `dtype: float`."));
  return a;
}

// given(name): whether an optional number is there; without it the name reads 0.
Value ExpressionCompiler::CompileGiven(const Node& node) {
  const auto it = node.children.size() == 1 ? scope_.names.find(node.children[0].text) : scope_.names.end();
  if (it == scope_.names.end() || !it->second.optional)
    throw Mistake(At(node.begin),
                  "`given` is asked of no optional number; expected an argument such as `int? n`.");
  return builder_->Given(it->second.number);
}

Value ExpressionCompiler::CompileCall(const Node& node) {
  if (node.text == "bool" || node.text == "float" || node.text == "int") return CompileCast(node);
  if (node.text == "given") return CompileGiven(node);
  const int opcode = OpcodeOfFunction(node.text);
  if (opcode < 0)
    throw Mistake(At(node.offset),
                  StrCat("Function (", node.text, ") is unknown", DidYouMean(node.text, FunctionNames()),
                         "; expected a function of the compute language such as `exp`, `where` or `isnan`."));
  if (IsRandom(opcode) && !scope_.allows_random)
    throw Mistake(At(node.offset), StrCat("Function (", node.text,
                                          ") draws random numbers; expected it in class `random` only."));
  const int arity = kOpcodeInfo[opcode].arity;
  if (static_cast<int>(node.children.size()) != arity)
    throw Mistake(At(node.offset), StrCat("Function (", node.text, ") gets ", node.children.size(),
                                          " arguments; expected ", arity, "."));
  for (const std::string& keyword : node.keywords)
    if (!keyword.empty())
      throw Mistake(At(node.offset), StrCat("Function (", node.text, ") gets a keyword argument (", keyword,
                                            "); expected positional ones."));
  if (arity == 0) return builder_->Draw(opcode);
  std::vector<Value> operands;
  for (const Node& child : node.children) operands.push_back(Compile(child));
  const std::string what = StrCat("`", node.text, "`");
  // where(c, mask, mask) makes a mask.
  if (opcode == MICA_OP_SELECT && operands[1].type == LaneType::kMask &&
      operands[2].type == LaneType::kMask) {
    ExpectType(node.children[0], operands[0], LaneType::kMask, what);
    return Apply(node, MICA_OP_MASK_SELECT, std::move(operands));
  }
  for (int i = 0; i < arity; ++i)
    ExpectType(node.children[i], operands[i], TakesMask(opcode, i) ? LaneType::kMask : LaneType::kLane, what);
  return Apply(node, opcode, std::move(operands));
}

Value ExpressionCompiler::CompileLet(const Node& node) {
  if (scope_.names.count(node.text) || lets_.count(node.text))
    throw Mistake(At(node.begin),
                  StrCat("`let` gives the name (", node.text, ") again; expected a new name."));
  lets_[node.text] = Compile(node.children[0]);
  const Value value = Compile(node.children[1]);
  lets_.erase(node.text);
  return value;
}

}  // namespace mica::codegen
