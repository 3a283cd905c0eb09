// Reading YAML with places: thin, typed reads over yaml-cpp that turn every
// surprise into a Mistake at the node's line and column.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "codegen/diagnostics.h"

namespace mica::codegen {

// The document's root; a syntax error of YAML becomes a Mistake.
YAML::Node LoadYaml(const std::shared_ptr<const SourceFile>& file);

Location Place(const YAML::Node& node, const std::shared_ptr<const SourceFile>& file);

// A mapping with a fixed set of keys.
class YamlMap {
 public:
  // Checks that `node` is a mapping, that each key is one of `keys` and stands
  // once. `what` names the thing, for messages: "An entry".
  YamlMap(const YAML::Node& node, std::shared_ptr<const SourceFile> file, std::string_view what,
          const std::vector<std::string>& keys);

  bool has(std::string_view key) const;
  YAML::Node Get(std::string_view key) const;  // undefined if absent
  Location Where() const { return Place(node_, file_); }
  Location WhereKey(std::string_view key) const;  // of the key itself
  Location WhereValue(std::string_view key) const;
  const std::shared_ptr<const SourceFile>& file() const { return file_; }

  // The scalar at `key`; a Mistake if it is no scalar; "" if absent.
  std::string Text(std::string_view key) const;
  PlacedText Placed(std::string_view key) const;
  bool Flag(std::string_view key, bool if_absent) const;
  // A list of scalars, or one scalar, with places.
  std::vector<PlacedText> Texts(std::string_view key) const;

 private:
  YAML::Node node_;
  std::shared_ptr<const SourceFile> file_;
};

// The scalar of `node` with places; `what` names it for the message.
PlacedText PlacedScalar(const YAML::Node& node, const std::shared_ptr<const SourceFile>& file,
                        std::string_view what);

}  // namespace mica::codegen
