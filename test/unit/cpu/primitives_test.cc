// Every primitive of the real lanes against a scalar reference, at sizes 0 to 70
// and whole blocks, and never a byte past the end.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "plugins/cpu/engine/lanes/lanes.h"
#include "test/support/mica_test.h"

namespace mica::cpu {
namespace {

template <class T>
constexpr int32_t kDtype = std::is_same_v<T, uint8_t>    ? MICA_U8
                           : std::is_same_v<T, int8_t>   ? MICA_I8
                           : std::is_same_v<T, uint16_t> ? MICA_U16
                           : std::is_same_v<T, int16_t>  ? MICA_I16
                           : std::is_same_v<T, uint32_t> ? MICA_U32
                           : std::is_same_v<T, int32_t>  ? MICA_I32
                           : std::is_same_v<T, uint64_t> ? MICA_U64
                           : std::is_same_v<T, int64_t>  ? MICA_I64
                           : std::is_same_v<T, float>    ? MICA_F32
                                                         : MICA_F64;

// Specials first, so that short blocks see them; then ordinary values.
template <class T>
std::vector<T> Values(uint64_t seed, int64_t n) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {T{0},          T{1}, T(-1), Limits::max(), Limits::lowest(),
                           Limits::min(), T{2}, T{3},  T(-7)};
  if constexpr (std::is_floating_point_v<T>) {
    for (const T x : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -T{0},
                      Limits::denorm_min(), T{0.5}, T{1.5}, T{-2.5}}) {
      values.push_back(x);
    }
  }
  std::mt19937_64 random(seed);
  while (static_cast<int64_t>(values.size()) < n) {
    const int64_t raw = static_cast<int64_t>(random());
    if constexpr (std::is_floating_point_v<T>) {
      values.push_back(static_cast<T>(raw % 2000) / 64);
    } else {
      values.push_back(static_cast<T>(raw % 3 == 0 ? raw >> 8 : raw % 11));
    }
  }
  std::shuffle(values.begin(), values.end(), random);
  values.resize(static_cast<size_t>(n));
  return values;
}

template <class T>
bool SameLane(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b && std::signbit(a) == std::signbit(b);
  }
  return a == b;
}

// Runs the primitive at every size and compares each lane with expect(x, y, z).
template <class R, class T, class Expect>
void CheckLanes(int opcode, const char* name, Expect expect, bool nonzero_divisor = false) {
  const Primitive run = LaneTable(kDtype<T>)->at[opcode];
  INFO(name << ", dtype " << kDtype<T>);
  REQUIRE(run != nullptr);
  std::vector<int64_t> sizes = {kBlock / 2, kBlock};
  for (int64_t n = 0; n <= 70; ++n) sizes.push_back(n);
  int64_t wrong = 0;
  for (const int64_t n : sizes) {
    const std::vector<T> x = Values<T>(static_cast<uint64_t>(n) + 1, n);
    std::vector<T> y = Values<T>(static_cast<uint64_t>(n) + 1001, n);
    const std::vector<T> z = Values<T>(static_cast<uint64_t>(n) + 2001, n);
    if (nonzero_divisor) {
      for (T& v : y) v = v == 0 ? T{1} : v;
    }
    std::vector<R> got(static_cast<size_t>(n) + 1, R{85});
    CHECK(run(got.data(), x.data(), y.data(), z.data(), n) == kFlagNone);
    CHECK(got[static_cast<size_t>(n)] == R{85});
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
      const R want = static_cast<R>(expect(x[i], y[i], z[i]));
      if (!SameLane(got[i], want) && ++wrong < 4) {
        UNSCOPED_INFO("of (" << +x[i] << ", " << +y[i] << ", " << +z[i] << ") is " << +got[i] << ", not "
                             << +want);
      }
    }
  }
  CHECK(wrong == 0);
}

template <class T>
void CheckComparisons() {
  using M = uint8_t;
  CheckLanes<M, T>(MICA_OP_EQ, "eq", [](T a, T b, T) { return a == b; });
  CheckLanes<M, T>(MICA_OP_NE, "ne", [](T a, T b, T) { return a != b; });
  CheckLanes<M, T>(MICA_OP_LT, "lt", [](T a, T b, T) { return a < b; });
  CheckLanes<M, T>(MICA_OP_LE, "le", [](T a, T b, T) { return a <= b; });
  CheckLanes<M, T>(MICA_OP_GT, "gt", [](T a, T b, T) { return a > b; });
  CheckLanes<M, T>(MICA_OP_GE, "ge", [](T a, T b, T) { return a >= b; });
  CheckLanes<M, T>(MICA_OP_TO_MASK, "to_mask", [](T a, T, T) { return a != 0; });
  CheckLanes<T, T>(kOpCopy, "copy", [](T a, T, T) { return a; });
}

// Arithmetic in 128 bits; the cast to T wraps.
using Big = __int128;

Big FloorDivide(Big a, Big b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

Big Power(Big a, Big b, int bits) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  const Big mask = (Big{1} << bits) - 1;
  Big result = 1;
  a &= mask;
  for (; b > 0; b >>= 1) {
    if (b & 1)
      result =
          static_cast<Big>(static_cast<unsigned __int128>(result) * static_cast<unsigned __int128>(a)) & mask;
    a = static_cast<Big>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(a)) & mask;
  }
  return result;
}

Big Gcd(Big a, Big b) {
  a = a < 0 ? -a : a;
  b = b < 0 ? -b : b;
  while (b != 0) {
    const Big rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

template <class T>
void CheckIntegers() {
  constexpr int kBits = sizeof(T) * 8;
  CheckComparisons<T>();
  const auto two = [](int opcode, const char* name, Big (*f)(Big, Big), bool divides = false) {
    CheckLanes<T, T>(
        opcode, name, [f](T a, T b, T) { return f(a, b); }, divides);
  };
  two(MICA_OP_ADD, "add", [](Big a, Big b) { return a + b; });
  two(MICA_OP_SUB, "sub", [](Big a, Big b) { return a - b; });
  CheckLanes<T, T>(MICA_OP_MUL, "mul", [](T a, T b, T) {
    return static_cast<T>(static_cast<unsigned __int128>(Big{a}) * static_cast<unsigned __int128>(Big{b}));
  });
  two(MICA_OP_FLOOR_DIV, "floor_div", FloorDivide, true);
  two(
      MICA_OP_TRUNC_DIV, "trunc_div", [](Big a, Big b) { return a / b; }, true);
  two(
      MICA_OP_REMAINDER, "remainder", [](Big a, Big b) { return a - FloorDivide(a, b) * b; }, true);
  two(
      MICA_OP_FMOD, "fmod", [](Big a, Big b) { return a % b; }, true);
  two(MICA_OP_MIN, "min", [](Big a, Big b) { return a < b ? a : b; });
  two(MICA_OP_MAX, "max", [](Big a, Big b) { return a > b ? a : b; });
  two(MICA_OP_FMIN, "fmin", [](Big a, Big b) { return a < b ? a : b; });
  two(MICA_OP_FMAX, "fmax", [](Big a, Big b) { return a > b ? a : b; });
  two(MICA_OP_AND, "and", [](Big a, Big b) { return a & b; });
  two(MICA_OP_OR, "or", [](Big a, Big b) { return a | b; });
  two(MICA_OP_XOR, "xor", [](Big a, Big b) { return a ^ b; });
  two(MICA_OP_SHL, "shl", [](Big a, Big b) {
    return b < 0 || b >= kBits ? Big{0}
                               : static_cast<Big>(static_cast<unsigned __int128>(a) << static_cast<int>(b));
  });
  two(MICA_OP_SHR, "shr", [](Big a, Big b) {
    return b < 0 || b >= kBits ? (a < 0 ? Big{-1} : Big{0}) : a >> static_cast<int>(b);
  });
  two(MICA_OP_GCD, "gcd", Gcd);
  CheckLanes<T, T>(MICA_OP_POW, "pow", [](T a, T b, T) { return Power(a, b, kBits); });
  CheckLanes<T, T>(MICA_OP_LCM, "lcm", [](T a, T b, T) {
    const Big g = Gcd(a, b);
    const T product = g == 0 ? T{0}
                             : static_cast<T>(static_cast<unsigned __int128>(Big{a} / g) *
                                              static_cast<unsigned __int128>(Big{b}));
    return product < 0 ? static_cast<T>(-static_cast<Big>(product)) : product;
  });
  const auto one = [](int opcode, const char* name, Big (*f)(Big)) {
    CheckLanes<T, T>(opcode, name, [f](T a, T, T) { return f(a); });
  };
  one(MICA_OP_NEG, "neg", [](Big a) { return -a; });
  one(MICA_OP_ABS, "abs", [](Big a) { return a < 0 ? -a : a; });
  one(MICA_OP_SIGN, "sign", [](Big a) { return Big{(a > 0) - (a < 0)}; });
  one(MICA_OP_SQUARE, "square", [](Big a) {
    return static_cast<Big>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(a));
  });
  one(MICA_OP_NOT, "not", [](Big a) { return ~a; });
  one(MICA_OP_FLOOR, "floor", [](Big a) { return a; });
  CheckLanes<uint8_t, T>(MICA_OP_SIGNBIT, "signbit", [](T a, T, T) { return a < 0; });
  CheckLanes<uint8_t, T>(MICA_OP_IS_FINITE, "is_finite", [](T, T, T) { return true; });
  CheckLanes<T, T>(kOpMulAdd, "mul_add", [](T a, T b, T c) {
    return static_cast<T>(static_cast<unsigned __int128>(Big{a}) +
                          static_cast<unsigned __int128>(Big{b}) * static_cast<unsigned __int128>(Big{c}));
  });
}

TEST_CASE("8- and 16-bit integer primitives") {
  CheckIntegers<uint8_t>();
  CheckIntegers<int8_t>();
  CheckIntegers<uint16_t>();
  CheckIntegers<int16_t>();
}

TEST_CASE("32- and 64-bit integer primitives") {
  CheckIntegers<uint32_t>();
  CheckIntegers<int32_t>();
  CheckIntegers<uint64_t>();
  CheckIntegers<int64_t>();
}

// torch's div_floor_floating and remainder, in torch's steps.
template <class T>
T FloorDivideFloat(T a, T b) {
  if (b == 0) return a / b;
  const T rest = std::fmod(a, b);
  T quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(T{0}, a / b);
  T floor = std::floor(quotient);
  if (quotient - floor > T{0.5}) floor += 1;
  return floor;
}

template <class T>
void CheckFloats() {
  CheckComparisons<T>();
  const auto two = [](int opcode, const char* name, T (*f)(T, T)) {
    CheckLanes<T, T>(opcode, name, [f](T a, T b, T) { return f(a, b); });
  };
  two(MICA_OP_ADD, "add", [](T a, T b) { return a + b; });
  two(MICA_OP_SUB, "sub", [](T a, T b) { return a - b; });
  two(MICA_OP_MUL, "mul", [](T a, T b) { return a * b; });
  two(MICA_OP_DIV, "div", [](T a, T b) { return a / b; });
  two(MICA_OP_TRUNC_DIV, "trunc_div", [](T a, T b) { return std::trunc(a / b); });
  two(MICA_OP_FLOOR_DIV, "floor_div", FloorDivideFloat<T>);
  two(MICA_OP_FMOD, "fmod", [](T a, T b) { return std::fmod(a, b); });
  two(MICA_OP_REMAINDER, "remainder", [](T a, T b) {
    const T rest = std::fmod(a, b);
    if (rest == 0) return std::copysign(T{0}, b);
    return (b < 0) != (rest < 0) ? rest + b : rest;
  });
  // The sign of a zero that min and max return is not promised: no mixed zeros.
  const auto no_zero = [](T (*f)(T, T)) {
    return [f](T a, T b, T) { return a == 0 && b == 0 ? b : f(a, b); };
  };
  CheckLanes<T, T>(MICA_OP_MIN, "min", no_zero([](T a, T b) {
                     return a != a ? a : b != b ? b : a < b ? a : b;
                   }));
  CheckLanes<T, T>(MICA_OP_MAX, "max", no_zero([](T a, T b) {
                     return a != a ? a : b != b ? b : a > b ? a : b;
                   }));
  CheckLanes<T, T>(MICA_OP_FMIN, "fmin", no_zero([](T a, T b) {
                     return b != b ? a : a != a ? b : a < b ? a : b;
                   }));
  CheckLanes<T, T>(MICA_OP_FMAX, "fmax", no_zero([](T a, T b) {
                     return b != b ? a : a != a ? b : a > b ? a : b;
                   }));
  two(MICA_OP_COPYSIGN, "copysign", [](T a, T b) { return std::copysign(a, b); });
  two(MICA_OP_NEXTAFTER, "nextafter", [](T a, T b) { return std::nextafter(a, b); });
  const auto one = [](int opcode, const char* name, T (*f)(T)) {
    CheckLanes<T, T>(opcode, name, [f](T a, T, T) { return f(a); });
  };
  one(MICA_OP_NEG, "neg", [](T a) { return -a; });
  one(MICA_OP_ABS, "abs", [](T a) { return std::fabs(a); });
  one(MICA_OP_SIGN, "sign", [](T a) { return static_cast<T>((a > 0) - (a < 0)); });
  one(MICA_OP_SQUARE, "square", [](T a) { return a * a; });
  one(MICA_OP_RECIPROCAL, "reciprocal", [](T a) { return 1 / a; });
  one(MICA_OP_FLOOR, "floor", [](T a) { return std::floor(a); });
  one(MICA_OP_CEIL, "ceil", [](T a) { return std::ceil(a); });
  one(MICA_OP_TRUNC, "trunc", [](T a) { return std::trunc(a); });
  one(MICA_OP_ROUND, "round", [](T a) { return std::nearbyint(a); });
  one(MICA_OP_SQRT, "sqrt", [](T a) { return std::sqrt(a); });
  one(MICA_OP_RSQRT, "rsqrt", [](T a) { return 1 / std::sqrt(a); });
  CheckLanes<uint8_t, T>(MICA_OP_IS_NAN, "is_nan", [](T a, T, T) { return std::isnan(a); });
  CheckLanes<uint8_t, T>(MICA_OP_IS_INF, "is_inf", [](T a, T, T) { return std::isinf(a); });
  CheckLanes<uint8_t, T>(MICA_OP_IS_FINITE, "is_finite", [](T a, T, T) { return std::isfinite(a); });
  CheckLanes<uint8_t, T>(MICA_OP_SIGNBIT, "signbit", [](T a, T, T) { return std::signbit(a); });
  CheckLanes<T, T>(MICA_OP_FMA, "fma", [](T a, T b, T c) { return std::fma(a, b, c); });
  CheckLanes<T, T>(kOpMulAdd, "mul_add", [](T a, T b, T c) {
    const volatile T product = b * c;
    return a + product;
  });
}

TEST_CASE("floating primitives") {
  CheckFloats<float>();
  CheckFloats<double>();
}

// Checks every operation of a half type whose infinity has the bits `infinity`; returns how many there are.
int CheckNarrow(int32_t dtype, uint16_t infinity) {
  const PrimitiveTable* narrow = NarrowTable(dtype);
  REQUIRE(narrow != nullptr);
  const auto lanes = [dtype](const std::vector<uint16_t>& half) {
    std::vector<float> wide(half.size());
    DirectCast(dtype, MICA_F32)(wide.data(), half.data(), nullptr, nullptr,
                                static_cast<int64_t>(half.size()));
    return wide;
  };
  int checked = 0;
  for (int opcode = 0; opcode < kEngineOpcodeCount; ++opcode) {
    if (narrow->at[opcode] == nullptr) continue;
    ++checked;
    int64_t wrong = 0;
    for (int64_t n = 0; n <= 1024; n = n < 70 ? n + 1 : n * 2) {
      std::vector<uint16_t> x(static_cast<size_t>(n)), y(x), got(x.size() + 1, 0x55);
      std::mt19937 random(static_cast<uint32_t>(n));
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<uint16_t>(i == 0 ? 0x7fff : i == 1 ? infinity : random());
        y[i] = static_cast<uint16_t>(random() % 4 == 0 ? x[i] ^ 0x8001 : random());
      }
      narrow->at[opcode](got.data(), x.data(), y.data(), nullptr, n);
      CHECK(got[x.size()] == 0x55);
      got.resize(x.size());
      std::vector<float> a = lanes(x), b = lanes(y), wide(x.size());
      LaneTable(MICA_F32)->at[opcode](wide.data(), a.data(), b.data(), nullptr, n);
      std::vector<uint16_t> want(x.size());
      DirectCast(MICA_F32, dtype)(want.data(), wide.data(), nullptr, nullptr, n);
      const auto is_nan = [&](uint16_t bits) { return (bits & 0x7fff) > infinity; };
      for (size_t i = 0; i < x.size(); ++i) wrong += is_nan(want[i]) ? !is_nan(got[i]) : got[i] != want[i];
    }
    INFO("opcode " << opcode);
    CHECK(wrong == 0);
  }
  return checked;
}

TEST_CASE("operations on half types in memory are the float32 lane's, rounded once") {
  CHECK(CheckNarrow(MICA_BF16, 0x7f80) > 10);
  CHECK(CheckNarrow(MICA_F16, 0x7c00) == 2);
  CHECK(NarrowTable(MICA_F32) == nullptr);
}

TEST_CASE("a zero divisor raises the flag in every integer lane and nowhere else") {
  for (int32_t dtype = MICA_U8; dtype <= MICA_I64; ++dtype) {
    for (const int opcode :
         {MICA_OP_FLOOR_DIV, MICA_OP_TRUNC_DIV, MICA_OP_REMAINDER, MICA_OP_FMOD, MICA_OP_DIV}) {
      alignas(64) uint8_t x[8 * 5] = {1}, y[8 * 5], d[8 * 5];
      std::memset(y, 1, sizeof(y));
      const Primitive run = LaneTable(dtype)->at[opcode];
      CHECK(run(d, x, y, nullptr, 5) == kFlagNone);
      std::memset(y + 4 * DtypeSize(dtype), 0, static_cast<size_t>(DtypeSize(dtype)));
      CHECK(run(d, x, y, nullptr, 5) == kFlagZeroDivision);
      CHECK(run(d, x, y, nullptr, 4) == kFlagNone);
    }
  }
}

TEST_CASE("bool lanes and masks") {
  const uint8_t a[] = {0, 0, 1, 1}, b[] = {0, 1, 0, 1}, c[] = {1, 1, 0, 0};
  const auto check = [&](const PrimitiveTable* table, int opcode, std::vector<uint8_t> want) {
    std::vector<uint8_t> got(4);
    REQUIRE(table->at[opcode] != nullptr);
    table->at[opcode](got.data(), a, b, c, 4);
    CHECK(got == want);
  };
  const PrimitiveTable* lane = LaneTable(MICA_BOOL);
  check(lane, MICA_OP_ADD, {0, 1, 1, 1});
  check(lane, MICA_OP_MUL, {0, 0, 0, 1});
  check(lane, MICA_OP_SUB, {0, 1, 1, 0});
  check(lane, MICA_OP_MIN, {0, 0, 0, 1});
  check(lane, MICA_OP_MAX, {0, 1, 1, 1});
  check(lane, MICA_OP_NOT, {1, 1, 0, 0});
  check(lane, MICA_OP_LT, {0, 1, 0, 0});
  check(lane, MICA_OP_POW, {1, 0, 1, 1});
  check(lane, MICA_OP_SELECT, {1, 1, 0, 1});
  check(lane, kOpMulAdd, {0, 1, 1, 1});
  const PrimitiveTable* mask = MaskTable();
  check(mask, MICA_OP_MASK_AND, {0, 0, 0, 1});
  check(mask, MICA_OP_MASK_OR, {0, 1, 1, 1});
  check(mask, MICA_OP_MASK_XOR, {0, 1, 1, 0});
  check(mask, MICA_OP_MASK_NOT, {1, 1, 0, 0});
  check(mask, MICA_OP_MASK_SELECT, {1, 1, 0, 1});
}

TEST_CASE("select takes the lane of the mask for every lane type and tail") {
  for (const int32_t dtype : {MICA_U8, MICA_I16, MICA_F32, MICA_F64}) {
    const int64_t size = DtypeSize(dtype);
    for (int64_t n = 0; n <= 70; ++n) {
      std::vector<uint8_t> mask(static_cast<size_t>(n)), yes(static_cast<size_t>(n * size), 1),
          no(yes.size(), 2), got(yes.size() + 1, 9);
      for (int64_t i = 0; i < n; ++i) mask[static_cast<size_t>(i)] = i % 3 == 0;
      LaneTable(dtype)->at[MICA_OP_SELECT](got.data(), mask.data(), yes.data(), no.data(), n);
      bool right = got.back() == 9;
      for (int64_t i = 0; i < n * size; ++i)
        right &= got[static_cast<size_t>(i)] == (i / size % 3 == 0 ? 1 : 2);
      CHECK(right);
    }
  }
}

}  // namespace
}  // namespace mica::cpu
