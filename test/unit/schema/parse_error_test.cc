// Errors of the parser: place, what was found, what was expected, the caret; and
// that no input, however hostile, is more than an error.
#include <chrono>
#include <random>
#include <string>

#include "schema/schema.h"
#include "test/support/mica_test.h"

namespace mica::schema {
namespace {

std::string ErrorOf(std::string_view text, const Source& source = {}) {
  const auto schema = Parse(text, source);
  INFO(std::string(text));
  REQUIRE_FALSE(schema.ok());
  CHECK(schema.status().code() == absl::StatusCode::kInvalidArgument);
  return std::string(schema.status().message());
}

TEST_CASE("an error shows the place, the line and a caret", "[schema]") {
  CHECK(ErrorOf("add(Tensr self) -> Tensor", {"native_functions.yaml", 12, 9}) ==
        "native_functions.yaml:12:13: Type (Tensr) is unknown; did you mean (Tensor)?\n"
        "  add(Tensr self) -> Tensor\n"
        "      ^");
  CHECK(ErrorOf("add(Tensor self,\n    Tensor) -> Tensor") ==
        "line 2, column 11: The schema has ()) where the argument's name is expected.\n"
        "      Tensor) -> Tensor\n"
        "            ^");
}

TEST_CASE("columns and the caret count characters, not bytes", "[schema]") {
  const std::string error = ErrorOf("f(str a=\"\xc3\xa4\xe2\x82\xac\", Tensr b) -> ()");
  CHECK(error.find("line 1, column 15:") == 0);
  CHECK(error.substr(error.rfind('\n') + 1) == std::string(2 + 14, ' ') + "^");
}

TEST_CASE("each mistake has its sentence", "[schema]") {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {
      {"", "line 1, column 1: The schema ends where the operator's name is expected."},
      {"(Tensor self) -> Tensor", "(() where the operator's name is expected"},
      {"mica::(Tensor self) -> Tensor", "where the operator's name after its namespace is expected"},
      {"add.(Tensor self) -> Tensor", "where the overload's name is expected"},
      {"add.default() -> ()", "Overload name (default)"},
      {"add -> Tensor", "(->) where `(` and the arguments is expected"},
      {"add(Tensor self", "The schema ends where `,` or `)` after an argument is expected."},
      {"add(Tensor self,) -> Tensor", "where a type is expected"},
      {"add(Tensor self) Tensor", "(Tensor) where `->` and the results is expected"},
      {"add(Tensor self) -> ", "The schema ends where a type is expected."},
      {"add(Tensor self) -> Tensor x y", "(y) where the end of the schema is expected"},
      {"add(Tensor self) -> (Tensor, ..., Tensor)", "`)` (`...` stands last) is expected"},
      {"add(..., Tensor self) -> Tensor", "`)` (`...` stands last) is expected"},
      {"add(*, Tensor a, *, Tensor b) -> ()", "a second `*`"},
      {"add(Tensor a, *) -> ()", "where `,` and a keyword-only argument is expected"},
      {"add(Foo a) -> ()", "Type (Foo) is unknown; a type such as"},
      {"add(tensor a) -> ()", "Type (tensor) is unknown; did you mean (Tensor)?"},
      {"add(Int a) -> ()", "did you mean (int)?"},
      {"add(MemoryFromat a) -> ()", "did you mean (MemoryFormat)?"},
      {"add(Dict(str) a) -> ()", "where `,` and the type of the values is expected"},
      {"add(Dict(str, int, int) a) -> ()", "where `)` is expected"},
      {"add(Dict a) -> ()", "where `(` and the element's type is expected"},
      {"add(__torch__.(a) b) -> ()", "(() where the rest of the class's name is expected"},
      {"add(a.b.2 c) -> ()", "the rest of the class's name is expected"},
      {"add(int?? a) -> ()", "optional already"},
      {"add(int[0] a) -> ()", "List size (0) is no whole number from 1 to 64."},
      {"add(int[1.5] a) -> ()", "List size (1.5)"},
      {"add(int[99999999999999999999] a) -> ()", "List size (99999999999999999999)"},
      {"add(int[x] a) -> ()", "(x) where `]` or the list's size is expected"},
      {"add(Tensor() a) -> ()", "an alias set such as `a` or `*` is expected"},
      {"add(Tensor(a!!) a) -> ()", "`)` after the alias annotation is expected"},
      {"add(Tensor(a -> ) a) -> ()", "an alias set such as"},
      {"add(Tensor?(a) x) -> ()", "(() where the argument's name is expected"},
      {"add(int a=None) -> ()",
       "Default (None) does not fit type (int); a type that takes None ends in `?`."},
      {"add(int a=1.5) -> ()", "Default (1.5) is a float where an int is expected."},
      {"add(int a=True) -> ()", "Default (True) does not fit type (int)."},
      {"add(int a=\"x\") -> ()", "Default (x) does not fit type (int)."},
      {"add(int a=Median) -> ()",
       "Default (Median) does not fit type (int); as a name it takes Mean or Sum."},
      {"add(bool a=1) -> ()", "Default (1) does not fit type (bool)."},
      {"add(str a=1) -> ()", "Default (1) does not fit type (str)."},
      {"add(Tensor a=1) -> ()", "Default (1) does not fit type (Tensor)."},
      {"add(ScalarType a=flaot) -> ()", "as a name it takes a dtype such as float or long."},
      {"add(int a=) -> ()", "where a default for type int is expected"},
      {"add(int a=-) -> ()", "a number after `-` is expected"},
      {"add(int a=9223372036854775808) -> ()",
       "Number (9223372036854775808) does not fit an int of 64 bits."},
      {"add(float a=1e999) -> ()", "Number (1e999) does not fit a float of 64 bits."},
      {"add(int[] a=1) -> ()", "(1) where `[` and the list's elements is expected"},
      {"add(int[] a=[1) -> ()", "where `,` or `]` in the list is expected"},
      {"add(int[] a=[1.5]) -> ()", "Default (1.5) is a float where an int is expected."},
      {"add(int[2][2] a=1) -> ()", "where `[` and the list's elements is expected"},
      {"add(int[][] a=[[1]]) -> ()", "(the default of a list of lists is empty)"},
      {"add(str a=\"x) -> ()", "A string begins here and has no closing quote."},
      {"add(str a=\"\\q\") -> ()", "The string has an escape that is unknown"},
      {"add(str a=\"\\400\") -> ()", "The string has an escape that is unknown"},
      {"add(Tensor self) -> Tensor;", "a character here that no schema has"},
  };
  for (const auto& c : kCases) {
    const std::string error = ErrorOf(c.text);
    INFO(error);
    CHECK(error.find(c.message) != std::string::npos);
  }
}

TEST_CASE("nesting is bounded", "[schema]") {
  const auto nested = [](int n) { return std::string(n, '(') + "int" + std::string(n, ')'); };
  const auto listed = [](int n) {
    std::string text = "int";
    for (int i = 0; i < n; ++i) text += "[]";
    return text;
  };
  CHECK(ParseType(nested(kMaxTypeDepth - 1)).ok());
  CHECK(ParseType(listed(kMaxTypeDepth - 1)).ok());
  for (int n : {kMaxTypeDepth, 1000000}) {
    for (const std::string& text : {nested(n), listed(n), "Dict(str, " + nested(n) + ")"}) {
      const auto type = ParseType(text);
      REQUIRE_FALSE(type.ok());
      CHECK(type.status().message().find("nested deeper than the limit (64)") != std::string::npos);
    }
  }
  // Depth counts both ways of growing together.
  const std::string mixed = std::string(40, '(') + listed(30) + std::string(40, ')');
  CHECK_FALSE(ParseType(mixed).ok());
}

TEST_CASE("a long message shows a short part of a long line", "[schema]") {
  const std::string error =
      ErrorOf(std::string(1 << 20, 'x') + "(Tensr a) -> ()" + std::string(1 << 20, ' '));
  CHECK(error.size() < 400);
}

double SecondsToParse(const std::string& text) {
  const auto begin = std::chrono::steady_clock::now();
  const bool ok = Parse(text).ok();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CHECK(ok);
  return took.count();
}

TEST_CASE("time grows with the text's length alone", "[schema]") {
  const auto arguments = [](int n) {
    std::string text = "f(Tensor a";
    for (int i = 0; i < n; ++i) text += ",\nTensor(a|b|c -> d)[] x, int[] y=[1, 2, 3]";
    return text + ") -> ()";
  };
  SecondsToParse(arguments(1000));
  const double small = SecondsToParse(arguments(2000));
  const double large = SecondsToParse(arguments(64000));
  INFO(small << " s and, 32 times as long, " << large << " s");
  CHECK(large < 32 * 10 * small + 0.05);  // a quadratic parser takes 1,024 times as long
}

TEST_CASE("mutated schemas are errors or print to what they are", "[schema]") {
  const char* const kSeeds[] = {
      "mica::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
      "aten::split(Tensor(a -> *) self, SymInt[2]? size=None, int[2] dim=[0, 1], float e=1e-05) -> "
      "Tensor(a)[]",
      "aten::items.str(Dict(str, (t, int)[])(a!) self, str s=\"\\n'\\\"\", bool b=False, ...) -> ((str, "
      "t)[], ...)",
      "f(__torch__.torch.classes.c10d.Work? w=None, *, Future(t) y, MemoryFormat m=contiguous_format) -> ...",
  };
  const std::string kBytes = "()[]?!|*,.=->:\"'\\ 019eTensorintf\n\x80\xff";
  std::mt19937 random(20261121);
  const auto below = [&](size_t n) { return random() % n; };
  int accepted = 0;
  for (int round = 0; round < 40000; ++round) {
    std::string text = kSeeds[below(4)];
    for (size_t edits = 1 + below(4); edits > 0; --edits) {
      const size_t at = below(text.size() + 1);
      switch (below(4)) {
        case 0:
          text.insert(at, 1, kBytes[below(kBytes.size())]);
          break;
        case 1:
          text.erase(at, 1 + below(8));
          break;
        case 2: {
          const size_t from = below(text.size() + 1);
          text.insert(at, text.substr(from, below(24)));
          break;
        }
        case 3:
          if (at < text.size()) text[at] = static_cast<char>(below(256));
      }
    }
    const auto schema = Parse(text);
    if (!schema.ok()) {
      CHECK(schema.status().message().find("column") != std::string::npos);
      continue;
    }
    ++accepted;
    const auto again = Parse(ToString(*schema));
    INFO(text);
    INFO(ToString(*schema));
    REQUIRE(again.ok());
    REQUIRE(*again == *schema);
    REQUIRE(ToString(*again) == ToString(*schema));
  }
  CHECK(accepted > 1000);  // else the second half of the loop has proved nothing
}

}  // namespace
}  // namespace mica::schema
