// See lexer.h.
#include "schema/lexer.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace mica::schema::internal {
namespace {

bool IsNameStart(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsName(char c) { return IsNameStart(c) || IsDigit(c); }
bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

size_t CountWhile(std::string_view text, bool (*accept)(char)) {
  size_t n = 0;
  while (n < text.size() && accept(text[n])) ++n;
  return n;
}

// The length of the unsigned number at the start of `text`: 12 1. 1.5 1e-05.
size_t NumberLength(std::string_view text) {
  size_t n = CountWhile(text, IsDigit);
  if (n < text.size() && text[n] == '.') n += 1 + CountWhile(text.substr(n + 1), IsDigit);
  if (n < text.size() && (text[n] == 'e' || text[n] == 'E')) {
    size_t sign = n + 1 < text.size() && (text[n + 1] == '-' || text[n + 1] == '+') ? 1 : 0;
    const size_t digits = CountWhile(text.substr(n + 1 + sign), IsDigit);
    if (digits > 0) n += 1 + sign + digits;
  }
  return n;
}

}  // namespace

void Lexer::Advance(size_t count) {
  for (const size_t end = offset_ + count; offset_ < end; ++offset_) {
    if (text_[offset_] == '\n') {
      ++at_.line;
      at_.column = 1;
    } else if (!IsContinuation(text_[offset_])) {
      ++at_.column;
    }
  }
}

Token Lexer::Next() {
  Token current = token_;
  token_ = Scan();
  return current;
}

Token Lexer::Scan() {
  while (offset_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[offset_])))
    Advance(1);
  Token token{TokenKind::kEnd, {}, offset_, at_};
  const std::string_view rest = text_.substr(offset_);
  if (rest.empty()) return token;
  size_t length = 1;
  const char c = rest[0];
  if (IsNameStart(c)) {
    token.kind = TokenKind::kIdentifier;
    length = CountWhile(rest, IsName);
  } else if (IsDigit(c)) {
    token.kind = TokenKind::kNumber;
    length = NumberLength(rest);
  } else if (c == '"' || c == '\'') {
    while (length < rest.size() && rest[length] != c) length += rest[length] == '\\' ? 2 : 1;
    if (length >= rest.size()) {
      token.kind = TokenKind::kError;
      token.text = "A string begins here and has no closing quote.";
      return token;  // stays here: every later token is this one
    }
    token.kind = TokenKind::kString;
    token.text = rest.substr(1, length - 1);
    Advance(length + 1);
    return token;
  } else if (rest.substr(0, 2) == "->") {
    token.kind = TokenKind::kArrow;
    length = 2;
  } else if (rest.substr(0, 2) == "::") {
    token.kind = TokenKind::kScope;
    length = 2;
  } else if (rest.substr(0, 3) == "...") {
    token.kind = TokenKind::kDots;
    length = 3;
  } else if (std::string_view("()[],*=!|?.-").find(c) != std::string_view::npos) {
    token.kind = TokenKind::kSymbol;
  } else {
    token.kind = TokenKind::kError;
    token.text = "The schema has a character here that no schema has.";
    return token;
  }
  token.text = rest.substr(0, length);
  Advance(length);
  return token;
}

std::string Lexer::Describe(const Token& token, std::string_view message) const {
  // The part of the line that is shown: a caret far to the right would help nobody.
  constexpr size_t kBefore = 70;
  constexpr size_t kAfter = 40;
  size_t begin = token.offset;
  while (begin > 0 && text_[begin - 1] != '\n' && token.offset - begin < kBefore) --begin;
  while (begin > 0 && begin < token.offset && IsContinuation(text_[begin])) ++begin;
  size_t end = std::min(text_.find('\n', token.offset), text_.size());
  end = std::min(end, token.offset + kAfter);
  while (end > token.offset && end < text_.size() && IsContinuation(text_[end])) --end;
  std::string line(text_.substr(begin, end - begin));
  for (char& c : line)
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  size_t caret = 0;
  for (size_t i = begin; i < token.offset; ++i) caret += !IsContinuation(text_[i]);
  const std::string place =
      file_.empty() ? absl::StrCat("line ", token.position.line, ", column ", token.position.column)
                    : absl::StrCat(std::string(file_), ":", token.position.line, ":", token.position.column);
  return absl::StrCat(place, ": ", std::string(message), "\n  ", line, "\n  ", std::string(caret, ' '), "^");
}

namespace {

constexpr std::string_view kEscapeLetters = "ntfvrab\\\"'";
constexpr std::string_view kEscapeValues = "\n\t\f\v\r\a\b\\\"'";

// Reads up to `max` digits of `base` from `text` into `value`; how many there were.
size_t ReadDigits(std::string_view text, int base, size_t max, int* value) {
  size_t n = 0;
  for (*value = 0; n < max && n < text.size(); ++n) {
    const char c = absl::ascii_tolower(static_cast<unsigned char>(text[n]));
    const int digit = IsDigit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
    if (digit >= base) break;
    *value = *value * base + digit;
  }
  return n;
}

}  // namespace

bool Unescape(std::string_view inside, std::string* out) {
  out->clear();
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\') {
      out->push_back(inside[i]);
      continue;
    }
    const std::string_view rest = inside.substr(i + 1);
    if (rest.empty()) return false;
    const size_t letter = kEscapeLetters.find(rest[0]);
    if (letter != std::string_view::npos) {
      out->push_back(kEscapeValues[letter]);
      i += 1;
      continue;
    }
    const bool hex = rest[0] == 'x';
    int value = 0;
    const size_t digits = hex ? ReadDigits(rest.substr(1), 16, 2, &value) : ReadDigits(rest, 8, 3, &value);
    if (digits == 0 || value > 255) return false;
    out->push_back(static_cast<char>(value));
    i += digits + hex;
  }
  return true;
}

std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const size_t letter = kEscapeValues.find(c);
    const auto byte = static_cast<unsigned char>(c);
    if (letter != std::string_view::npos) {
      out += {'\\', kEscapeLetters[letter]};
    } else if (absl::ascii_isprint(byte)) {
      out += c;
    } else {
      out += {'\\', static_cast<char>('0' + byte / 64), static_cast<char>('0' + byte / 8 % 8),
              static_cast<char>('0' + byte % 8)};
    }
  }
  return out + '"';
}

}  // namespace mica::schema::internal
