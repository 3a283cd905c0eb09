// Text helpers over std::string_view. Abseil 20220623 as Debian builds it has a
// string_view class of its own, so its StrCat does not take ours.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace mica::codegen {

inline void AppendPiece(std::string* out, std::string_view piece) { out->append(piece); }
inline void AppendPiece(std::string* out, char piece) { out->push_back(piece); }
template <std::integral T>
requires(!std::same_as<T, char> && !std::same_as<T, bool>) void AppendPiece(std::string* out, T number) {
  out->append(std::to_string(number));
}

template <typename... T>
void StrAppend(std::string* out, const T&... pieces) {
  (AppendPiece(out, pieces), ...);
}
template <typename... T>
std::string StrCat(const T&... pieces) {
  std::string out;
  (AppendPiece(&out, pieces), ...);
  return out;
}

// The pieces between separators, empty ones too.
inline std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text = text.substr(end + 1);
  }
}

inline std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// "pointwise" as "Pointwise".
inline std::string Capitalized(std::string word) {
  if (!word.empty() && word[0] >= 'a' && word[0] <= 'z') word[0] = static_cast<char>(word[0] - 'a' + 'A');
  return word;
}

// a, b and c joined by `separator`.
template <typename Range>
std::string Join(const Range& pieces, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& piece : pieces) {
    if (!first) out.append(separator);
    first = false;
    AppendPiece(&out, piece);
  }
  return out;
}

}  // namespace mica::codegen
