// Which numbers a dtype holds, at the ends of every dtype.
#include "tensor/number_range.h"

#include <cmath>
#include <limits>

#include "test/support/mica_test.h"

namespace mica {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("Integers hold their own range, and of negative numbers what wraps once") {
  for (const DType d : {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kU32, DType::kI32}) {
    const bool is_signed = Kind(d) == DTypeKind::kSigned;
    const int64_t end = int64_t{1} << (ItemSize(d) * 8 - is_signed), least = is_signed ? -end : 1 - end;
    CAPTURE(Name(d));
    CHECK(HoldsNumber(d, Scalar(end - 1)));
    CHECK(!HoldsNumber(d, Scalar(end)));
    CHECK(HoldsNumber(d, Scalar(least)));
    CHECK(!HoldsNumber(d, Scalar(least - 1)));
    CHECK(HoldsNumber(d, Scalar(static_cast<double>(end) - 1.5)));
    CHECK(!HoldsNumber(d, Scalar(static_cast<double>(end) - 0.5)));
    CHECK(HoldsNumber(d, Scalar(-1.0)) == is_signed);
    for (const double x : {kInfinity, -kInfinity, std::nan("")}) CHECK(!HoldsNumber(d, Scalar(x)));
    CHECK(!HoldsNumber(d, Scalar(std::complex<double>(0, 1))));
    CHECK(HoldsNumber(d, Scalar(std::complex<double>(2, 0))));
  }
  CHECK(!HoldsNumber(DType::kI64, Scalar(0x1p63)));
  CHECK(HoldsNumber(DType::kI64, Scalar(-0x1p63)));
  CHECK(HoldsNumber(DType::kU64, Scalar(~uint64_t{0})));
  CHECK(!HoldsNumber(DType::kI64, Scalar(~uint64_t{0})));
}

TEST_CASE("Floats hold infinities, NaN and finite numbers up to their largest") {
  struct Row {
    DType dtype;
    double largest;
  };
  for (const Row& row : {Row{DType::kF16, 65504}, Row{DType::kBF16, 0x1.FEp127},
                         Row{DType::kF32, std::numeric_limits<float>::max()},
                         Row{DType::kC64, std::numeric_limits<float>::max()}}) {
    CAPTURE(Name(row.dtype));
    for (const double sign : {1.0, -1.0}) {
      CHECK(HoldsNumber(row.dtype, Scalar(sign * row.largest)));
      CHECK(!HoldsNumber(row.dtype, Scalar(sign * row.largest * 1.01)));
      CHECK(HoldsNumber(row.dtype, Scalar(sign * kInfinity)));
    }
    CHECK(HoldsNumber(row.dtype, Scalar(std::nan(""))));
    CHECK(HoldsNumber(row.dtype, Scalar(std::complex<double>(0, 1))) == IsComplex(row.dtype));
  }
  CHECK(HoldsNumber(DType::kF64, Scalar(1e300)));
  CHECK(HoldsNumber(DType::kBool, Scalar(std::complex<double>(0, 1))));
}

}  // namespace
}  // namespace mica
