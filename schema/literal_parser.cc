// Default literals, each checked against its argument's type. See parser.h.
#include <algorithm>
#include <limits>

#include "absl/strings/charconv.h"
#include "absl/strings/numbers.h"
#include "schema/parser.h"
#include "tensor/dtype.h"

namespace mica::schema::internal {
namespace {

bool IsFloatKind(TypeKind kind) {
  return kind == TypeKind::kFloat || kind == TypeKind::kSymFloat || kind == TypeKind::kComplex;
}

bool TakesNumber(TypeKind kind) {
  switch (kind) {
    case TypeKind::kInt:
    case TypeKind::kSymInt:
    case TypeKind::kScalar:
    case TypeKind::kScalarType:
    case TypeKind::kLayout:
    case TypeKind::kMemoryFormat:
    case TypeKind::kAny:
      return true;
    default:
      return IsFloatKind(kind);
  }
}

bool TakesBool(TypeKind kind) {
  return kind == TypeKind::kBool || kind == TypeKind::kSymBool || kind == TypeKind::kScalar ||
         kind == TypeKind::kAny;
}

bool TakesString(TypeKind kind) {
  return kind == TypeKind::kStr || kind == TypeKind::kDimname || kind == TypeKind::kDevice ||
         kind == TypeKind::kAny;
}

// The names that a default of this kind may be, for messages; empty if none.
std::string_view Names(TypeKind kind) {
  switch (kind) {
    case TypeKind::kInt:
      return "Mean or Sum";
    case TypeKind::kScalarType:
      return "a dtype such as float or long";
    case TypeKind::kLayout:
      return "strided";
    case TypeKind::kMemoryFormat:
      return "contiguous_format, preserve_format, channels_last or channels_last_3d";
    default:
      return IsFloatKind(kind) || kind == TypeKind::kScalar ? "inf or nan" : "";
  }
}

bool IsNameOf(TypeKind kind, std::string_view name) {
  switch (kind) {
    case TypeKind::kInt:
      return name == "Mean" || name == "Sum";
    case TypeKind::kScalarType:
      return DTypeFromName(name).has_value();
    case TypeKind::kLayout:
      return name == "strided";
    case TypeKind::kMemoryFormat:
      return name == "contiguous_format" || name == "preserve_format" || name == "channels_last" ||
             name == "channels_last_3d";
    default:
      return false;
  }
}

Literal FloatLiteral(double f) {
  Literal literal;
  literal.kind = Literal::Kind::kFloat;
  literal.f = f;
  return literal;
}

// Torch prints `int[2] stride=1` but `SymInt[2] stride=[1, 1]` and `int[1] dim=[0]`;
// the canonical form follows it.
void CanonicalizeList(const Type& list, Literal* literal) {
  const bool short_form = list.list_size > 1 && list.elements[0].is(TypeKind::kInt);
  if (literal->kind != Literal::Kind::kList) {
    if (short_form) return;
    Literal expanded;
    expanded.kind = Literal::Kind::kList;
    expanded.items.assign(list.list_size, *literal);
    *literal = std::move(expanded);
  } else if (short_form && literal->items.size() == static_cast<size_t>(list.list_size)) {
    const Literal first = literal->items[0];
    if (std::all_of(literal->items.begin(), literal->items.end(),
                    [&](const Literal& l) { return l == first; }))
      *literal = first;
  }
}

}  // namespace

bool Parser::ReadDefault(const Type& type, Literal* literal) {
  const Type& inner = type.unwrapped();
  const bool takes_none = type.is_optional() || inner.is(TypeKind::kAny) || inner.is(TypeKind::kNone);
  const Token token = peek();
  if (token.is(TokenKind::kIdentifier) && token.text == "None") {
    if (!takes_none)
      return Fail(token, absl::StrCat("Default (None) does not fit type (", type.ToString(),
                                      "); a type that takes None ends in `?`."));
    lexer_.Next();
    return true;
  }
  if (inner.is(TypeKind::kList)) return ReadListDefault(inner, literal);
  if (!ReadSingle(inner, literal)) return false;
  // As torch: `float eps=1` is 1., `float? correction=1` stays 1.
  if (literal->kind == Literal::Kind::kInt && IsFloatKind(type.kind))
    *literal = FloatLiteral(static_cast<double>(literal->i));
  return true;
}

bool Parser::ReadListDefault(const Type& list, Literal* literal) {
  const Type& element = list.elements[0];
  // No schema needs more, and `int[64][64][64] x=1` would grow without bound.
  const bool nested = element.unwrapped().is(TypeKind::kList);
  if (!peek().is('[')) {
    if (nested || list.list_size == 0) return FailExpected("`[` and the list's elements");
    if (!ReadDefault(element, literal)) return false;
    CanonicalizeList(list, literal);
    return true;
  }
  lexer_.Next();
  literal->kind = Literal::Kind::kList;
  if (Take(']')) return true;
  if (nested) return FailExpected("`]` (the default of a list of lists is empty)");
  do {
    Literal& item = literal->items.emplace_back();
    if (!ReadDefault(element, &item)) return false;
  } while (Take(','));
  if (!Expect(']', "`,` or `]` in the list")) return false;
  CanonicalizeList(list, literal);
  return true;
}

bool Parser::ReadSingle(const Type& type, Literal* literal) {
  const Token token = peek();
  if (token.is(TokenKind::kNumber) || token.is('-')) {
    if (TakesNumber(type.kind)) return ReadNumber(type.kind, literal);
  } else if (token.is(TokenKind::kString)) {
    if (TakesString(type.kind)) {
      lexer_.Next();
      literal->kind = Literal::Kind::kStr;
      return Unescape(token.text, &literal->text) ||
             Fail(token,
                  "The string has an escape that is unknown; known are \\n \\t \\f \\v \\r \\a \\b \\\\ \\\" "
                  "\\' \\ooo and \\xhh.");
    }
  } else if (token.is(TokenKind::kIdentifier)) {
    if (token.text == "True" || token.text == "False") {
      if (TakesBool(type.kind)) {
        lexer_.Next();
        literal->kind = Literal::Kind::kBool;
        literal->b = token.text == "True";
        return true;
      }
    } else {
      return ReadNameLiteral(type.kind, literal);
    }
  } else {
    return FailExpected(absl::StrCat("a default for type ", type.ToString()));
  }
  return Fail(token, absl::StrCat("Default (", std::string(token.text.substr(0, 40)), ") does not fit type (",
                                  type.ToString(), ")."));
}

bool Parser::ReadNumber(TypeKind kind, Literal* literal) {
  const Token begin = peek();
  const bool negative = Take('-');
  if (negative && peek().is(TokenKind::kIdentifier) && peek().text == "inf" &&
      (IsFloatKind(kind) || kind == TypeKind::kScalar)) {
    lexer_.Next();
    *literal = FloatLiteral(-std::numeric_limits<double>::infinity());
    return true;
  }
  if (!peek().is(TokenKind::kNumber)) return FailExpected("a number after `-`");
  const Token number = lexer_.Next();
  const std::string text = absl::StrCat(negative ? "-" : "", std::string(number.text));
  const bool is_float = number.text.find_first_of(".eE") != std::string_view::npos;
  if (!is_float) {
    literal->kind = Literal::Kind::kInt;
    if (absl::SimpleAtoi(text, &literal->i)) return true;
    return Fail(begin, absl::StrCat("Number (", text.substr(0, 40), ") does not fit an int of 64 bits."));
  }
  if (!IsFloatKind(kind) && kind != TypeKind::kScalar && kind != TypeKind::kAny)
    return Fail(begin,
                absl::StrCat("Default (", text.substr(0, 40), ") is a float where an int is expected."));
  literal->kind = Literal::Kind::kFloat;
  const auto [end, error] = absl::from_chars(text.data(), text.data() + text.size(), literal->f);
  // Too small is zero, as in C and Python; too large is a mistake.
  if (error != std::errc() && !(error == std::errc::result_out_of_range && literal->f < 1 && literal->f > -1))
    return Fail(begin, absl::StrCat("Number (", text.substr(0, 40), ") does not fit a float of 64 bits."));
  return true;
}

bool Parser::ReadNameLiteral(TypeKind kind, Literal* literal) {
  const Token token = peek();
  const bool takes_inf = IsFloatKind(kind) || kind == TypeKind::kScalar;
  if (takes_inf && (token.text == "inf" || token.text == "nan")) {
    *literal = FloatLiteral(token.text == "inf" ? std::numeric_limits<double>::infinity()
                                                : std::numeric_limits<double>::quiet_NaN());
  } else if (IsNameOf(kind, token.text)) {
    literal->kind = Literal::Kind::kName;
    literal->text = token.text;
  } else {
    const std::string names(Names(kind));
    return Fail(token,
                absl::StrCat("Default (", std::string(token.text.substr(0, 40)), ") does not fit type (",
                             std::string(KindName(kind)), names.empty() ? ")." : "); as a name it takes ",
                             names, names.empty() ? "" : "."));
  }
  lexer_.Next();
  return true;
}

}  // namespace mica::schema::internal
