// The tokens of a schema text, one ahead, with positions. Internal to the parser.
//
// Takes any bytes: what is no token becomes a kError token with a sentence. Reads
// each byte once, and keeps line and column as it goes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "schema/schema.h"

namespace mica::schema::internal {

enum class TokenKind : uint8_t {
  kEnd,
  kError,
  kIdentifier,
  kNumber,  // unsigned: "12", "1.", "1e-05"
  kString,  // text is what stands between the quotes, escapes and all
  kArrow,   // ->
  kDots,    // ...
  kScope,   // ::
  kSymbol,  // one of ( ) [ ] , * = ! | ? . -
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // as written; of kError: what is wrong
  size_t offset = 0;      // of its first byte
  Position position;
  bool is(char symbol) const { return kind == TokenKind::kSymbol && text[0] == symbol; }
  bool is(TokenKind k) const { return kind == k; }
};

class Lexer {
 public:
  Lexer(std::string_view text, const Source& source)
      : text_(text), file_(source.file), at_{source.line, source.column} {
    Next();
  }

  const Token& peek() const { return token_; }
  // The current token; moves to the one after.
  Token Next();

  // `message` about `token`, with place, line and caret.
  std::string Describe(const Token& token, std::string_view message) const;

 private:
  Token Scan();
  void Advance(size_t count);

  std::string_view text_;
  std::string_view file_;
  size_t offset_ = 0;
  Position at_;
  Token token_;
};

// The characters of a string literal's inside: \n \t \\ \" \' \a \b \f \r \v, \ooo
// and \xhh. False at any other escape.
bool Unescape(std::string_view inside, std::string* out);
// The reverse, with double quotes: printable ASCII as it is, the rest escaped.
std::string Quote(std::string_view text);

}  // namespace mica::schema::internal
