// The pointwise class and copy_ end to end: every pair of dtypes, layouts,
// tails, in-place, aliases, broadcasting, threads, numbers and errors.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <mica/plugin.h>
#include "plugins/cpu/engine/copy.h"
#include "test/support/mica_test.h"
#include "test/unit/cpu/engine_fixture.h"

namespace mica::cpu::test {
namespace {

constexpr int32_t kReal[] = {MICA_BOOL, MICA_U8,  MICA_I8,  MICA_U16,      MICA_I16,
                             MICA_U32,  MICA_I32, MICA_U64, MICA_I64,      MICA_F16,
                             MICA_BF16, MICA_F32, MICA_F64, MICA_F8E4M3FN, MICA_F8E5M2};

// Element i as a double, by the scalar meaning of each format.
double Get(const HostTensor& t, int64_t i) {
  const char* p = t.At(i);
  const auto bits = [p](int exponent_bits, int mantissa_bits, bool infinities) -> double {
    uint16_t raw = 0;
    std::memcpy(&raw, p, static_cast<size_t>((exponent_bits + mantissa_bits + 1) / 8));
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = raw >> mantissa_bits & ((1 << exponent_bits) - 1);
    const int mantissa = raw & ((1 << mantissa_bits) - 1);
    const double sign = raw >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
    if (infinities && exponent == (1 << exponent_bits) - 1) {
      return mantissa ? std::nan("") : sign * std::numeric_limits<double>::infinity();
    }
    if (!infinities && exponent == 15 && mantissa == 7) return std::nan("");
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  };
  switch (t.dtype()) {
    case MICA_BOOL:
    case MICA_U8:
      return t.At<uint8_t>(i);
    case MICA_I8:
      return t.At<int8_t>(i);
    case MICA_U16:
      return t.At<uint16_t>(i);
    case MICA_I16:
      return t.At<int16_t>(i);
    case MICA_U32:
      return t.At<uint32_t>(i);
    case MICA_I32:
      return t.At<int32_t>(i);
    case MICA_U64:
      return static_cast<double>(t.At<uint64_t>(i));
    case MICA_I64:
      return static_cast<double>(t.At<int64_t>(i));
    case MICA_F16:
      return bits(5, 10, true);
    case MICA_BF16:
      return bits(8, 7, true);
    case MICA_F32:
    case MICA_C64:
      return static_cast<double>(t.At<float>(i));
    case MICA_F8E4M3FN:
      return bits(4, 3, false);
    case MICA_F8E5M2:
      return bits(5, 2, true);
    default:
      return t.At<double>(i);
  }
}

void Copy(HostTensor& to, HostTensor& from, int32_t threads = 1) {
  MicaCall call = MakeCall(nullptr, MICA_DTYPE_NONE, threads);
  CopyInto(&call, to.get(), from.get(), 0);
}

// Small integers, which every dtype holds (bool: their truth).
void Fill(HostTensor& t) {
  HostTensor source(MICA_F64, t.sizes());
  for (int64_t i = 0; i < t.numel(); ++i) source.At<double>(i) = static_cast<double>(i * 7 % 9);
  Copy(t, source);
}

TEST_CASE("copy_ converts between all real dtypes at every tail") {
  for (const int32_t from : kReal) {
    for (const int32_t to : kReal) {
      int64_t wrong = 0;
      for (const int64_t n : {0, 1, 7, 8, 9, 15, 16, 17, 33, 70, 1024, 1025, 3000}) {
        HostTensor x(from, {n}), y(to, {n});
        Fill(x);
        Copy(y, x);
        for (int64_t i = 0; i < n; ++i) {
          const double value = Get(x, i);
          wrong += Get(y, i) != (to == MICA_BOOL ? static_cast<double>(value != 0) : value);
        }
      }
      INFO("from dtype " << from << " to " << to);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("float16, bfloat16 and float8 survive float32 for every pattern of bits") {
  for (const int32_t dtype : {MICA_F16, MICA_BF16, MICA_F8E4M3FN, MICA_F8E5M2}) {
    const int64_t n = DtypeSize(dtype) == 2 ? 65536 : 256;
    HostTensor x(dtype, {n}), wide(MICA_F32, {n}), back(dtype, {n});
    for (int64_t i = 0; i < n; ++i) {
      const uint16_t raw = static_cast<uint16_t>(i);
      std::memcpy(x.At(i), &raw, static_cast<size_t>(DtypeSize(dtype)));
    }
    Copy(wide, x);
    Copy(back, wide);
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double value = Get(x, i);
      if (std::isnan(value)) {
        wrong += !std::isnan(wide.At<float>(i)) || !std::isnan(Get(back, i));
      } else {
        wrong += static_cast<double>(wide.At<float>(i)) != value ||
                 std::signbit(wide.At<float>(i)) != std::signbit(value);
        wrong += Get(back, i) != value;
      }
    }
    INFO("dtype " << dtype);
    CHECK(wrong == 0);
  }
}

TEST_CASE("narrowing rounds to nearest even and overflows as each format says") {
  const float inputs[] = {65504, 65520, 1e10f, -1e10f, 5.9604645e-8f, 2.9802322e-8f, 1.00048828125f,
                          448,   464,   465,   57344,  61440,         0.001953125f};
  HostTensor x(MICA_F32, {13});
  std::memcpy(x.data<float>(), inputs, sizeof(inputs));
  const double inf = std::numeric_limits<double>::infinity();
  HostTensor half(MICA_F16, {13}), e4(MICA_F8E4M3FN, {13}), e5(MICA_F8E5M2, {13});
  Copy(half, x);
  CHECK(Get(half, 0) == 65504);
  CHECK(Get(half, 1) == inf);
  CHECK(Get(half, 3) == -inf);
  CHECK(Get(half, 4) == std::ldexp(1.0, -24));
  CHECK(Get(half, 5) == 0);  // half of the least denormal, to even
  CHECK(Get(half, 6) == 1);  // half way between 1 and its successor
  Copy(e4, x);
  CHECK(Get(e4, 7) == 448);
  CHECK(Get(e4, 8) == 448);  // half way to 480, to even
  CHECK(std::isnan(Get(e4, 9)) == true);
  CHECK(Get(e4, 12) == std::ldexp(1.0, -9));
  Copy(e5, x);
  CHECK(Get(e5, 10) == 57344);
  CHECK(Get(e5, 11) == inf);
}

TEST_CASE("float to int out of range is defined") {
  HostTensor x(MICA_F32, {4}), i32(MICA_I32, {4}), i16(MICA_I16, {4}), u8(MICA_U8, {4}), i64(MICA_I64, {4}),
      b(MICA_BOOL, {4});
  x.data<float>()[0] = 3e9f;
  x.data<float>()[1] = -1;
  x.data<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  x.data<float>()[3] = 300.9f;
  Copy(i32, x);
  Copy(i16, x);
  Copy(u8, x);
  Copy(i64, x);
  Copy(b, x);
  CHECK(i32.data<int32_t>()[0] == std::numeric_limits<int32_t>::min());
  CHECK(i32.data<int32_t>()[3] == 300);
  CHECK(i16.data<int16_t>()[0] == 0);  // the low bits of the least int32
  CHECK(u8.data<uint8_t>()[1] == 255);
  CHECK(u8.data<uint8_t>()[3] == 44);
  CHECK(i64.data<int64_t>()[2] == std::numeric_limits<int64_t>::min());
  CHECK(b.data<uint8_t>()[2] == 1);
}

TEST_CASE("copy_ between layouts: transposes, gaps, broadcasts, complex") {
  for (const int32_t dtype : {MICA_U8, MICA_F16, MICA_F32, MICA_F64}) {
    for (const int32_t threads : {1, 2}) {
      HostTensor x(dtype, {5, 130, 67}, {1, 5, 650}), y(dtype, {5, 130, 67}),
          gaps(dtype, {5, 130, 67}, {20000, 140, 2});
      Fill(x);
      Copy(y, x, threads);
      Copy(gaps, y, threads);
      HostTensor back(dtype, {5, 130, 67}, {1, 5, 650});
      Copy(back, gaps, threads);
      HostTensor row(dtype, {67});
      Fill(row);
      int64_t wrong = 0;
      for (int64_t i = 0; i < x.numel(); ++i) wrong += Get(x, i) != Get(y, i) || Get(x, i) != Get(back, i);
      Copy(y, row, threads);
      for (int64_t i = 0; i < y.numel(); ++i) wrong += Get(y, i) != Get(row, i % 67);
      CHECK(wrong == 0);
    }
  }
  // Every element size, pitches short and long, edges that fill no block or tile.
  for (const int32_t dtype : {MICA_U8, MICA_BF16, MICA_I32, MICA_I64, MICA_C128}) {
    for (const auto& [rows, columns] : {std::array<int64_t, 2>{8, 3}, {64, 64}, {65, 300}, {300, 1029}}) {
      HostTensor x(dtype, {rows, columns}, {1, rows + 3}), y(dtype, {rows, columns});
      const int64_t size = DtypeSize(dtype);
      char* from = reinterpret_cast<char*>(&x.At<uint8_t>(0));
      const char* to = reinterpret_cast<const char*>(&y.At<uint8_t>(0));
      for (int64_t i = 0; i < columns * (rows + 3) * size - 3 * size; ++i)
        from[i] = static_cast<char>(i * 2654435761 >> 11);
      Copy(y, x, 2);
      int64_t wrong = 0;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c)
          wrong += std::memcmp(to + (r * columns + c) * size, from + (c * (rows + 3) + r) * size,
                               static_cast<size_t>(size)) != 0;
      }
      INFO("dtype " << dtype << ", " << rows << " x " << columns);
      CHECK(wrong == 0);
    }
  }
  HostTensor z(MICA_C64, {300}), wide(MICA_C128, {300}), re(MICA_F32, {300}), truth(MICA_BOOL, {300}),
      i(MICA_I32, {300});
  for (int64_t k = 0; k < 300; ++k) {
    (&z.At<float>(k))[0] = static_cast<float>(k % 3 == 0 ? 0 : k);
    (&z.At<float>(k))[1] = static_cast<float>(k % 2);
  }
  Copy(wide, z);
  Copy(re, wide);
  Copy(truth, z);
  CHECK((&wide.At<double>(5))[0] == 5);
  CHECK((&wide.At<double>(5))[1] == 1);
  CHECK(re.At<float>(7) == 7);
  CHECK(truth.At<uint8_t>(3) == 1);
  CHECK(truth.At<uint8_t>(6) == 0);
  Fill(i);
  Copy(z, i);
  CHECK((&z.At<float>(4))[0] == static_cast<float>(i.At<int32_t>(4)));
  CHECK((&z.At<float>(4))[1] == 0);
}

TEST_CASE("copy_ of rows of a few elements") {
  for (const int32_t dtype : {MICA_U8, MICA_BF16, MICA_F32, MICA_F64})
    for (const int64_t width : {1, 2, 3, 4, 5, 8, 16, 31, 40})
      for (const int64_t column : {1, 3}) {
        const int64_t row = width * column + 2;
        const std::vector<int64_t> sizes{3, 700, width}, strides{701 * row, row, column};
        HostTensor x(dtype, sizes, strides), y(dtype, sizes), back(dtype, sizes, strides),
            one(dtype, {3, 700, 1});
        Fill(x);
        Fill(one);
        Copy(y, x, 2);
        Copy(back, y, 2);
        int64_t wrong = 0;
        for (int64_t i = 0; i < x.numel(); ++i) wrong += Get(x, i) != Get(y, i) || Get(x, i) != Get(back, i);
        Copy(y, one, 2);
        for (int64_t i = 0; i < y.numel(); ++i) wrong += Get(y, i) != Get(one, i / width);
        CAPTURE(dtype, width, column);
        CHECK(wrong == 0);
      }
}

// self + alpha * other, as the entry of add has it.
const MicaProgram* AddProgram(Builder& b) {
  const int self = b.Load(0);
  const int scaled = b.Op(MICA_OP_MUL, b.Scalar(0), b.Load(1));
  b.Store(b.Op(MICA_OP_ADD, self, scaled));
  return b.Pointwise();
}

TEST_CASE("a program over mixed dtypes, layouts, tails and threads") {
  struct Case {
    std::vector<int64_t> sizes, x, y, out;
  };
  const Case cases[] = {
      {{}, {}, {}, {}},
      {{0}, {1}, {1}, {1}},
      {{70}, {1}, {2}, {1}},
      {{1024}, {1}, {0}, {1}},
      {{3, 5}, {5, 1}, {1, 3}, {5, 1}},
      {{9000, 10}, {10, 1}, {0, 1}, {10, 1}},
      {{90, 100, 7}, {0, 7, 1}, {0, 0, 1}, {700, 7, 1}},
      {{4, 1000}, {1000, 1}, {0, 1}, {1000, 1}},
      {{4, 1000}, {1000, 1}, {1, 0}, {1000, 1}},
      {{300, 400}, {1, 300}, {400, 1}, {1, 300}},
      {{300, 400}, {400, 1}, {3, 900}, {800, 2}},
      {{3, 4, 5, 6}, {120, 30, 6, 1}, {1, 3, 12, 60}, {1, 3, 12, 60}},
      {{70, 37}, {1, 70}, {37, 1}, {37, 1}},
      {{5, 67, 33}, {2211, 1, 67}, {1, 5, 335}, {2211, 33, 1}},
      {{130, 700}, {1, 130}, {1, 130}, {700, 1}},
      {{3, 70, 600}, {1, 3, 210}, {42000, 1, 70}, {42000, 600, 1}},
      {{70, 3, 600}, {1, 70, 210}, {0, 0, 1}, {1800, 600, 1}},
      {{8, 257}, {1, 9}, {0, 0}, {300, 1}},
      {{2, 1, 600, 3}, {1800, 0, 3, 1}, {0, 0, 1, 600}, {1800, 5, 3, 1}},
  };
  for (const auto& [in, other, compute, result] :
       {std::array<int32_t, 4>{MICA_F32, MICA_F32, MICA_F32, MICA_F32},
        {MICA_I32, MICA_F64, MICA_F64, MICA_F64},
        {MICA_BF16, MICA_BF16, MICA_BF16, MICA_BF16},
        {MICA_U8, MICA_I64, MICA_I64, MICA_I64},
        {MICA_BOOL, MICA_I16, MICA_I16, MICA_I16},
        {MICA_F32, MICA_F32, MICA_F32, MICA_F64}}) {
    for (const Case& c : cases) {
      for (const int64_t alpha : {1, 3}) {
        HostTensor x(in, c.sizes, c.x), y(other, c.sizes, c.y), out(result, c.sizes, c.out);
        Fill(x);
        Fill(y);
        Builder b;
        Run(AddProgram(b), compute, {Value(x), Value(y), ValueOfInt(alpha)}, {&out}, 2);
        int64_t wrong = 0;
        for (int64_t i = 0; i < out.numel(); ++i)
          wrong += Get(out, i) != Get(x, i) + static_cast<double>(alpha) * Get(y, i);
        INFO("dtypes " << in << " " << other << ", dims " << c.sizes.size() << ", alpha " << alpha);
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("broadcasting of whole tensors, in place and of one tensor with itself") {
  Builder b;
  const MicaProgram* add = AddProgram(b);
  HostTensor x(MICA_F32, {40, 50}), row(MICA_F32, {50}), column(MICA_F32, {40, 1}), number(MICA_F64, {}),
      out(MICA_F32, {40, 50});
  Fill(x);
  Fill(row);
  Fill(column);
  number.At<double>(0) = 0.5;
  Run(add, MICA_F32, {Value(column), Value(row), ValueOfInt(1)}, {&out});
  CHECK(out.At<float>(7 * 50 + 9) == column.At<float>(7) + row.At<float>(9));
  Run(add, MICA_F32, {Value(x), Value(number), ValueOfInt(2)}, {&out});
  CHECK(out.At<float>(1234) == x.At<float>(1234) + 1);
  const float before = x.At<float>(77);
  Run(add, MICA_F32, {Value(x), Value(x), ValueOfInt(1)}, {&x});
  CHECK(x.At<float>(77) == 2 * before);
}

TEST_CASE("two results that alias the inputs are written after all is read") {
  Builder b;
  const int x = b.Load(0), y = b.Load(1);
  b.Store(b.Op(MICA_OP_ADD, x, y), 0);
  b.Store(b.Op(MICA_OP_SUB, x, y), 1);
  HostTensor p(MICA_F32, {2000}), q(MICA_F32, {2000});
  for (int64_t i = 0; i < 2000; ++i) {
    p.At<float>(i) = static_cast<float>(i);
    q.At<float>(i) = 1;
  }
  Run(b.Pointwise(), MICA_F32, {Value(p), Value(q)}, {&p, &q});
  int64_t wrong = 0;
  for (int64_t i = 0; i < 2000; ++i)
    wrong += p.At<float>(i) != static_cast<float>(i + 1) || q.At<float>(i) != static_cast<float>(i - 1);
  CHECK(wrong == 0);
}

TEST_CASE("masks: comparison, where with a bool tensor, a mask stored as a number") {
  for (const int64_t n : {5, 70, 5000}) {
    HostTensor x(MICA_F32, {n}), y(MICA_F32, {n}), c(MICA_BOOL, {n}), out(MICA_BOOL, {n}),
        chosen(MICA_F32, {n}), as_float(MICA_F64, {n});
    for (int64_t i = 0; i < n; ++i) {
      x.At<float>(i) = static_cast<float>(i % 5);
      y.At<float>(i) = 2;
      c.At<uint8_t>(i) = i % 3 == 0;
    }
    Builder less;
    const int lx = less.Load(0), ly = less.Load(1);
    less.Store(less.Op(MICA_OP_LT, lx, ly));
    Run(less.Pointwise(), MICA_F32, {Value(x), Value(y)}, {&out});
    Run(less.Pointwise(), MICA_F32, {Value(x), Value(y)}, {&as_float});
    Builder where;
    const int condition = where.Op(MICA_OP_TO_MASK, where.Load(0));
    const int wx = where.Load(1), wy = where.Load(2);
    where.Store(where.Op(MICA_OP_SELECT, condition, wx, wy));
    Run(where.Pointwise(), MICA_F32, {Value(c), Value(x), Value(y)}, {&chosen});
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; ++i) {
      wrong += out.At<uint8_t>(i) != (i % 5 < 2) || as_float.At<double>(i) != static_cast<double>(i % 5 < 2);
      wrong += chosen.At<float>(i) != (i % 3 == 0 ? static_cast<float>(i % 5) : 2);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("complex programs run over two planes") {
  const int64_t n = 1500;
  HostTensor x(MICA_C64, {n}), y(MICA_C64, {n}), out(MICA_C64, {n}), size(MICA_F32, {n});
  for (int64_t i = 0; i < n; ++i) {
    (&x.At<float>(i))[0] = static_cast<float>(i % 7);
    (&x.At<float>(i))[1] = static_cast<float>(i % 3) - 1;
    (&y.At<float>(i))[0] = 2;
    (&y.At<float>(i))[1] = -1;
  }
  for (const int opcode : {MICA_OP_ADD, MICA_OP_SUB, MICA_OP_MUL, MICA_OP_DIV}) {
    Builder b;
    const int bx = b.Load(0), by = b.Load(1);
    b.Store(b.Op(opcode, bx, by));
    Run(b.Pointwise(), MICA_C64, {Value(x), Value(y)}, {&out});
    double worst = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double re = i % 7, im = static_cast<double>(i % 3) - 1;
      double want_re = re + 2, want_im = im - 1;
      if (opcode == MICA_OP_SUB) want_re = re - 2, want_im = im + 1;
      if (opcode == MICA_OP_MUL) want_re = 2 * re + im, want_im = 2 * im - re;
      if (opcode == MICA_OP_DIV) want_re = (2 * re - im) / 5, want_im = (2 * im + re) / 5;
      worst = std::max(
          {worst, std::fabs((&out.At<float>(i))[0] - want_re), std::fabs((&out.At<float>(i))[1] - want_im)});
    }
    CHECK(worst < 1e-6);
  }
  Builder b;
  b.Store(b.Op(MICA_OP_ABS, b.Load(0)));
  Run(b.Pointwise(), MICA_C64, {Value(x)}, {&size});
  CHECK(size.At<float>(3) == Approx(std::hypot(3.0, -1.0)));
}

TEST_CASE("a constant alone fills, infinities saturate in integer lanes") {
  Builder fill;
  fill.Store(fill.ConstInt(7));
  HostTensor out(MICA_I16, {3, 700}, {1, 3});
  Run(fill.Pointwise(), MICA_I16, {}, {&out});
  CHECK(out.At<int16_t>(2099) == 7);
  Builder most;
  most.Store(most.Const(-std::numeric_limits<double>::infinity()));
  HostTensor low(MICA_I8, {5}), none(MICA_U8, {5});
  Run(most.Pointwise(), MICA_I8, {}, {&low});
  Run(most.Pointwise(), MICA_U8, {}, {&none});
  CHECK(low.At<int8_t>(4) == -128);
  CHECK(none.At<uint8_t>(4) == 0);
}

TEST_CASE(
    "mistakes are sentences: division by zero, a number that does not fit, an operation without meaning") {
  HostTensor x(MICA_I32, {100}), zero(MICA_I32, {100}), out(MICA_I32, {100});
  Builder divide;
  const int dx = divide.Load(0), dy = divide.Load(1);
  divide.Store(divide.Op(MICA_OP_FLOOR_DIV, dx, dy));
  MICA_REQUIRE_ERROR((Run(divide.Pointwise(), MICA_I32, {Value(x), Value(zero)}, {&out}), 0),
                     "ZeroDivisionError");
  HostTensor small(MICA_I8, {4}), result(MICA_I8, {4});
  Builder least;
  least.Store(least.Op(MICA_OP_MIN, least.Load(0), least.Scalar(0)));
  MICA_REQUIRE_ERROR((Run(least.Pointwise(), MICA_I8, {Value(small), ValueOfInt(300)}, {&result}), 0),
                     "The number (300) does not fit dtype (int8)");
  Builder sine;
  sine.Store(sine.Op(MICA_OP_SIN, sine.Load(0)));
  MICA_REQUIRE_ERROR((Run(sine.Pointwise(), MICA_I32, {Value(x)}, {&out}), 0),
                     "has no meaning in its compute dtype (SIN)");
}

TEST_CASE("squares for powers of two, one for a factor of one") {
  HostTensor x(MICA_F32, {100}), out(MICA_F32, {100});
  for (int64_t i = 0; i < 100; ++i) x.At<float>(i) = static_cast<float>(i) / 3 - 10;
  Builder power;
  const int base = power.Load(0);
  power.Store(power.Op(MICA_OP_POW, base, power.Scalar(0)));
  for (const double exponent : {1.0, 2.0, 3.0}) {
    Run(power.Pointwise(), MICA_F32, {Value(x), Value(exponent)}, {&out});
    for (int64_t i = 0; i < 100; ++i)
      CHECK(out.At<float>(i) == Approx(std::pow(x.At<float>(i), static_cast<float>(exponent))).epsilon(1e-6));
  }
}

}  // namespace
}  // namespace mica::cpu::test
