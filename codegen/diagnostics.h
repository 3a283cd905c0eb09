// Where something stands in an input file, and the exception that says what is
// wrong there.
//
// Every mistake in native_functions.yaml or derivatives.yaml becomes one Mistake:
//   native_functions.yaml:12:18: Key (clas) is unknown; expected one of ...
//     - func: ...
//       ^
// The loaders catch a Mistake per entry, so that one run reports several.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mica::codegen {

// A whole input file, kept for caret lines.
struct SourceFile {
  std::string name;    // as messages print it
  std::string folder;  // "path/to/", where the files that it includes are
  std::string text;
  std::vector<std::string_view> lines;

  // Reads `path`; throws std::runtime_error with a sentence if it cannot.
  static std::shared_ptr<const SourceFile> Read(const std::string& path);
  static std::shared_ptr<const SourceFile> FromText(std::string name, std::string text);
  // Another file by its path from this one, which messages print.
  std::shared_ptr<const SourceFile> ReadBeside(const std::string& path) const;
};

// Line and column count from 1; (0, 0) says the file as a whole.
struct Location {
  std::shared_ptr<const SourceFile> file;
  int line = 0;
  int column = 0;
  std::string ToString() const;  // "native_functions.yaml:12:18"
};

class Mistake : public std::exception {
 public:
  Mistake(const Location& where, std::string sentence);
  const char* what() const noexcept override { return text_.c_str(); }
  // The sentence alone, without place and caret.
  const std::string& sentence() const { return sentence_; }

 private:
  std::string sentence_;
  std::string text_;
};

// A scalar of the YAML text with the place of each of its bytes, whatever the
// quoting or folding, so that an error inside an expression points at the byte.
class PlacedText {
 public:
  PlacedText() = default;
  // `begin` is where YAML says that the scalar begins.
  PlacedText(std::string text, const Location& begin);
  const std::string& text() const { return text_; }
  Location At(size_t offset) const;

 private:
  std::string text_;
  Location begin_;
  std::vector<Location> breaks_;  // place of the byte at offsets_[i]
  std::vector<size_t> offsets_;
};

// "a, b and c": for the lists of what was expected.
std::string JoinNames(const std::vector<std::string>& names);
// The name nearest to `name` if it is near enough to be meant; else "".
std::string NearestName(std::string_view name, const std::vector<std::string>& names);
// " (did you mean `x`?)" or "".
std::string DidYouMean(std::string_view name, const std::vector<std::string>& names);

}  // namespace mica::codegen
