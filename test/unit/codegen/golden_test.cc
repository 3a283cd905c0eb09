// What mica-gen prints for four operators, against golden/*.golden, and that it
// leaves unchanged files alone. MICA_UPDATE_GOLDEN=1 rewrites the golden files.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include "codegen/emit/emitters.h"
#include "test/unit/codegen/codegen_test.h"

namespace mica::codegen {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(MICA_SOURCE_DIR) / "test/unit/codegen/golden";

std::string ReadText(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A folder that goes with the test.
struct TemporaryFolder {
  fs::path path = fs::temp_directory_path() / ("mica_codegen_" + std::to_string(::getpid()));
  TemporaryFolder() { fs::remove_all(path); }
  ~TemporaryFolder() { fs::remove_all(path); }
};

void EmitAll(const Model& model, OutputFolder& out) {
  EmitOps(model, out);
  EmitRegistry(model, out);
  EmitAdapters(model, out);
  EmitCalls(model, out);
  EmitDeclarations(model, out);
  EmitComposites(model, out);
  EmitApi(model, out);
  EmitStubs(model, out);
  EmitDocs(model, out);
}

std::unique_ptr<const Model> GoldenModel() {
  return LoadModel(SourceFile::Read((kGolden / "native.yaml").string()), nullptr);
}

// The shards that hold an operator's part, one after the other.
std::string Joined(const fs::path& folder, const std::string& stem, int count, const std::string& part) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    const std::string text = ReadText(folder / (stem + "_" + std::to_string(i) + ".cc"));
    if (text.find(part) != std::string::npos) all += text;
  }
  return all;
}

void CheckGolden(const std::string& name, const std::string& text) {
  const fs::path path = kGolden / (name + ".golden");
  if (std::getenv("MICA_UPDATE_GOLDEN")) std::ofstream(path, std::ios::binary) << text;
  INFO(name);
  REQUIRE(!text.empty());
  CHECK(ReadText(path) == text);
}

}  // namespace

TEST_CASE("the output for four operators is as it was", "[codegen]") {
  const TemporaryFolder folder;
  OutputFolder out(folder.path.string());
  EmitAll(*GoldenModel(), out);
  CheckGolden("ops_add.h", ReadText(folder.path / "ops/add.h"));
  CheckGolden("ops_transpose.h", ReadText(folder.path / "ops/transpose.h"));
  CheckGolden("registry_add.cc", Joined(folder.path, "registry", kRegistryShards, "spec_add_Tensor = "));
  CheckGolden("adapters.cc", Joined(folder.path, "adapters", kAdapterShards,
                                    "kAdapters<Tensor(const Tensor&, const Tensor&, const Scalar&)>;"));
  const char* const call = "TypedOperator<Tensor(const Tensor&, const Tensor&, const Scalar&)>::Call";
  CheckGolden("calls.cc", Joined(folder.path, "calls", kCallShards, call));
  CheckGolden("composites_total.cc", Joined(folder.path, "composites", kCompositeShards, "total("));
  CheckGolden("view_declarations.h", ReadText(folder.path / "kernels/view_declarations.h"));
  CheckGolden("meta_declarations.h", ReadText(folder.path / "kernels/meta_declarations.h"));
  CheckGolden("operators.pyi", ReadText(folder.path / "stubs/_operators.pyi"));
  CheckGolden("add.md", ReadText(folder.path / "docs/operators/add.md"));
}

TEST_CASE("the node and the kernels of a derivative are as they were", "[codegen]") {
  const TemporaryFolder folder;
  OutputFolder out(folder.path.string());
  const auto model = LoadModel(SourceFile::Read((kGolden / "native.yaml").string()),
                               SourceFile::Read((kGolden / "derivatives.yaml").string()));
  EmitAutograd(*model, out);
  // Saved tensors and numbers, metadata alone, in-place kernels, a view.
  const std::string text = Joined(folder.path, "autograd", kAutogradShards, "class AddBackward0 ");
  CheckGolden("autograd.cc", text);
  CHECK(text.find("class SumBackward0 ") != std::string::npos);
  CHECK(text.find("class TransposeBackward0 ") != std::string::npos);
}

TEST_CASE("forward-mode kernels are as they were", "[codegen]") {
  const TemporaryFolder folder;
  OutputFolder out(folder.path.string());
  EmitForward(*LoadModel(SourceFile::Read((kGolden / "native.yaml").string()),
                         SourceFile::Read((kGolden / "derivatives.yaml").string())),
              out);
  // From the class, complex and in-place, and of a reduction; by a formula of two terms.
  const std::string text = Joined(folder.path, "forward", kForwardShards, "Tangent_add_Tensor(");
  CheckGolden("forward.cc", text);
  CHECK(text.find("Tangent_sum_dim(") != std::string::npos);
  CheckGolden("forward_total.cc", Joined(folder.path, "forward", kForwardShards, "Tangent_total("));
}

namespace {
std::unique_ptr<const Model> PluginModel(const std::string& yaml, const std::string& derivatives) {
  return LoadModel(SourceFile::FromText("plugin.yaml", yaml),
                   derivatives.empty() ? nullptr : SourceFile::FromText("derivatives.yaml", derivatives),
                   SourceFile::Read((kGolden / "native.yaml").string()));
}
}  // namespace

TEST_CASE("a plugin's operators are made against the SDK", "[codegen]") {
  const TemporaryFolder folder;
  OutputFolder out(folder.path.string());
  EmitPlugin(*PluginModel(ReadText(kGolden / "plugin.yaml"), ReadText(kGolden / "plugin_derivatives.yaml")),
             out);
  CHECK(out.num_files() == 4);
  for (const char* name : {"operators.h", "operators.cc", "operators.py", "operators.pyi"})
    CheckGolden(std::string("plugin_") + name, ReadText(folder.path / "plugin" / name));
}

TEST_CASE("what a plugin cannot carry is refused with its place", "[codegen]") {
  const auto refusal = [](const std::string& yaml, const std::string& derivatives = "") {
    const TemporaryFolder folder;
    OutputFolder out(folder.path.string());
    try {
      EmitPlugin(*PluginModel(yaml, derivatives), out);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(refusal("- func: acme::f(Tensor(a) self) -> Tensor(a)\n  class: view\n  view: f\n  doc: F.\n"),
             Contains("plugin.yaml:1:3: Operator (acme::f) of a plugin has class view; expected pointwise"));
  CHECK_THAT(
      refusal("- func: acme::f(Tensor self) -> Tensor\n  class: decompose\n  body: self + kep(self)\n  doc: "
              "F.\n"),
      Contains("plugin.yaml:3:16: Operator (kep) is unknown"));
  CHECK_THAT(
      refusal(
          "- func: acme::f(Tensor self) -> Tensor\n  class: decompose\n  body: sum(self, wrap_dims([0], 1))\n"
          "  doc: F.\n"),
      Contains("Function (wrap_dims) is not in the SDK"));
  CHECK_THAT(refusal("- func: acme::f(Tensor self) -> Tensor\n  class: custom\n  forms: [functional, out]\n"
                     "  doc: F.\n"),
             Contains("class custom has no general one; expected `shape:`, which says what the outputs are"));
  CHECK_THAT(
      refusal("- func: acme::f(Tensor self) -> Tensor\n  class: custom\n  forms: [functional, inplace]\n"
              "  shape: self\n  doc: F.\n"),
      Contains("has the form inplace and not out; expected `forms: [functional, inplace, out]`"));
  const std::string made =
      "- func: acme::made() -> acme.Scale\n  class: custom\n  doc: M.\n"
      "- func: acme::weigh(Tensor self, acme.Scale scale) -> Tensor\n  class: custom\n  doc: W.\n";
  CHECK_THAT(refusal(made + "- func: acme::f(Tensor self) -> Tensor\n  class: decompose\n"
                            "  body: weigh(self, made())\n  doc: F.\n"),
             Contains("Operator (acme::made) gives a acme.Scale, which the SDK's calls do not take"));
  CHECK_THAT(refusal(made + "- func: acme::f(Tensor self, acme.Other o) -> Tensor\n  class: decompose\n"
                            "  body: weigh(self, o)\n  doc: F.\n"),
             Contains("its argument `scale` is a acme.Scale, not a acme.Other"));
  CHECK_THAT(refusal(made + "- func: acme::f(acme.Scale s) -> acme.Scale\n  class: decompose\n"
                            "  body: s\n  doc: F.\n"),
             Contains("Operator (acme::f) gives a acme.Scale, which no formula of a plugin makes"));
  CHECK_THAT(refusal("- func: acme::f(Tensor self) -> acme.Scale\n  class: custom\n  doc: F.\n",
                     "derivatives:\n- op: acme::f\n  self: grad\n"),
             Contains("Operator (acme::f) has a gradient and gives a acme.Scale; expected Tensors alone"));
  CHECK_THAT(
      refusal("- func: acme::f(Tensor self) -> Tensor\n  class: custom\n  doc: F.\n- func: b::g(Tensor self) "
              "-> Tensor\n  class: custom\n  doc: G.\n"),
      Contains("Namespace (b) differs from (acme)"));
  CHECK_THAT(
      refusal("- func: acme::f(Tensor self) -> Tensor\n  class: pointwise\n  compute: self\n  shape: self\n"
              "  doc: F.\n"),
      Contains("Key (shape) has no place in class pointwise"));
}

TEST_CASE("a second run writes nothing and a change writes few files", "[codegen]") {
  const TemporaryFolder folder;
  OutputFolder first(folder.path.string());
  EmitAll(*GoldenModel(), first);
  CHECK(first.num_written() == first.num_files());
  const auto written = fs::last_write_time(folder.path / "ops/add.h");
  OutputFolder second(folder.path.string());
  EmitAll(*GoldenModel(), second);
  CHECK(second.num_written() == 0);
  CHECK(fs::last_write_time(folder.path / "ops/add.h") == written);

  std::string yaml = ReadText(kGolden / "native.yaml");
  const size_t at = yaml.find("Exchanges");
  REQUIRE(at != std::string::npos);
  yaml.replace(at, 9, "Swaps");
  OutputFolder third(folder.path.string(), /*check=*/true);
  EmitAll(*LoadTexts(yaml), third);
  CHECK(third.num_written() > 0);
  CHECK(third.num_written() < third.num_files() / 2);
  // Check mode writes none of them.
  CHECK_THAT(ReadText(folder.path / "ops/transpose.h"), Catch::Matchers::Contains("Exchanges"));
}

TEST_CASE("an operator that is gone takes its header with it", "[codegen]") {
  const TemporaryFolder folder;
  OutputFolder first(folder.path.string());
  EmitAll(*GoldenModel(), first);
  REQUIRE(fs::exists(folder.path / "ops/transpose.h"));
  std::string yaml = ReadText(kGolden / "native.yaml");
  const size_t begin = yaml.find("- func: transpose"), end = yaml.find("- func: total");
  yaml.erase(begin, end - begin);
  OutputFolder second(folder.path.string());
  EmitAll(*LoadTexts(yaml), second);
  CHECK(!fs::exists(folder.path / "ops/transpose.h"));
  CHECK(fs::exists(folder.path / "ops/add.h"));
}

TEST_CASE("a printer refuses a variable that it was not given", "[codegen]") {
  Printer p;
  p.Indent();
  p.Print({{"a", "1"}}, "x = $a$; y = $$;");
  CHECK(p.text() == "  x = 1; y = $;\n");
  CHECK_THROWS_WITH(p.Print({{"a", "1"}}, "$b$"), "An emitter's variable (b) is not given.");
  CHECK_THROWS_WITH(p.Print({}, "$b"), Catch::Matchers::Contains("has no end"));
}

}  // namespace mica::codegen
