// A checked formula as one C++ expression.
#include "mica/codegen/formula/formula.h"
#include "mica/codegen/names.h"
#include "mica/codegen/text.h"

namespace mica::codegen {
namespace {

using schema::Type;
using schema::TypeKind;
using Kind = FormulaExpr::Kind;

class Emitter {
 public:
  explicit Emitter(const EmitOptions& options) : options_(options) {}

  std::string Emit(const FormulaExpr& e) const {
    switch (e.kind) {
      case Kind::kName:
        return options_.name(e);
      case Kind::kLiteral:
        return e.text;
      case Kind::kNone:
        return e.type.is_tensor() ? "Tensor()"
               : e.type.is(TypeKind::kGenerator) || e.type.unwrapped().is(TypeKind::kGenerator)
                   ? "nullptr"
                   : "std::nullopt";
      case Kind::kCall:
        return StrCat("::", e.function->entry->ns, "::ops::op::", e.function->struct_name, "::call(",
                      All(e.operands), ")");
      case Kind::kHelper:
        return StrCat("::mica::autograd::", e.helper->schema.name, "(", All(e.operands), ")");
      case Kind::kBuiltin:
        return Builtin(e);
      case Kind::kMetadata:
        return options_.metadata ? options_.metadata(e) : Builtin(e);
      case Kind::kConvert:
        return Convert(e);
      case Kind::kArithmetic:
        return Arithmetic(e);
      case Kind::kCompare:
        return Compare(e);
      case Kind::kLogical:
        return e.text == "not" ? StrCat("!", Emit(e.operands[0]))
                               : StrCat("(", Emit(e.operands[0]), e.text == "and" ? " && " : " || ",
                                        Emit(e.operands[1]), ")");
      case Kind::kIsNone:
        return IsNone(e);
      case Kind::kIf:
        return If(e);
      case Kind::kList:
        return List(e);
      case Kind::kTuple:
        return StrCat(CppValueType(e.type), "(", All(e.operands), ")");
      case Kind::kElement:
        return e.text == "list" ? StrCat(Emit(e.operands[0]), "[", Emit(e.operands[1]), "]")
                                : StrCat("std::get<", e.index, ">(", Emit(e.operands[0]), ")");
    }
    __builtin_unreachable();
  }

 private:
  std::string All(const std::vector<FormulaExpr>& operands) const {
    std::vector<std::string> texts;
    for (const FormulaExpr& operand : operands) texts.push_back(Emit(operand));
    return Join(texts, ", ");
  }

  std::string Builtin(const FormulaExpr& e) const {
    const std::string x = Emit(e.operands[0]);
    if (e.text == "is_complex") return StrCat("IsComplex((", x, ").dtype())");
    if (e.text == "is_floating_point") return StrCat("IsFloating((", x, ").dtype())");
    if (e.text == "size") return StrCat("(", x, ").size(", Emit(e.operands[1]), ")");
    if (e.text == "len") return StrCat("static_cast<int64_t>((", x, ").size())");
    return StrCat("(", x, ").", e.text, "()");
  }

  std::string Convert(const FormulaExpr& e) const {
    const FormulaExpr& from = e.operands[0];
    const std::string x = Emit(from);
    if (from.type.is_optional() && !e.type.is_optional()) return StrCat("(", x, ").value()");
    if (e.type.is_optional()) {
      std::string type = CppParameterType(e.type);
      if (type.starts_with("const ")) type = type.substr(6, type.size() - 7);  // const std::optional<Scalar>&
      return StrCat(type, "(", x, ")");
    }
    if (e.type.is(TypeKind::kFloat)) return StrCat("static_cast<double>(", x, ")");
    if (e.type.is(TypeKind::kScalar)) return StrCat("Scalar(", x, ")");
    return StrCat("WrappedNumber(Scalar(", x, "))");  // a number where a Tensor is wanted
  }

  std::string Arithmetic(const FormulaExpr& e) const {
    const std::string a = Emit(e.operands[0]);
    const bool scalar = e.type.is(TypeKind::kScalar);
    if (e.text == "neg") return scalar ? StrCat("scalar_math::Neg(", a, ")") : StrCat("(-", a, ")");
    const std::string b = Emit(e.operands[1]);
    struct Sign {
      std::string_view sign, function;
    };
    static constexpr Sign kSigns[] = {{"+", "Add"},       {"-", "Sub"},       {"*", "Mul"}, {"/", "Div"},
                                      {"//", "FloorDiv"}, {"%", "Remainder"}, {"**", "Pow"}};
    std::string_view function;
    for (const Sign& s : kSigns)
      if (s.sign == e.text) function = s.function;
    if (scalar || e.text == "//" || e.text == "%" || e.text == "**")
      return StrCat("scalar_math::", function, "(", a, ", ", b, ")");
    return StrCat("(", a, " ", e.text, " ", b, ")");
  }

  std::string Compare(const FormulaExpr& e) const {
    const std::string a = Emit(e.operands[0]), b = Emit(e.operands[1]);
    const bool scalar = e.operands[0].type.unwrapped().is(TypeKind::kScalar) ||
                        e.operands[1].type.unwrapped().is(TypeKind::kScalar);
    if (!scalar) return StrCat("(", a, " ", e.text, " ", b, ")");
    if (e.text == "==") return StrCat("scalar_math::Equal(", a, ", ", b, ")");
    if (e.text == "!=") return StrCat("!scalar_math::Equal(", a, ", ", b, ")");
    return StrCat("(scalar_math::Compare(", a, ", ", b, ") ", e.text, " 0)");
  }

  std::string IsNone(const FormulaExpr& e) const {
    const std::string x = Emit(e.operands[0]);
    const bool none = e.text == "is";
    if (e.operands[0].type.is_tensor()) return StrCat(none ? "!" : "", "(", x, ").defined()");
    return StrCat(none ? "!" : "", "(", x, ").has_value()");
  }

  // Both branches as owned values of one type.
  std::string If(const FormulaExpr& e) const {
    const std::string type = CppValueType(e.type);
    return StrCat("(", Emit(e.operands[0]), " ? ", type, "(", Emit(e.operands[1]), ") : ", type, "(",
                  Emit(e.operands[2]), "))");
  }

  std::string List(const FormulaExpr& e) const {
    const Type& list = e.type.unwrapped();
    const std::string span = CppParameterType(list);
    if (e.operands.empty()) return StrCat(span, "()");
    std::vector<std::string> items;
    for (const FormulaExpr& operand : e.operands) {
      const std::string x = Emit(operand);
      items.push_back(list.elements[0].is(TypeKind::kBool) ? StrCat("static_cast<uint8_t>(", x, ")")
                      : list.elements[0].is_tensor()       ? StrCat("Tensor(", x, ")")
                                                           : x);
    }
    return StrCat(span, "({", Join(items, ", "), "})");
  }

  const EmitOptions& options_;
};

}  // namespace

std::string EmitFormula(const FormulaExpr& expr, const EmitOptions& options) {
  return Emitter(options).Emit(expr);
}

}  // namespace mica::codegen
