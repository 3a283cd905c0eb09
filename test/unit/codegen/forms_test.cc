// The three forms of an entry, their names in C++, and what entries default to.
#include "codegen/text.h"
#include "test/unit/codegen/codegen_test.h"

namespace mica::codegen {
namespace {

constexpr const char* kAdd =
    "- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n  forms: [functional, "
    "inplace, out]\n"
    "  class: pointwise\n  compute: self + alpha * other\n  doc: Adds.\n";

const Entry& Only(const std::unique_ptr<const Model>& model) { return *model->entries.at(0); }

}  // namespace

TEST_CASE("three forms come from one schema", "[codegen]") {
  const auto model = LoadTexts(kAdd);
  const Entry& e = Only(model);
  CHECK(e.functional->schema_text == "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  CHECK(e.inplace->schema_text ==
        "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
  CHECK(e.out->schema_text ==
        "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)");
  CHECK(e.functional->signature == "Tensor(const Tensor&, const Tensor&, const Scalar&)");
  CHECK(e.inplace->signature == "void(const Tensor&, const Tensor&, const Scalar&)");
  CHECK(e.out->signature == "void(const Tensor&, const Tensor&, const Scalar&, const Tensor&)");
  CHECK(e.functional->written_args == 0);
  CHECK(e.inplace->written_args == 1);
  CHECK(e.out->written_args == 8);
  CHECK(e.functional->struct_name == "add_Tensor");
  CHECK(e.inplace->struct_name == "add__Tensor");
  CHECK(e.out->struct_name == "add_out");
  CHECK(e.out->cpp_name == "add_out");
  CHECK(e.structured);
  CHECK(e.generic_meta);
  CHECK(e.meta == "GenericPointwise");
  CHECK(model->Find("add.Tensor") == e.functional);
  CHECK(model->Find("mica::add.out") == e.out);
  CHECK(model->Find("add.Scalar") == nullptr);
  CHECK(model->Overloads("add").size() == 2);
}

TEST_CASE("an earlier schema has the forms of the present one", "[codegen]") {
  const auto model =
      LoadTexts(std::string(kAdd) + "  earlier: [\"add.Tensor(Tensor self, Tensor other) -> Tensor\"]\n");
  const Entry& e = Only(model);
  REQUIRE(e.functional->earlier.size() == 1);
  CHECK(e.functional->earlier[0].schema_text == "add.Tensor(Tensor self, Tensor other) -> Tensor");
  CHECK(e.inplace->earlier[0].schema_text == "add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)");
  CHECK(e.out->earlier[0].schema_text ==
        "add.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)");
  CHECK(e.out->earlier[0].signature == "void(const Tensor&, const Tensor&, const Tensor&)");
}

TEST_CASE("several results have named outputs", "[codegen]") {
  const auto model = LoadTexts(
      "- func: max.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)\n  class: "
      "reduction(dims=dim)\n"
      "  out_name: dim_max\n  portable: max_dim\n  doc: M.\n");
  const Entry& e = Only(model);
  CHECK(e.out->schema_text ==
        "max.dim_max(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, "
        "Tensor(b!) indices)");
  CHECK(e.functional->return_type == "std::tuple<Tensor, Tensor>");
  CHECK(e.num_outputs() == 2);
  CHECK(!e.has_program());
}

TEST_CASE("an in-place schema is its only form", "[codegen]") {
  const auto model = LoadTexts(
      "- func: copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)\n  class: custom\n  "
      "portable: copy\n  doc: C.\n");
  const Entry& e = Only(model);
  CHECK(e.functional == nullptr);
  CHECK(&e.primary() == e.inplace);
  CHECK(e.inplace->cpp_name == "copy_");
  CHECK(!e.structured);
}

TEST_CASE("structured operators always have the out form", "[codegen]") {
  const auto model = LoadTexts(
      "- func: f(Tensor self) -> Tensor\n  class: pointwise\n  forms: [functional]\n  compute: self\n  doc: "
      "F.\n");
  CHECK(Only(model).out != nullptr);
}

TEST_CASE("operators that size their own result have no out form unless it is asked for", "[codegen]") {
  const auto model = LoadTexts(
      "- func: nonzero(Tensor self) -> Tensor\n  class: custom\n  structured: false\n  portable: nonzero\n  "
      "doc: N.\n");
  CHECK(Only(model).out == nullptr);
  CHECK(!Only(model).structured);
}

TEST_CASE("defaults are C++ text", "[codegen]") {
  const auto model = LoadTexts(
      "- func: f(Tensor self, int[2] stride=1, int[] pad=[0, 1], float eps=1e-05, Scalar? s=None, str "
      "m=\"a\", "
      "ScalarType? dtype=None, ScalarType t=long, MemoryFormat? mf=contiguous_format, Tensor? w=None, bool "
      "b=True, "
      "int reduction=Mean, Generator? g=None, *, ScalarType? u=4) -> Tensor\n"
      "  class: custom\n  doc: F.\n");
  const std::vector<CppArgument>& a = Only(model).functional->arguments;
  const char* expected[] = {"",
                            "IntSpan({1, 1})",
                            "IntSpan({0, 1})",
                            "1e-05",
                            "std::nullopt",
                            "\"a\"",
                            "std::nullopt",
                            "DType::kI64",
                            "MemoryFormat::kContiguous",
                            "Tensor()",
                            "true",
                            "1",
                            "nullptr",
                            "DType::kI64"};
  REQUIRE(a.size() == std::size(expected));
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i].default_value == expected[i]);
  CHECK(a[4].type == "const std::optional<Scalar>&");
  CHECK(a[8].type == "std::optional<MemoryFormat>");
}

TEST_CASE("names that C++ reserves get an underscore", "[codegen]") {
  const auto model =
      LoadTexts("- func: std(Tensor self, int default) -> Tensor\n  class: custom\n  doc: S.\n");
  CHECK(Only(model).functional->cpp_name == "std_");
  CHECK(Only(model).functional->arguments[1].name == "default_");
}

TEST_CASE("a vendor's entries keep their namespace", "[codegen]") {
  const auto model = LoadTexts(
      "- func: acme::spin(Tensor self) -> Tensor\n  class: pointwise\n  compute: -self\n  doc: Spins.\n");
  CHECK(Only(model).ns == "acme");
  CHECK(Only(model).functional->full_name == "acme::spin");
  CHECK(model->Find("acme::spin") != nullptr);
  CHECK(model->Find("spin") == nullptr);
}

TEST_CASE("dtype rules and methods follow the class and the schema", "[codegen]") {
  const auto model = LoadTexts(
      "- func: zeros(int[] size, *, ScalarType? dtype=None) -> Tensor\n  class: factory\n  compute: 0\n  "
      "doc: Z.\n");
  CHECK(Only(model).dtype_rule == DTypeRule::kArgument);
  CHECK(Only(model).dtype_arg == 1);
  CHECK(Only(model).python_function);
  CHECK(!Only(model).python_method);
  CHECK(Only(LoadTexts(kAdd)).python_method);
}

TEST_CASE("the copy of a view is made from its entry", "[codegen]") {
  constexpr const char* kClone =
      "- func: clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor\n  class: custom\n"
      "  portable: clone\n  structured: false\n  doc: C.\n";
  const auto model = LoadTexts(
      StrCat(kClone,
             "- func: cut.at(Tensor(a) self, int dim, *, int at=0) -> Tensor(a)\n  class: view\n  view: cut\n"
             "  copy: true\n  doc: Cuts.\n",
             "- func: parts(Tensor(a -> *) self, int n) -> Tensor(a)[]\n  class: decompose\n"
             "  body: \"[cut.at(self, i) for i in range(n)]\"\n  copy: true\n  doc: Parts.\n"));
  const Function* cut = model->Find("cut_copy.at");
  REQUIRE(cut);
  CHECK(cut->schema_text == "cut_copy.at(Tensor self, int dim, *, int at=0) -> Tensor");
  CHECK(cut->entry->body.text() == "clone(cut.at(self, dim, at=at), memory_format=contiguous_format)\n");
  CHECK(model->Find("cut_copy.at_out"));
  const Function* parts = model->Find("parts_copy");
  REQUIRE(parts);
  CHECK(parts->schema_text == "parts_copy(Tensor self, int n) -> Tensor[]");
  CHECK(parts->entry->out == nullptr);
  CHECK_THROWS_WITH(
      LoadTexts("- func: cut(Tensor(a) self) -> Tensor(a)\n  class: view\n  view: cut\n  copy: dup(self)\n"
                "  doc: Cuts.\n"),
      Catch::Contains("(dup) is unknown"));
}

}  // namespace mica::codegen
