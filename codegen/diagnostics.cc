// Source files, places inside folded YAML scalars, and the text of a Mistake.
#include "codegen/diagnostics.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "codegen/text.h"

namespace mica::codegen {
namespace {

std::shared_ptr<const SourceFile> Make(std::string name, std::string folder, std::string text) {
  auto file = std::make_shared<SourceFile>();
  file->name = std::move(name);
  file->folder = std::move(folder);
  file->text = std::move(text);
  std::string_view rest = file->text;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    file->lines.push_back(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return file;
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::shared_ptr<const SourceFile> SourceFile::Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in)
    throw std::runtime_error(StrCat("File (", path, ") cannot be read; expected a readable YAML file."));
  const size_t name = path.find_last_of('/') + 1;
  return Make(path.substr(name), path.substr(0, name), std::move(text).str());
}

std::shared_ptr<const SourceFile> SourceFile::ReadBeside(const std::string& path) const {
  const auto file = Read(folder + path);
  return Make(path, file->folder, file->text);
}

std::shared_ptr<const SourceFile> SourceFile::FromText(std::string name, std::string text) {
  return Make(std::move(name), "", std::move(text));
}

std::string Location::ToString() const {
  const std::string name = file ? file->name : "input";
  return line > 0 ? StrCat(name, ":", line, ":", column) : name;
}

Mistake::Mistake(const Location& where, std::string sentence) : sentence_(std::move(sentence)) {
  text_ = StrCat(where.ToString(), ": ", sentence_);
  if (!where.file || where.line < 1 || where.line > static_cast<int>(where.file->lines.size())) return;
  const std::string_view line = where.file->lines[where.line - 1];
  StrAppend(&text_, "\n  ", line, "\n  ", std::string(std::max(0, where.column - 1), ' '), "^");
}

PlacedText::PlacedText(std::string text, const Location& begin) : text_(std::move(text)), begin_(begin) {
  if (!begin.file || begin.line < 1 || begin.line > static_cast<int>(begin.file->lines.size())) return;
  // Walk the file beside the value: they differ in quotes, in a block's header,
  // and in how runs of blanks are folded.
  const std::string& source = begin.file->text;
  const std::string_view first = begin.file->lines[begin.line - 1];
  size_t at = static_cast<size_t>(first.data() - source.data()) + begin.column - 1;
  int line = begin.line, column = begin.column;
  const auto step = [&] {
    if (source[at] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
    ++at;
  };
  if (at < source.size() && (source[at] == '|' || source[at] == '>')) {
    while (at < source.size() && source[at] != '\n') step();
  } else if (at < source.size() && (source[at] == '"' || source[at] == '\'')) {
    step();
  }
  for (size_t i = 0; i < text_.size(); ++i) {
    if (IsBlank(text_[i])) continue;
    while (at < source.size() && source[at] != text_[i]) step();
    if (at >= source.size()) return;
    const bool follows = !offsets_.empty() && breaks_.back().line == line &&
                         column - breaks_.back().column == static_cast<int>(i - offsets_.back());
    if (!follows) {
      offsets_.push_back(i);
      breaks_.push_back({begin.file, line, column});
    }
    step();
  }
}

Location PlacedText::At(size_t offset) const {
  const auto it = std::upper_bound(offsets_.begin(), offsets_.end(), offset);
  if (it == offsets_.begin()) return begin_;
  const size_t k = it - offsets_.begin() - 1;
  Location where = breaks_[k];
  where.column += static_cast<int>(offset - offsets_[k]);
  return where;
}

std::string JoinNames(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " and " : ", ";
    out += names[i];
  }
  return out;
}

std::string NearestName(std::string_view name, const std::vector<std::string>& names) {
  std::string best;
  int least = 1 + static_cast<int>(name.size()) / 3;
  for (const std::string& candidate : names) {
    const int distance = EditDistance(name, candidate);
    if (distance < least || (distance == least && best.empty())) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(name, names);
  return nearest.empty() ? "" : StrCat(" (did you mean `", nearest, "`?)");
}

}  // namespace mica::codegen
