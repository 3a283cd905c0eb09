// The repository's own YAML: every class is carried by data, and most operators
// are data or composed in YAML.
#include <algorithm>
#include <map>

#include "codegen/stats.h"
#include "codegen/text.h"
#include "test/unit/codegen/codegen_test.h"

namespace mica::codegen {
namespace {

std::unique_ptr<const Model> OwnModel() {
  const std::string root = MICA_SOURCE_DIR;
  return LoadModel(SourceFile::Read(root + "/native_functions.yaml"),
                   SourceFile::Read(root + "/derivatives.yaml"));
}

// The number behind `before` in one line of the table.
int Number(const std::string& table, const std::string& line, const std::string& before) {
  for (const std::string_view text : Split(table, '\n')) {
    if (!text.starts_with(line)) continue;
    const size_t at = text.find(before);
    return at == std::string_view::npos ? -1 : std::atoi(text.substr(at + before.size()).data());
  }
  return -1;
}

}  // namespace

TEST_CASE("every class whose kernel is data has at least three operators from it", "[codegen]") {
  const std::string table = StatsText(*OwnModel());
  INFO(table);
  for (const char* name : {"pointwise", "reduction", "scan", "row", "window", "gather", "scatter", "factory",
                           "contraction", "fold", "random"}) {
    INFO(name);
    CHECK(Number(table, StrCat("class ", name, ": "), "from data ") >= 3);
  }
  // Of these the class says the shape or the batch; kernels are by hand.
  for (const char* name : {"view", "core"}) {
    INFO(name);
    CHECK(Number(table, StrCat("class ", name, ": "), ": ") >= 3);
  }
  CHECK(Number(table, "class decompose: ", "in YAML ") >= 200);
}

TEST_CASE("two thirds of the operators are data or composed in YAML", "[codegen]") {
  const std::string table = StatsText(*OwnModel());
  const int total = Number(table, "total: ", "total: ");
  const int data = Number(table, "generated from data: ", "data: ");
  const int yaml = Number(table, "composed in YAML: ", "YAML: "),
            cpp = Number(table, "composed in C++: ", "C++: ");
  INFO(table);
  CHECK((data + yaml) * 100 >= total * 65);
  CHECK((data + yaml + cpp) * 100 >= total * 85);
}

}  // namespace mica::codegen
