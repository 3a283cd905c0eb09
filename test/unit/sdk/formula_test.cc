// The functions of the formula language as a plugin's operators have them: they check what the host's check
// (kernels/formula.h), with its sentences.
#include <climits>
#include <string>

#include <mica/formula.h>
#include "test/support/mica_test.h"

namespace mica::formula {
namespace {

template <typename F>
std::string Raised(F&& f) {
  try {
    f();
  } catch (const plugin::Error& error) {
    return std::to_string(error.code) + " " + error.what();
  }
  return "";
}

TEST_CASE("wrap_dim of a plugin's operator takes the dimensions that there are", "[sdk]") {
  for (const int64_t ndim : {0, 1, 3}) {
    const int64_t n = ndim == 0 ? 1 : ndim;
    for (int64_t d = -n; d < n; ++d) CHECK(WrapDim(d, ndim) == (d < 0 ? d + n : d));
    for (const int64_t d : {-n - 1, n, INT64_MIN, INT64_MAX}) {
      INFO(d << " of " << ndim);
      CHECK(Raised([&] { WrapDim(d, ndim); }) ==
            std::to_string(MICA_ERROR_INDEX) + " The dimension (" + std::to_string(d) +
                ") is not one of the tensor: Dimension out of range (expected to be in range of [" +
                std::to_string(-n) + ", " + std::to_string(n - 1) + "], but got " + std::to_string(d) + ").");
    }
  }
}

TEST_CASE("sizes and counts of a plugin's operator raise beyond int64", "[sdk]") {
  const auto beyond = [](const char* what, int64_t a, int64_t b) {
    return std::to_string(MICA_ERROR_RUNTIME) + " The " + what + " of (" + std::to_string(a) + ") and (" +
           std::to_string(b) + ") is beyond the range of int64.";
  };
  CHECK(Product(Dims{3, 4, 5}) == 60);
  CHECK(Product(Dims{}) == 1);
  CHECK(Raised([] { Product(Dims{INT64_MAX, 2}); }) == beyond("product", INT64_MAX, 2));
  CHECK(Total(Dims{3, -4}) == -1);
  CHECK(Raised([] { Total(Dims{INT64_MAX, 1}); }) == beyond("sum", INT64_MAX, 1));
  CHECK(Abs(int64_t{-7}) == 7);
  CHECK(Raised([] { Abs(INT64_MIN); }) == beyond("difference", 0, INT64_MIN));
}

TEST_CASE("arithmetic of a plugin's formulas is the host's", "[sdk]") {
  namespace m = scalar_math;
  CHECK(m::Add(Scalar(INT64_MAX), Scalar(1)).ToInt() == INT64_MIN);
  CHECK(std::signbit(m::Neg(Scalar(0.0)).ToDouble()));
  CHECK(m::Remainder(-1e300, 7.0) == std::fmod(-1e300, 7.0) + 7.0);
  CHECK(m::Remainder(Scalar(-7), Scalar(3)).ToInt() == 2);
  CHECK(m::FloorDiv(Scalar(-7), Scalar(3)).ToInt() == -3);
  CHECK(m::Pow(Scalar(std::complex<double>(0, 0)), Scalar(0)).ToComplex() == 1.0);
  CHECK(Raised([] { m::FloorDiv(Scalar(1), Scalar(0)); }) ==
        std::to_string(MICA_ERROR_ZERO_DIVISION) +
            " Divisor is zero (0) in an integer division; expected another number.");
  CHECK(Raised([] { Scalar(1e300).ToInt(); }).find("does not fit a 64-bit integer") != std::string::npos);
  CHECK(Raised([] { Scalar(std::complex<double>(1, 2)).ToDouble(); }).find("imaginary part (2)") !=
        std::string::npos);
  const Scalar large(MicaScalar{MICA_SCALAR_INT, 1, {.i = -1}});
  CHECK(large.ToDouble() == 0x1p64);
  CHECK(large.ToAbi().reserved == 1);
  CHECK(Raised([&] { large.ToInt(); }).find("(18446744073709551615) does not fit") != std::string::npos);
}

TEST_CASE("a plugin's formula reads complex numbers, arguments and results", "[sdk]") {
  const std::complex<double> number(3, -2);
  MicaValue result{};  // what item() gives
  result.tag = MICA_VALUE_COMPLEX;
  result.u.complex_parts[0] = number.real(), result.u.complex_parts[1] = number.imag();
  CHECK(Unboxed<Scalar>::Take(result).ToComplex() == number);
  CHECK(Unboxed<Scalar>::From(Box(Scalar(number))).ToComplex() == number);
}

TEST_CASE("lists of a plugin's formulas are the host's", "[sdk]") {
  const Dims list{4, 5, 6};
  CHECK(At(list, -1) == 6);
  CHECK(Raised([&] { At(list, 3); }) ==
        std::to_string(MICA_ERROR_INDEX) + " Index (3) is out of range for a list of (3) values.");
  CHECK(Slice(list, -2, 9) == Dims{5, 6});
  CHECK(Offsets(list) == Dims{0, 4, 9});
  CHECK(Find(list, 6) == 2);
  CHECK_FALSE(Contains(list, 7));
  CHECK(Repeated(Dims{2}, 3, 1) == Dims{2, 2, 2});
  CHECK(KeptSizes(list, Dims{1}) == Dims{4, 1, 6});
}

}  // namespace
}  // namespace mica::formula
