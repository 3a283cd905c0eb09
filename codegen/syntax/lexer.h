// Tokens of the expression languages. Internal to the parser.
#pragma once

#include <string>
#include <string_view>

#include "codegen/diagnostics.h"

namespace mica::codegen::syntax {

enum class TokenKind : uint8_t { kEnd, kName, kInt, kFloat, kString, kSymbol };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // of a string: what stands between the quotes
  size_t offset = 0;
};

class Lexer {
 public:
  // Reads the bytes from `begin` to `end` of `text`.
  Lexer(const PlacedText& text, size_t begin, size_t end) : text_(text), at_(begin), end_(end) { Next(); }
  const Token& peek() const { return token_; }
  Token Next();
  bool TakeSymbol(std::string_view symbol);
  bool TakeWord(std::string_view word);
  [[noreturn]] void Fail(size_t offset, std::string sentence) const;
  // "`)`", "the end", for messages.
  std::string Found() const;

 private:
  Token Scan();
  const PlacedText& text_;
  size_t at_;
  size_t end_;
  Token token_;
};

}  // namespace mica::codegen::syntax
