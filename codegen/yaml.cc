// yaml-cpp counts lines and columns from 0; messages count from 1.
#include "codegen/yaml.h"

#include <algorithm>

#include "codegen/text.h"

namespace mica::codegen {

YAML::Node LoadYaml(const std::shared_ptr<const SourceFile>& file) {
  try {
    return YAML::Load(file->text);
  } catch (const YAML::Exception& error) {
    // At the end of the text there is no line to show: point behind the last one.
    Location where{file, error.mark.line + 1, error.mark.column + 1};
    const int count = static_cast<int>(file->lines.size());
    if (where.line > count && count > 0)
      where = {file, count, static_cast<int>(file->lines.back().size()) + 1};
    throw Mistake(where, StrCat("Text is no YAML (", error.msg, "); expected a list of mappings."));
  }
}

Location Place(const YAML::Node& node, const std::shared_ptr<const SourceFile>& file) {
  return {file, node.Mark().line + 1, node.Mark().column + 1};
}

PlacedText PlacedScalar(const YAML::Node& node, const std::shared_ptr<const SourceFile>& file,
                        std::string_view what) {
  if (!node.IsScalar()) throw Mistake(Place(node, file), StrCat(what, " is no text; expected a scalar."));
  return PlacedText(node.Scalar(), Place(node, file));
}

YamlMap::YamlMap(const YAML::Node& node, std::shared_ptr<const SourceFile> file, std::string_view what,
                 const std::vector<std::string>& keys)
    : node_(node), file_(std::move(file)) {
  if (!node.IsMap()) throw Mistake(Where(), StrCat(what, " is no mapping; expected `key: value` lines."));
  std::vector<std::string> seen;
  for (const auto& item : node) {
    const std::string key = item.first.IsScalar() ? item.first.Scalar() : "";
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      throw Mistake(Place(item.first, file_), StrCat("Key (", key, ") is unknown", DidYouMean(key, keys),
                                                     "; expected one of ", JoinNames(keys), "."));
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      throw Mistake(Place(item.first, file_), StrCat("Key (", key, ") stands twice; expected it once."));
    seen.push_back(key);
  }
}

bool YamlMap::has(std::string_view key) const { return Get(key).IsDefined(); }

YAML::Node YamlMap::Get(std::string_view key) const {
  for (const auto& item : node_)
    if (item.first.Scalar() == key) return item.second;
  return YAML::Node(YAML::NodeType::Undefined);
}

Location YamlMap::WhereKey(std::string_view key) const {
  for (const auto& item : node_)
    if (item.first.Scalar() == key) return Place(item.first, file_);
  return Where();
}

Location YamlMap::WhereValue(std::string_view key) const {
  return has(key) ? Place(Get(key), file_) : Where();
}

std::string YamlMap::Text(std::string_view key) const { return has(key) ? Placed(key).text() : ""; }

PlacedText YamlMap::Placed(std::string_view key) const {
  return PlacedScalar(Get(key), file_, StrCat("Value of `", key, "`"));
}

bool YamlMap::Flag(std::string_view key, bool if_absent) const {
  if (!has(key)) return if_absent;
  const std::string text = Text(key);
  if (text != "true" && text != "false")
    throw Mistake(WhereValue(key), StrCat("Value of `", key, "` is (", text, "); expected true or false."));
  return text == "true";
}

std::vector<PlacedText> YamlMap::Texts(std::string_view key) const {
  std::vector<PlacedText> texts;
  if (!has(key)) return texts;
  const YAML::Node node = Get(key);
  if (!node.IsSequence()) return {Placed(key)};
  for (const YAML::Node& item : node)
    texts.push_back(PlacedScalar(item, file_, StrCat("Item of `", key, "`")));
  return texts;
}

}  // namespace mica::codegen
