// Questions about a parsed schema that the other modules ask, and Validate.
#include <string>

#include "schema/schema.h"
#include "test/support/mica_test.h"

namespace mica::schema {
namespace {

FunctionSchema Must(std::string_view text) { return Parse(text).value(); }

TEST_CASE("arguments are found by name", "[schema]") {
  const FunctionSchema s = Must("add(Tensor self, int[2]? size, *, Scalar alpha=1) -> Tensor");
  CHECK(s.FindArgument("self") == 0);
  CHECK(s.FindArgument("alpha") == 2);
  CHECK(s.FindArgument("beta") == -1);
  CHECK(s.arguments[1].list_size() == 2);
  CHECK(s.arguments[0].list_size() == 0);
}

TEST_CASE("out, in-place and view forms are told apart", "[schema]") {
  const FunctionSchema functional = Must("add.Tensor(Tensor self, Tensor other) -> Tensor");
  CHECK_FALSE(functional.is_mutable());
  CHECK_FALSE(functional.is_view());
  CHECK_FALSE(functional.is_out());
  CHECK_FALSE(functional.is_inplace());

  const FunctionSchema inplace = Must("add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)");
  CHECK(inplace.is_mutable());
  CHECK(inplace.is_inplace());
  CHECK_FALSE(inplace.is_out());
  CHECK_FALSE(inplace.is_view());
  CHECK(IsMutable(inplace.arguments[0]));
  CHECK_FALSE(IsMutable(inplace.arguments[1]));
  CHECK_FALSE(Must("__iadd__(Tensor(a!) self, Tensor other) -> Tensor(a!)").is_inplace());

  const FunctionSchema out = Must("add.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)");
  CHECK(out.is_out());
  CHECK_FALSE(out.is_inplace());
  CHECK(IsOut(out.arguments[2]));
  CHECK_FALSE(IsOut(out.arguments[0]));
  CHECK(IsOut(Must("f(Tensor[] self, *, Tensor(a!)[] out) -> ()").arguments[1]));
  CHECK_FALSE(IsOut(Must("f(*, int[](a!) out) -> ()").arguments[0]));

  CHECK(Must("t(Tensor(a) self) -> Tensor(a)").is_view());
  CHECK(Must("split(Tensor(a -> *) self, int n) -> Tensor(a)[]").is_view());
  CHECK_FALSE(Must("f(Tensor(a) self) -> Tensor(b)").is_view());
}

TEST_CASE("a result names the argument that it aliases", "[schema]") {
  const FunctionSchema several =
      Must("f(Tensor self, *, Tensor(a!) u, Tensor(b!) v) -> (Tensor(b!), Tensor(a!), Tensor, Tensor(*))");
  CHECK(several.ReturnsAliasOfArgument(0) == 2);
  CHECK(several.ReturnsAliasOfArgument(1) == 1);
  CHECK(several.ReturnsAliasOfArgument(2) == -1);
  CHECK(several.ReturnsAliasOfArgument(3) == -1);
  CHECK(Must("f(Tensor(a) x, Tensor(b) y) -> Tensor(b|a)").ReturnsAliasOfArgument(0) == 0);
  CHECK(Must("f(Tensor(a) x, Tensor(b) y) -> Tensor(b)").ReturnsAliasOfArgument(0) == 1);
  CHECK(Must("f(Tensor(a! -> b) x) -> Tensor(b)").ReturnsAliasOfArgument(0) == 0);
  CHECK(Must("f(Tensor(*) x) -> Tensor(*)").ReturnsAliasOfArgument(0) == -1);
}

TEST_CASE("an object's type has the name that its objects give, in Mica's spelling and in torch's",
          "[schema]") {
  const FunctionSchema s = Must(
      "f(acme.Thing a, __torch__.torch.classes.acme.Thing b, acme.Thing? c=None, acme.Thing[] d, Tensor e) "
      "-> ()");
  CHECK(s.arguments[0].type.object_name() == "acme.Thing");
  CHECK(s.arguments[1].type.object_name() == "acme.Thing");
  CHECK(s.arguments[2].type.object_name() == "acme.Thing");
  CHECK(s.arguments[3].type.object_name().empty());
  CHECK(s.arguments[4].type.object_name().empty());
  CHECK_FALSE(Parse("f(acme.Thing a=1) -> ()").ok());
  CHECK_FALSE(Parse("f(acme.Thing a=None) -> ()").ok());
}

std::string ErrorOf(std::string_view text) {
  const absl::Status status = Validate(Must(text), Source{"o.yaml", 3, 5});
  return std::string(status.message());
}

TEST_CASE("Validate tells what an operator may not have", "[schema]") {
  CHECK(Validate(Must("add.out(Tensor self, int a=1, *, Tensor b, Tensor(a!) out) -> Tensor(a!)")).ok());
  CHECK(ErrorOf("f(int x, int y, int x) -> ()").find("o.yaml:1:17: Argument name (x) stands twice.") == 0);
  CHECK(ErrorOf("f(int x=1, int y) -> ()")
            .find("Positional argument (y) has no default but follows argument (x)") != std::string::npos);
  CHECK(ErrorOf("f(int x) -> (int a, int a)").find("Result name (a) stands twice.") != std::string::npos);
  CHECK(ErrorOf("f(Tensor(a) x) -> Tensor(b)").find("alias set (b), which no argument is in") !=
        std::string::npos);
  CHECK(ErrorOf("f(acme.Thing(a!) x) -> ()").find("Argument (x) is an object and has an alias annotation") !=
        std::string::npos);
  CHECK(ErrorOf("f(Tensor(a) x) -> acme.Thing(a)").find("The result is an object and has an alias") !=
        std::string::npos);
  CHECK(ErrorOf("f_(Tensor x) -> Tensor").find("o.yaml:3:5: Operator (f_) is in-place by its name") == 0);
  CHECK(ErrorOf("f.out(Tensor x, Tensor(a!) out) -> Tensor(a!)").find("out form by its name") !=
        std::string::npos);
}

}  // namespace
}  // namespace mica::schema
