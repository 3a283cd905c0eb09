// Default literals become Values of the argument's type.
#include <cmath>

#include "schema/default.h"
#include "tensor/error.h"
#include "test/support/mica_test.h"

namespace mica::schema {
namespace {

Value DefaultOf(const std::string& argument) {
  return Default(Parse("f(" + argument + ") -> ()").value().arguments[0]);
}

TEST_CASE("defaults take their argument's type", "[schema]") {
  CHECK(DefaultOf("int x=3") == Value(3));
  CHECK(DefaultOf("SymInt x=-3") == Value(-3));
  CHECK(DefaultOf("int reduction=Mean") == Value(1));
  CHECK(DefaultOf("int reduction=Sum") == Value(2));
  CHECK(DefaultOf("float x=1e-05") == Value(1e-05));
  CHECK(DefaultOf("float x=2") == Value(2.0));
  CHECK(DefaultOf("float? x=2") == Value(2.0));
  CHECK(std::isnan(DefaultOf("float x=nan").ToDouble()));
  CHECK(DefaultOf("float x=-inf") == Value(-INFINITY));
  CHECK(DefaultOf("bool x=True") == Value(true));
  CHECK(DefaultOf("bool x=False") == Value(false));
  CHECK(DefaultOf("Scalar x=1") == Value(Scalar(1)));
  CHECK(DefaultOf("Scalar x=0.5") == Value(Scalar(0.5)));
  CHECK(DefaultOf("Scalar x=True") == Value(Scalar(true)));
  CHECK(DefaultOf("str x='a\\n\"b'") == Value("a\n\"b"));
  CHECK(DefaultOf("str? x=\"none\"") == Value("none"));
  CHECK(DefaultOf("Tensor? x=None").is_none());
  CHECK(DefaultOf("int[1]? x=None").is_none());
  CHECK(DefaultOf("Generator? x=None").is_none());
}

TEST_CASE("list defaults", "[schema]") {
  CHECK(DefaultOf("int[2] x=1") == Value(IntSpan{1, 1}));
  CHECK(DefaultOf("SymInt[3] x=0") == Value(IntSpan{0, 0, 0}));
  CHECK(DefaultOf("int[1] x=7") == Value(IntSpan{7}));
  CHECK(DefaultOf("int[] x=[0, 1]") == Value(IntSpan{0, 1}));
  CHECK(DefaultOf("int[] x=[]") == Value(IntSpan()));
  CHECK(DefaultOf("float[] x=[1, 2.5]") == Value(std::vector<double>{1, 2.5}));
  CHECK(DefaultOf("bool[2] x=True") == Value::Bools(std::vector<uint8_t>{1, 1}));
  CHECK(DefaultOf("Scalar[] x=[1, 2.5]") == Value(std::vector<Scalar>{Scalar(1), Scalar(2.5)}));
  CHECK(DefaultOf("Tensor?[] x=[]") == Value(std::vector<Tensor>()));
}

TEST_CASE("defaults by name", "[schema]") {
  CHECK(DefaultOf("ScalarType x=float") == Value(DType::kF32));
  CHECK(DefaultOf("ScalarType? x=long") == Value(DType::kI64));
  CHECK(DefaultOf("ScalarType? x=bfloat16") == Value(DType::kBF16));
  CHECK(DefaultOf("ScalarType? x=4") == Value(DType::kI64));  // torch's number
  CHECK(DefaultOf("ScalarType? x=15") == Value(DType::kBF16));
  CHECK(DefaultOf("ScalarType? x=23") == Value(DType::kF8E5M2));
  CHECK(DefaultOf("Layout x=strided") == Value(Layout::kStrided));
  CHECK(DefaultOf("MemoryFormat x=contiguous_format") == Value(MemoryFormat::kContiguous));
  CHECK(DefaultOf("MemoryFormat x=preserve_format") == Value(MemoryFormat::kPreserve));
  CHECK(DefaultOf("MemoryFormat x=2") == Value(MemoryFormat::kChannelsLast));
  CHECK(DefaultOf("Device x=\"cpu\"") == Value(Device{}));
}

TEST_CASE("what has no value is an error that names the argument", "[schema]") {
  CHECK_THROWS_WITH(DefaultOf("int x"), Catch::Contains("Argument (x) has no default."));
  CHECK_THROWS_WITH(DefaultOf("ScalarType x=99"), Catch::Contains("Default (99) of argument (x)"));
  CHECK_THROWS_WITH(DefaultOf("MemoryFormat x=9"), Catch::Contains("Default (9) of argument (x)"));
  CHECK_THROWS_AS(DefaultOf("Device x=\"nosuch\""), Error);
  CHECK_THROWS_WITH(DefaultOf("str[] x=[\"a\"]"), Catch::Contains("has type (str[]), which no Value holds"));
}

}  // namespace
}  // namespace mica::schema
