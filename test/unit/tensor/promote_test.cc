// Dtypes, numbers and promotion, held to torch's tables of all pairs.
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tensor/promote.h"
#include "test/support/mica_test.h"

namespace mica {
namespace {

#include "test/unit/tensor/torch_golden.inc"

// Where torch refuses to promote uint16, uint32 and uint64: the least integer dtype that
// holds both, or the complex one; false where there is none.
bool HoldsBoth(DType common, DType a, DType b) {
  const auto bits = [](DType d) { return d == DType::kBool ? 1 : static_cast<int>(8 * ItemSize(d)); };
  const auto holds = [&](DType outer, DType inner) {
    if (Kind(outer) == DTypeKind::kSigned)
      return bits(outer) - 1 >= bits(inner) - (Kind(inner) == DTypeKind::kSigned ? 1 : 0);
    return Kind(inner) != DTypeKind::kSigned && bits(outer) >= bits(inner);
  };
  return holds(common, a) && holds(common, b);
}

DType LeastThatHolds(DType a, DType b) {
  for (const DType d : {DType::kU16, DType::kI16, DType::kU32, DType::kI32, DType::kU64, DType::kI64})
    if (HoldsBoth(d, a, b)) return d;
  return DType::kBool;
}

TEST_CASE("all pairs of dtypes promote as in torch", "[tensor]") {
  for (int a = 0; a < kDTypeCount; ++a) {
    for (int b = 0; b < kDTypeCount; ++b) {
      INFO(Name(static_cast<DType>(a)) << " with " << Name(static_cast<DType>(b)));
      const DType x = static_cast<DType>(a), y = static_cast<DType>(b);
      const bool integers = !IsFloating(x) && !IsFloating(y) && !IsComplex(x) && !IsComplex(y);
      if (kPromote[a][b] < 0 && integers && LeastThatHolds(x, y) != DType::kBool) {
        CHECK(PromoteTypes(x, y) == LeastThatHolds(x, y));
      } else if (kPromote[a][b] < 0 && !IsFloating(x) && !IsFloating(y) && !integers) {
        CHECK(PromoteTypes(x, y) == (IsComplex(x) ? x : y));
      } else if (kPromote[a][b] < 0) {
        MICA_REQUIRE_ERROR(PromoteTypes(static_cast<DType>(a), static_cast<DType>(b)), "no common dtype");
      } else {
        CHECK(static_cast<int>(PromoteTypes(static_cast<DType>(a), static_cast<DType>(b))) == kPromote[a][b]);
      }
      CHECK(CanCast(static_cast<DType>(a), static_cast<DType>(b)) == kCanCast[a][b]);
    }
  }
}

TEST_CASE("categories of operands promote as in torch", "[tensor]") {
  for (const ResultCase& c : kResultCases) {
    INFO("dim " << int(c.dim) << ", 0-d " << int(c.zero) << ", number " << int(c.number));
    const auto result = [&] {
      ResultType r;
      if (c.dim >= 0) r.AddDim(static_cast<DType>(c.dim));
      if (c.zero >= 0) r.AddZeroDim(static_cast<DType>(c.zero));
      if (c.number >= 0) r.AddNumber(static_cast<DType>(c.number));
      return r.dtype();
    };
    // bool with an unsigned 0-d tensor, which torch refuses.
    if (c.result < 0 && c.dim == 0 && c.zero > 0 && !IsFloating(static_cast<DType>(c.zero)))
      CHECK(static_cast<int>(result()) == c.zero);
    else if (c.result < 0)
      CHECK_THROWS_AS(result(), Error);
    else
      CHECK(static_cast<int>(result()) == c.result);
  }
}

TEST_CASE("tensors and numbers give their category", "[tensor]") {
  const Tensor dim = EmptyTensor({2}, DType::kI32, Device{});
  const Tensor zero = EmptyTensor({}, DType::kF64, Device{});
  CHECK(ResultType().Add(dim).Add(zero).dtype() == DType::kF64);
  CHECK(ResultType().Add(dim).Add(Scalar(2.5)).dtype() == DType::kF32);
  CHECK(ResultType().Add(dim).Add(WrappedNumber(Scalar(2.5))).dtype() == DType::kF32);
  CHECK(ResultType().Add(dim).Add(Scalar(7)).dtype() == DType::kI32);
  CHECK(ResultType().Add(WrappedNumber(Scalar(std::complex<double>(0, 1)))).Add(dim).dtype() == DType::kC64);
  SetDefaultDType(DType::kF64);
  CHECK(ResultType().Add(dim).Add(Scalar(2.5)).dtype() == DType::kF64);
  CHECK(Scalar(std::complex<double>(1, 2)).DefaultDType() == DType::kC128);
  SetDefaultDType(DType::kF32);
  MICA_REQUIRE_ERROR((SetDefaultDType(DType::kI32), 0), "this dtype is (int32)");
}

TEST_CASE("narrow floats round as in torch", "[tensor]") {
  for (const NarrowCase& c : kNarrowCases) {
    const float value = std::bit_cast<float>(c.bits);
    INFO("float bits " << c.bits << ", value " << value);
    if (std::isnan(value)) {  // torch's own paths differ in sign and payload
      CHECK(std::isnan(static_cast<float>(Half(value))));
      CHECK(std::isnan(static_cast<float>(BFloat16(value))));
      CHECK(std::isnan(static_cast<float>(Float8E4M3FN(value))));
      CHECK(std::isnan(static_cast<float>(Float8E5M2(value))));
      continue;
    }
    CHECK(Half(value).bits == c.half);
    CHECK(BFloat16(value).bits == c.bfloat);
    CHECK(int{Float8E4M3FN(value).bits} == int{c.e4m3});
    CHECK(int{Float8E5M2(value).bits} == int{c.e5m2});
  }
}

template <typename T, typename B>
void CheckRoundTrip(uint32_t count) {
  for (uint32_t b = 0; b < count; ++b) {
    const float wide = T::FromBits(static_cast<B>(b));
    if (std::isnan(wide))
      CHECK(std::isnan(static_cast<float>(T(wide))));
    else if (T(wide).bits != b)
      FAIL("bits " << b << " come back as " << T(wide).bits);
  }
}

TEST_CASE("every narrow float survives the way through float", "[tensor]") {
  CheckRoundTrip<Half, uint16_t>(65536);
  CheckRoundTrip<BFloat16, uint16_t>(65536);
  CheckRoundTrip<Float8E4M3FN, uint8_t>(256);
  CheckRoundTrip<Float8E5M2, uint8_t>(256);
  CHECK(static_cast<float>(Half::FromBits(1)) == std::ldexp(1.0f, -24));
  CHECK(static_cast<float>(Float8E4M3FN::FromBits(0x7e)) == 448.0f);
}

TEST_CASE("dtypes have names, sizes and DLPack codes both ways", "[tensor]") {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType d = static_cast<DType>(i);
    CHECK(DTypeFromName(Name(d)) == d);
    CHECK(DTypeFromDL(ToDL(d)) == d);
    CHECK(VisitDType(d, []<typename T>() { return static_cast<int64_t>(sizeof(T)); }) == ItemSize(d));
  }
  CHECK(DTypeFromName("long") == DType::kI64);
  CHECK(DTypeFromName("half") == DType::kF16);
  CHECK_FALSE(DTypeFromName("float33").has_value());
  CHECK_FALSE(DTypeFromDL({2, 32, 4}).has_value());
}

TEST_CASE("numbers convert, print and refuse", "[tensor]") {
  CHECK(Scalar(true).ToString() == "True");
  CHECK(Scalar(-3).ToString() == "-3");
  CHECK(Scalar(0.5).ToString() == "0.5");
  CHECK(Scalar(1.0).ToString() == "1.0");
  CHECK(Scalar(1e-5).ToString() == "1e-05");
  CHECK(Scalar(1e16).ToString() == "1e+16");
  CHECK(Scalar(std::complex<double>(1, 2)).ToString() == "(1+2j)");
  CHECK(Scalar(std::complex<double>(0, -2)).ToString() == "-2j");
  CHECK(Scalar(-2.7).ToInt() == -2);
  CHECK(Scalar(300).To<uint8_t>() == 44);
  CHECK(Scalar(2.5).To<Half>().bits == 0x4100);
  CHECK(Scalar(std::complex<double>(3, 0)).ToDouble() == 3);
  MICA_REQUIRE_ERROR(Scalar(std::complex<double>(1, 2)).ToDouble(), "imaginary part (2)");
  MICA_REQUIRE_ERROR(Scalar(1e300).ToInt(), "does not fit a 64-bit integer");
  MICA_REQUIRE_ERROR(Scalar(std::nan("")).ToInt(), "(nan)");
  for (const Scalar& s : {Scalar(true), Scalar(-3), Scalar(0.5), Scalar(std::complex<double>(1, 2))}) {
    const Scalar back = Scalar::FromAbi(s.ToAbi());
    CHECK(back.tag() == s.tag());
    CHECK(back.Equals(s));
  }
}

TEST_CASE("devices parse and print", "[tensor]") {
  CHECK(Device::Parse("cpu") == Device{});
  CHECK(Device::Parse("meta").is_meta());
  const int index = RegisterBackendName("acme.npu");
  CHECK(RegisterBackendName("acme.npu") == index);
  CHECK(Device::Parse("acme.npu:3").index == 3);
  CHECK(Device::Parse("acme.npu:3").ToString() == "acme.npu:3");
  CHECK(BackendIndex("none") == -1);
  MICA_REQUIRE_ERROR(Device::Parse("gpu:0"), "the known ones are: cpu, meta");
  MICA_REQUIRE_ERROR(Device::Parse("cpu:x"), "no number");
  CHECK(Device::Parse("cpu:1") == Device{});  // any number is the CPU, as in torch
  MICA_REQUIRE_ERROR(RegisterBackendName("a:b"), "is not made of");
  // In a child, because the table of this process serves other tests.
  const pid_t child = fork();
  if (child == 0) {
    for (int i = BackendNameCount(); i < keys::kBackendCount; ++i)
      RegisterBackendName("vendor" + std::to_string(i));
    try {
      RegisterBackendName("one.more");
    } catch (const Error& e) {
      _exit(e.message().find("finds all 22 places taken") != std::string::npos ? 0 : 2);
    }
    _exit(1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace
}  // namespace mica
