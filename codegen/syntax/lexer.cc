// Scans names, numbers, strings and symbols; `a.m` is one name.
#include "codegen/syntax/lexer.h"

#include <array>

#include "codegen/text.h"

namespace mica::codegen::syntax {
namespace {

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

constexpr std::array<std::string_view, 8> kLongSymbols = {"**", "//", "<<", ">>", "==", "!=", "<=", ">="};
constexpr std::string_view kShortSymbols = "+-*/%~&|^<>()[],=:";

}  // namespace

Token Lexer::Next() {
  const Token current = token_;
  token_ = Scan();
  return current;
}

bool Lexer::TakeSymbol(std::string_view symbol) {
  if (token_.kind != TokenKind::kSymbol || token_.text != symbol) return false;
  Next();
  return true;
}

bool Lexer::TakeWord(std::string_view word) {
  if (token_.kind != TokenKind::kName || token_.text != word) return false;
  Next();
  return true;
}

void Lexer::Fail(size_t offset, std::string sentence) const {
  throw Mistake(text_.At(offset), std::move(sentence));
}

std::string Lexer::Found() const {
  return token_.kind == TokenKind::kEnd ? "the end of the expression" : StrCat("`", token_.text, "`");
}

Token Lexer::Scan() {
  const std::string_view s = std::string_view(text_.text()).substr(0, end_);
  while (at_ < s.size() && (s[at_] == ' ' || s[at_] == '\n' || s[at_] == '\t' || s[at_] == '\r')) ++at_;
  const size_t begin = at_;
  const auto token = [&](TokenKind kind) { return Token{kind, s.substr(begin, at_ - begin), begin}; };
  if (at_ >= s.size()) return {TokenKind::kEnd, {}, s.size()};
  if (IsNameStart(s[at_])) {
    while (at_ < s.size() &&
           (IsNamePart(s[at_]) || (s[at_] == '.' && at_ + 1 < s.size() && IsNameStart(s[at_ + 1]))))
      ++at_;
    return token(TokenKind::kName);
  }
  if (IsDigit(s[at_]) || (s[at_] == '.' && at_ + 1 < s.size() && IsDigit(s[at_ + 1]))) {
    bool is_float = false;
    while (at_ < s.size()) {
      const char c = s[at_];
      if (c == '.' || c == 'e' || c == 'E') {
        is_float = true;
        ++at_;
        if (c != '.' && at_ < s.size() && (s[at_] == '-' || s[at_] == '+')) ++at_;
      } else if (IsDigit(c)) {
        ++at_;
      } else {
        break;
      }
    }
    if (at_ < s.size() && IsNameStart(s[at_]))
      Fail(at_, StrCat("Letter (", s[at_], ") follows a number; expected an operator."));
    return token(is_float ? TokenKind::kFloat : TokenKind::kInt);
  }
  if (s[at_] == '"' || s[at_] == '\'') {
    const size_t end = s.find(s[at_], at_ + 1);
    if (end == std::string_view::npos) Fail(at_, "A string has no end; expected the closing quote.");
    at_ = end + 1;
    return {TokenKind::kString, s.substr(begin + 1, end - begin - 1), begin};
  }
  for (const std::string_view symbol : kLongSymbols) {
    if (!s.substr(at_).starts_with(symbol)) continue;
    at_ += 2;
    return token(TokenKind::kSymbol);
  }
  if (kShortSymbols.find(s[at_]) == std::string_view::npos)
    Fail(at_, StrCat("Character (", s[at_],
                     ") has no meaning in an expression; expected a name, a number or an operator."));
  ++at_;
  return token(TokenKind::kSymbol);
}

}  // namespace mica::codegen::syntax
