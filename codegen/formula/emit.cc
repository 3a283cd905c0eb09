// A checked formula as one C++ expression.
#include "codegen/formula/formula.h"
#include "codegen/names.h"
#include "codegen/text.h"

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
        return e.type.is_tensor() ? "Tensor()" : IsPointer(e.type) ? "nullptr" : "std::nullopt";
      case Kind::kCall:
        if (options_.call) return options_.call(e, All(e.operands));
        return StrCat("::", e.function->entry->ns, "::ops::op::", e.function->struct_name, "::call(",
                      All(e.operands), ")");
      case Kind::kLocal:
        return CppIdentifier(e.text);
      case Kind::kHelper:
        return StrCat(e.helper->cpp_name, "(", All(e.operands), ")");
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
        return e.text == "list"
                   ? StrCat("::mica::formula::At(", Emit(e.operands[0]), ", ", Emit(e.operands[1]), ")")
                   : StrCat("std::get<", e.index, ">(", Emit(e.operands[0]), ")");
      case Kind::kSlice:
        return Slice(e);
      case Kind::kConcat:
        return StrCat("::mica::formula::Concat(", All(e.operands), ")");
      case Kind::kFor:
        return For(e);
      case Kind::kRange:
        break;
      case Kind::kLet:
      case Kind::kCheck:
      case Kind::kDo:
        return StrCat("[&]() -> ", CppValueType(e.type), " {\n", Statements(e, true, 2), "}()");
    }
    __builtin_unreachable();
  }

  std::string Statements(const FormulaExpr& e, bool returns, int indent) const {
    const std::string blanks(static_cast<size_t>(indent), ' ');
    switch (e.kind) {
      case Kind::kLet:
        return StrCat(blanks, CppConstantType(e.operands[0].type), " ", CppIdentifier(e.text), " = ",
                      Owned(e.operands[0]), ";\n", Statements(e.operands[1], returns, indent));
      case Kind::kCheck:
        return StrCat(blanks, Check(e), "\n", Statements(e.operands.back(), returns, indent));
      case Kind::kDo:
        return StrCat(blanks, e.operands.size() > 2 ? StrCat("if (", Emit(e.operands[1]), ") ") : "",
                      Emit(e.operands[0]), ";\n", Statements(e.operands.back(), returns, indent));
      case Kind::kIf: {
        const std::string then = Statements(e.operands[1], returns, indent + 2);
        return StrCat(blanks, "if (", Emit(e.operands[0]), ") {\n", then, blanks, "}\n",
                      Statements(e.operands[2], returns, indent));
      }
      default:
        if (!returns) return StrCat(blanks, "return;\n");
        if (options_.result) return StrCat(blanks, options_.result(e, Owned(e)), "\n");
        return StrCat(blanks, "return ", Owned(e), ";\n");
    }
  }

  std::string Arguments(const FormulaExpr& call) const { return All(call.operands); }

  std::string Check(const FormulaExpr& e) const {
    std::string text = StrCat(e.text, "((", Emit(e.operands[0]), "), ", CppString(e.pieces[0]));
    for (size_t i = 1; i < e.pieces.size(); ++i) {
      StrAppend(&text, ", ::mica::formula::Show(", Emit(e.operands[i]), ")");
      if (!e.pieces[i].empty()) StrAppend(&text, ", ", CppString(e.pieces[i]));
    }
    return text + ");";
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
    if (e.text == "elements") return x;
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
    // On ints C++'s own operators would overflow without a word.
    const bool scalar =
        e.type.is(TypeKind::kScalar) || e.type.is(TypeKind::kInt) || e.type.is(TypeKind::kSymInt);
    const bool literal = e.operands[0].kind == Kind::kLiteral;
    if (e.text == "neg")
      return scalar && !literal ? StrCat("scalar_math::Neg(", a, ")") : StrCat("(-", a, ")");
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
    if (e.operands[0].type.is(TypeKind::kList))
      return StrCat("(IntSpan(", a, ") ", e.text, " IntSpan(", b, "))");
    if (!scalar) return StrCat("(", a, " ", e.text, " ", b, ")");
    if (e.text == "==") return StrCat("scalar_math::Equal(", a, ", ", b, ")");
    if (e.text == "!=") return StrCat("!scalar_math::Equal(", a, ", ", b, ")");
    return StrCat("(scalar_math::Compare(", a, ", ", b, ") ", e.text, " 0)");
  }

  std::string IsNone(const FormulaExpr& e) const {
    const std::string x = Emit(e.operands[0]);
    const bool none = e.text == "is";
    if (e.operands[0].type.is_tensor()) return StrCat(none ? "!" : "", "(", x, ").defined()");
    if (IsPointer(e.operands[0].type)) return StrCat("(", x, none ? " == " : " != ", "nullptr)");
    return StrCat(none ? "!" : "", "(", x, ").has_value()");
  }

  // A value that no parameter or temporary must outlive.
  std::string Owned(const FormulaExpr& e) const {
    const std::string x = Emit(e);
    if (!e.type.is_list()) return x;
    switch (e.kind) {
      case Kind::kCall:
      case Kind::kHelper:
      case Kind::kFor:
      case Kind::kConcat:
      case Kind::kSlice:
      case Kind::kIf:
      case Kind::kNone:
        return x;
      default:
        return StrCat("::mica::formula::Own(", x, ")");
    }
  }

  // Both branches as owned values of one type.
  std::string If(const FormulaExpr& e) const {
    if (IsPointer(e.type))
      return StrCat("(", Emit(e.operands[0]), " ? ", Emit(e.operands[1]), " : ", Emit(e.operands[2]), ")");
    const std::string type = CppValueType(e.type);
    return StrCat("(", Emit(e.operands[0]), " ? ", type, "(", Owned(e.operands[1]), ") : ", type, "(",
                  Owned(e.operands[2]), "))");
  }

  std::string Slice(const FormulaExpr& e) const {
    const auto bound = [&](const FormulaExpr& b, const char* absent) {
      return b.kind == Kind::kNone ? std::string(absent) : Emit(b);
    };
    return StrCat("::mica::formula::Slice(", Emit(e.operands[0]), ", ", bound(e.operands[1], "0"), ", ",
                  bound(e.operands[2], "INT64_MAX"), ")");
  }

  std::string For(const FormulaExpr& e) const {
    const FormulaExpr& list = e.operands[1];
    const std::string name = CppIdentifier(e.text);
    std::string loop;
    if (list.kind == Kind::kRange) {
      loop = StrCat("for (int64_t ", name, " = ", Emit(list.operands[0]), "; ", name, " < ",
                    Emit(list.operands[1]), "; ", name, " += ", Emit(list.operands[2]), ")");
    } else {
      const bool is_named = list.text == "elements";  // and lives as long as the call
      loop = StrCat("for (const auto& ", name, " : ", is_named ? "" : "::mica::formula::Own", "(", Emit(list),
                    "))");
    }
    const std::string condition =
        e.operands.size() > 2 ? StrCat("if (", Emit(e.operands[2]), ") ") : std::string();
    return StrCat("[&] { ", CppValueType(e.type), " items_; ", loop, " { ", condition, "items_.push_back(",
                  Emit(e.operands[0]), "); } return items_; }()");
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

std::string EmitArguments(const FormulaExpr& call, const EmitOptions& options) {
  return Emitter(options).Arguments(call);
}

std::string EmitCheck(const FormulaExpr& check, const EmitOptions& options) {
  return Emitter(options).Check(check);
}

std::string EmitStatements(const FormulaExpr& expr, const EmitOptions& options, bool returns, int indent) {
  return Emitter(options).Statements(expr, returns, indent);
}

}  // namespace mica::codegen
