#include "dispatcher/plugins/flat_json.h"

#include <algorithm>

namespace mica {
namespace {

// Whether `text` is UTF-8: no overlong form, no surrogate, nothing above U+10FFFF
// (Unicode 15, table 3-7).
bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[i + k]); };
    const unsigned char first = byte(0);
    const size_t length = first < 0x80                    ? 1
                          : first >= 0xc2 && first < 0xe0 ? 2
                          : first >= 0xe0 && first < 0xf0 ? 3
                          : first >= 0xf0 && first < 0xf5 ? 4
                                                          : 0;
    if (length == 0 || length > text.size() - i) return false;
    for (size_t k = 1; k < length; ++k)
      if ((byte(k) & 0xc0) != 0x80) return false;
    if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
        (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f))
      return false;
    i += length;
  }
  return true;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool Object(FlatJsonMembers* members) {
    if (!Take('{')) return false;
    if (Take('}')) return AtEnd();
    do {
      std::string key, value;
      if (!String(&key) || !Take(':') || !(Peek() == '"' ? String(&value) : Number(&value))) return false;
      const bool twice =
          std::any_of(members->begin(), members->end(), [&](const auto& m) { return m.first == key; });
      if (twice) return false;
      members->emplace_back(std::move(key), std::move(value));
    } while (Take(','));
    return Take('}') && AtEnd();
  }

 private:
  char Peek() {
    constexpr std::string_view kSpace = " \t\r\n";
    while (pos_ < text_.size() && kSpace.find(text_[pos_]) != std::string_view::npos) ++pos_;
    return pos_ < text_.size() ? text_[pos_] : '\0';
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++pos_;
    return true;
  }
  bool AtEnd() {
    static_cast<void>(Peek());
    return pos_ == text_.size();
  }
  bool String(std::string* out) {
    if (!Take('"')) return false;
    const size_t begin = pos_;
    while (pos_ < text_.size() && text_[pos_] != '"') {
      const unsigned char c = static_cast<unsigned char>(text_[pos_++]);
      if (c < 0x20 || c == 0x7f || c == '\\') return false;
    }
    if (pos_ == text_.size()) return false;
    *out = std::string(text_.substr(begin, pos_++ - begin));
    return IsUtf8(*out);
  }
  bool Number(std::string* out) {
    while (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9') out->push_back(text_[pos_++]);
    return !out->empty() && out->size() <= 9;
  }

  std::string_view text_;
  size_t pos_ = 0;
};

}  // namespace

bool ParseFlatJson(std::string_view text, FlatJsonMembers* members) {
  members->clear();
  return Reader(text).Object(members);
}

}  // namespace mica
