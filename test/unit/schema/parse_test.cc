// Parsing and printing of schemas: what torch's grammar allows, its canonical form.
#include <string>
#include <vector>

#include "schema/schema.h"
#include "test/support/mica_test.h"

namespace mica::schema {
namespace {

FunctionSchema Must(std::string_view text) {
  auto schema = Parse(text);
  INFO(text);
  if (!schema.ok()) FAIL(std::string(schema.status().message()));
  return *schema;
}

TEST_CASE("a schema's parts are read", "[schema]") {
  const FunctionSchema s = Must("mica::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  CHECK(s.ns == "mica");
  CHECK(s.name == "add");
  CHECK(s.overload == "Tensor");
  REQUIRE(s.arguments.size() == 3);
  CHECK(s.arguments[0].name == "self");
  CHECK(s.arguments[0].type.is(TypeKind::kTensor));
  CHECK_FALSE(s.arguments[1].kwarg_only);
  CHECK(s.arguments[2].kwarg_only);
  REQUIRE(s.arguments[2].default_value);
  CHECK(s.arguments[2].default_value->kind == Literal::Kind::kInt);
  CHECK(s.arguments[2].default_value->i == 1);
  REQUIRE(s.returns.size() == 1);
  CHECK(s.returns[0].name.empty());
  CHECK(s.FullName() == "mica::add.Tensor");
  CHECK(s.NumPositional() == 2);
}

TEST_CASE("canonical texts print back unchanged", "[schema]") {
  for (const char* text : {
           "f() -> ()",
           "f(...) -> ...",
           "ns::f.o(str self, ...) -> str",
           "f(Tensor(a!) self) -> Tensor(a!)",
           "f(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
           "f(Tensor(a) a, Tensor(b) b, bool use_b) -> Tensor(b|a)",
           "f(Tensor[] self, *, Tensor(a!)[] out) -> ()",
           "f(int[](a!) self) -> int[](*)",
           "f(t(a)? optional) -> t(a)",
           "f(Dict(str, t)(a!) self, str(b -> *) key) -> t(*)?",
           "f(Dict(str, t) self) -> ((str, t)[])",
           "f((int, Tensor)[] inputs) -> (int, (str, tVal), Dict(int, tVal))",
           "f(Future(t) self, Await(t[]) a, RRef(t) r) -> Future(t)",
           "f(Tensor?[]? grads, SymInt[2]? s=None, int[1]? dim=None) -> (Tensor u, Tensor? v)",
           "f(__torch__.torch.classes.c10d.ProcessGroup[] group) -> __torch__.torch.classes.c10d.Work w",
           "f(int a, *, Tensor b, ...) -> (int, ...)",
           "f(bool[3] output_mask, Scalar?[] s, Any x=None) -> NoneType",
           "f(Device? d=None, Layout? l=None, MemoryFormat m=contiguous_format, ScalarType? t=float) -> ()",
           "f(Generator? g=None, Stream s, Storage t, QScheme q, Dimname[1] d) -> SymBool",
           "f(int reduction=Mean, float eps=1.0000000000000001e-05, float p=inf, float q=-inf, float n=nan) "
           "-> ()",
           "f(float a=0., float b=-0., float c=1e+22, float? d=1, Scalar e=0.125, Scalar g=True) -> ()",
           "f(int[2] a=1, SymInt[2] b=[1, 1], int[1] c=[0], int[] d=[0, 1], float[] e=[1., 2.5], bool[] "
           "g=[]) -> ()",
           "f(str a=\"\", str b=\"\\\"\\'\\\\\", str c=\" \\n\\t\\f\\v\", str? d=\"\\303\\244\", str[] e=[]) "
           "-> ()",
           "f(int a=-9223372036854775808, int b=9223372036854775807) -> ()",
           "f(Tensor[][] a, Tensor?[] b=[], int[]? c=[]) -> Tensor[][]",
       }) {
    CHECK(ToString(Must(text)) == text);
  }
}

TEST_CASE("other spellings take the canonical form", "[schema]") {
  const auto canonical = [](const char* text) { return ToString(Must(text)); };
  CHECK(canonical(" f (\n Tensor  self,\t* ,int x = 1\n)->Tensor ") ==
        "f(Tensor self, *, int x=1) -> Tensor");
  CHECK(canonical("f() -> (Tensor)") == "f() -> Tensor");
  CHECK(canonical("f(float x=1, float y=1e-5) -> ()") ==
        "f(float x=1., float y=1.0000000000000001e-05) -> ()");
  CHECK(canonical("f(str x='it') -> ()") == "f(str x=\"it\") -> ()");
  CHECK(canonical("f(str x='\\x41\\101') -> ()") == "f(str x=\"AA\") -> ()");
  CHECK(canonical("f(int[2] x=[0, 0]) -> ()") == "f(int[2] x=0) -> ()");
  CHECK(canonical("f(int[2] x=[0, 1]) -> ()") == "f(int[2] x=[0, 1]) -> ()");
  CHECK(canonical("f(SymInt[2] x=1) -> ()") == "f(SymInt[2] x=[1, 1]) -> ()");
  CHECK(canonical("f(int[1] x=0) -> ()") == "f(int[1] x=[0]) -> ()");
  CHECK(canonical("f(Tensor(a -> a) x) -> None") == "f(Tensor(a) x) -> NoneType");
  CHECK(canonical("f(float x=1e-999) -> ()") == "f(float x=0.) -> ()");
  CHECK(canonical("f(float x=5e-324) -> ()") == "f(float x=4.9406564584124654e-324) -> ()");
}

TEST_CASE("equality is deep and ignores positions", "[schema]") {
  const FunctionSchema s = Must("f(Tensor(a!) self, int[2] x=[0, 1], float e=nan) -> Tensor(a!)");
  CHECK(s == Must("f( Tensor(a!)  self,\n int[2] x=[0,1], float e=nan ) -> Tensor(a!)"));
  for (const char* other : {
           "g(Tensor(a!) self, int[2] x=[0, 1], float e=nan) -> Tensor(a!)",
           "f.o(Tensor(a!) self, int[2] x=[0, 1], float e=nan) -> Tensor(a!)",
           "f(Tensor(b!) self, int[2] x=[0, 1], float e=nan) -> Tensor(a!)",
           "f(Tensor(a) self, int[2] x=[0, 1], float e=nan) -> Tensor(a!)",
           "f(Tensor(a!) self, int[3] x=[0, 1], float e=nan) -> Tensor(a!)",
           "f(Tensor(a!) self, int[2] y=[0, 1], float e=nan) -> Tensor(a!)",
           "f(Tensor(a!) self, int[2] x=[0, 2], float e=nan) -> Tensor(a!)",
           "f(Tensor(a!) self, *, int[2] x=[0, 1], float e=nan) -> Tensor(a!)",
           "f(Tensor(a!) self, int[2] x=[0, 1], float e=0.) -> Tensor(a!)",
           "f(Tensor(a!) self, int[2] x=[0, 1], float e=nan) -> Tensor",
       }) {
    INFO(other);
    CHECK_FALSE(s == Must(other));
    CHECK(Hash(s) != Hash(Must(other)));
  }
  CHECK_FALSE(Must("f(float x=0.) -> ()") == Must("f(float x=-0.) -> ()"));
}

TEST_CASE("the hash is FNV-1a of the canonical text and never changes", "[schema]") {
  CHECK(HashText("") == UINT64_C(0xcbf29ce484222325));
  CHECK(HashText("a") == UINT64_C(0xaf63dc4c8601ec8c));
  CHECK(HashText("foobar") == UINT64_C(0x85944171f73967e8));
  const char* text =
      "mica::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)";
  CHECK(Hash(Must(text)) == HashText(text));
}

TEST_CASE("positions point at the types", "[schema]") {
  auto s = Parse("f(Tensor self,\n  int x=1) -> (Tensor a,\n Tensor b)", Source{"o.yaml", 7, 10});
  REQUIRE(s.ok());
  CHECK(s->arguments[0].position.line == 7);
  CHECK(s->arguments[0].position.column == 12);
  CHECK(s->arguments[1].position.line == 8);
  CHECK(s->arguments[1].position.column == 3);
  CHECK(s->returns[1].position.line == 9);
  CHECK(s->returns[1].position.column == 2);
}

TEST_CASE("a type alone is read", "[schema]") {
  const auto type = ParseType("Tensor(a!)[]?");
  REQUIRE(type.ok());
  CHECK(type->ToString() == "Tensor(a!)[]?");
  CHECK(type->ToString(/*with_alias=*/false) == "Tensor[]?");
  CHECK_FALSE(ParseType("Tensor x").ok());
}

TEST_CASE("type queries look through optional and list", "[schema]") {
  const auto type = [](const char* text) { return ParseType(text).value(); };
  CHECK(type("Tensor?").is_tensor());
  CHECK_FALSE(type("Tensor[]").is_tensor());
  CHECK(type("Tensor?[]").is_tensor_list());
  CHECK(type("Tensor[]?").is_tensor_list());
  CHECK_FALSE(type("int[]").is_tensor_list());
  CHECK(type("SymInt[2]?").is_list_of(TypeKind::kSymInt));
  CHECK(type("SymInt[2]?").unwrapped().list_size == 2);
  CHECK(type("Dict(str, (int, Tensor)[])").has_tensor());
  CHECK_FALSE(type("Dict(str, int)").has_tensor());
  REQUIRE(type("Tensor(a!)[]?").find_alias());
  CHECK(type("Tensor(a!)[]").find_alias()->is_write);
  CHECK(type("int[]").find_alias() == nullptr);
  CHECK(type("Tensor(a|* -> b)").find_alias()->is_wildcard());
}

}  // namespace
}  // namespace mica::schema
