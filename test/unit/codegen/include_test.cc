// Operators in files of their own: `- include: path`, and what is said of mistakes there.
#include <filesystem>
#include <fstream>

#include "test/unit/codegen/codegen_test.h"

namespace mica::codegen {
namespace {

constexpr const char* kNegate =
    "- func: negate(Tensor self) -> Tensor\n  class: pointwise\n  compute: -self\n  doc: Negates.\n";

// Files in a folder that goes with the test.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::path(MICA_BUILD_DIR) / "include_test" / name) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_ / "operators");
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  void Write(const std::string& file, const std::string& text) const { std::ofstream(path_ / file) << text; }
  std::unique_ptr<const Model> Load() const {
    return LoadModel(SourceFile::Read((path_ / "native.yaml").string()), nullptr, nullptr);
  }
  std::string MistakeOf() const {
    try {
      Load();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("entries of an included file stand where it is included", "[codegen]") {
  const Folder folder("order");
  const std::string identity =
      "- func: same(Tensor self) -> Tensor\n  class: pointwise\n  compute: self\n  doc: Itself.\n";
  folder.Write("native.yaml", "- include: operators/signs.yaml\n" + identity);
  folder.Write("operators/signs.yaml", kNegate);
  const auto model = folder.Load();
  REQUIRE(model->entries.size() == 2);
  CHECK(model->entries[0]->base_name == "negate");
  CHECK(model->entries[0]->location.ToString() == "operators/signs.yaml:1:3");
  CHECK(model->entries[1]->location.ToString() == "native.yaml:2:3");
}

TEST_CASE("a mistake in an included file is told with its path, and all files are read", "[codegen]") {
  const Folder folder("mistakes");
  folder.Write("native.yaml", "- include: operators/a.yaml\n- include: operators/b.yaml\n");
  folder.Write("operators/a.yaml", "- func: f(Tensr self) -> Tensor\n");
  folder.Write("operators/b.yaml", "- fun: g(Tensor self) -> Tensor\n");
  const std::string said = folder.MistakeOf();
  CHECK(said.find("operators/a.yaml:1:11: Type (Tensr) is unknown") != std::string::npos);
  CHECK(said.find("operators/b.yaml:1:3: Key (fun) is unknown") != std::string::npos);
}

TEST_CASE("what cannot be included is refused at the line that includes it", "[codegen]") {
  const Folder folder("refused");
  folder.Write("native.yaml", "- include: operators/none.yaml\n");
  CHECK(folder.MistakeOf().find("native.yaml:1:12: File (") == 0);
  folder.Write("native.yaml", "- include: [a]\n");
  CHECK(folder.MistakeOf().find("native.yaml:1:12: Value of `include` is no text") == 0);
  folder.Write("native.yaml", "- include: operators/a.yaml\n  doc: A.\n");
  CHECK(folder.MistakeOf().find("native.yaml:2:3: Key (doc) is unknown; expected one of include.") == 0);
  folder.Write("native.yaml", "- include: operators/a.yaml\n");
  folder.Write("operators/a.yaml", "- include: b.yaml\n");
  CHECK(folder.MistakeOf().find("operators/a.yaml:1:3: Key (include) is unknown") == 0);
  folder.Write("operators/a.yaml", kNegate);
  folder.Write("native.yaml", "- include: operators/a.yaml\n- include: operators/a.yaml\n");
  CHECK(folder.MistakeOf().find("operators/a.yaml:1:3: Operator (mica::negate) stands twice") == 0);
}

}  // namespace mica::codegen
