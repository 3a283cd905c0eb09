// Random streams: torch's golden values, states, Philox's published vectors.
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "tensor/random.h"
#include "test/support/mica_test.h"

namespace mica {
namespace {

#include "test/unit/tensor/generator_golden.inc"

// Distance in units of the last place of a float, through ordered integers.
int64_t Ulps(float a, float b) {
  const auto key = [](float f) {
    const int64_t bits = std::bit_cast<int32_t>(f);
    return bits < 0 ? -(bits & 0x7fffffff) : bits;
  };
  return std::abs(key(a) - key(b));
}

void Draw(Generator& g, const RandomCase& c, void* data, int64_t n) {
  const std::string_view fill = c.fill;
  if (fill == "uniform") return FillUniform(g, data, n, c.dtype, c.a, c.b);
  if (fill == "normal") return FillNormal(g, data, n, c.dtype, c.a, c.b);
  if (fill == "bernoulli") return FillBernoulli(g, data, n, c.dtype, c.a);
  if (fill == "randint")
    return FillRandint(g, data, n, c.dtype, static_cast<int64_t>(c.a), static_cast<int64_t>(c.b));
  REQUIRE(fill == "randperm");
  FillRandperm(g, data, n, c.dtype);
}

TEST_CASE("the CPU stream gives torch's numbers", "[tensor]") {
  Mt19937Generator g;
  for (const RandomCase& c : kRandomCases) {
    const int64_t n = static_cast<int64_t>(c.bits.size());
    const int64_t size = ItemSize(c.dtype);
    INFO(c.fill << " of " << n << " " << Name(c.dtype) << " with " << c.a << ", " << c.b);
    g.ManualSeed(123);
    std::vector<unsigned char> data(n * size);
    Draw(g, c, data.data(), n);
    const bool exact = std::string_view(c.fill) != "normal" || c.dtype == DType::kF64 || n < 16;
    for (int64_t i = 0; i < n; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, data.data() + i * size, size);
      if (exact) {
        CHECK(bits == c.bits[i]);
      } else if (c.dtype == DType::kF32) {
        CHECK(Ulps(std::bit_cast<float>(static_cast<uint32_t>(bits)),
                   std::bit_cast<float>(static_cast<uint32_t>(c.bits[i]))) <= 2);
      } else {  // the half types round a float32 that is within 2 ULP
        CHECK(std::abs(static_cast<int64_t>(bits) - static_cast<int64_t>(c.bits[i])) <= 1);
      }
    }
  }
}

TEST_CASE("a state brings the stream back, cached normals included", "[tensor]") {
  for (const char* algorithm : {"mt19937", "philox4x32-10"}) {
    Generator* g = MakeGenerator(algorithm, Device{});
    g->ManualSeed(77);
    double values[5];
    FillNormal(*g, values, 3, DType::kF64, 0, 1);  // an odd count leaves one in the cache
    const std::string state = g->GetState();
    Generator* copy = g->Clone();
    double first[40], second[40], third[40];
    FillNormal(*g, first, 5, DType::kF64, 0, 1);
    FillUniform(*g, first + 5, 35, DType::kF64, 0, 1);
    g->SetState(state);
    FillNormal(*g, second, 5, DType::kF64, 0, 1);
    FillUniform(*g, second + 5, 35, DType::kF64, 0, 1);
    FillNormal(*copy, third, 5, DType::kF64, 0, 1);
    FillUniform(*copy, third + 5, 35, DType::kF64, 0, 1);
    CHECK(std::memcmp(first, second, sizeof first) == 0);
    CHECK(std::memcmp(first, third, sizeof first) == 0);
    CHECK(g->InitialSeed() == 77);
    MICA_REQUIRE_ERROR((g->SetState("short"), 0), "The state has 5 bytes");
    g->Release();
    copy->Release();
  }
  MICA_REQUIRE_ERROR(MakeGenerator("dice", Device{}), "algorithm (dice) is unknown");
  Mt19937Generator mt;
  std::string broken = mt.GetState();
  CHECK(broken.size() == 5056);
  broken[16] = 99;  // `next` points elsewhere than `left` says
  MICA_REQUIRE_ERROR((mt.SetState(broken), 0), "do not fit together");
}

TEST_CASE("words come in order however they are drawn", "[tensor]") {
  for (const char* algorithm : {"mt19937", "philox4x32-10"}) {
    Generator* a = MakeGenerator(algorithm, Device{});
    Generator* b = MakeGenerator(algorithm, Device{});
    a->ManualSeed(3);
    b->ManualSeed(3);
    std::vector<uint64_t> wide(700);
    std::vector<uint32_t> words(1400);
    a->Fill64(wide.data(), 700);
    b->Fill32(words.data(), 1400);
    bool same = true;
    for (int i = 0; i < 700; ++i) same &= wide[i] == (uint64_t{words[2 * i]} << 32 | words[2 * i + 1]);
    CHECK(same);
    CHECK(a->Random32() == b->Random32());
    a->Release();
    b->Release();
  }
  Mt19937Generator reference;  // std::mt19937's 10,000th word, of the C++ standard
  uint32_t word = 0;
  for (int i = 0; i < 10000; ++i) word = reference.Random32();
  CHECK(word == 4123659995u);
}

TEST_CASE("Philox gives the published vectors", "[tensor]") {
  // Random123, kat_vectors: philox4x32 10.
  CHECK(PhiloxGenerator::Block(0, 0) ==
        std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(PhiloxGenerator::Block(~0ull, ~0ull, ~0ull) ==
        std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(PhiloxGenerator::Block(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull) ==
        std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  PhiloxGenerator g(Device{}, 5, 6);
  const uint32_t third = g.Random32();
  CHECK(third == PhiloxGenerator::Block(5, 1)[2]);
  CHECK(g.offset() == 7);
}

TEST_CASE("default generators follow ManualSeedAll", "[tensor]") {
  Generator& cpu = DefaultGenerator(Device{});
  CHECK(&cpu == &DefaultGenerator(Device{}));
  ManualSeedAll(42);
  CHECK(cpu.InitialSeed() == 42);
  CHECK(std::string_view(cpu.algorithm()) == "mt19937");
  const int backend = RegisterBackendName("lottery");
  Generator& other = DefaultGenerator({static_cast<int16_t>(backend), 1});
  CHECK(other.InitialSeed() == 42);
  CHECK(std::string_view(other.algorithm()) == "philox4x32-10");
  const uint64_t seed = cpu.Seed();
  CHECK(cpu.InitialSeed() == seed);
  CHECK(cpu.Seed() != seed);
}

TEST_CASE("distributions keep their bounds and refuse nonsense", "[tensor]") {
  Mt19937Generator g;
  std::vector<Half> halves(20000);
  FillUniform(g, halves.data(), 20000, DType::kF16, 0, 1);
  bool inside = true;
  for (Half h : halves) inside &= static_cast<float>(h) >= 0 && static_cast<float>(h) < 1;
  CHECK(inside);
  std::vector<float> many(200000);
  FillNormal(g, many.data(), 200000, DType::kF32, 3, 2);
  double sum = 0, squares = 0;
  for (float f : many) sum += f, squares += (f - 3.0) * (f - 3.0);
  CHECK(sum / 200000 == Approx(3).margin(0.03));
  CHECK(squares / 200000 == Approx(4).margin(0.1));
  const float p[3] = {0, 1, 0.5f};
  uint8_t bits[3];
  FillBernoulliTensor(g, bits, 3, DType::kBool, p, DType::kF32);
  CHECK(bits[0] == 0);
  CHECK(bits[1] == 1);
  int64_t x[4];
  MICA_REQUIRE_ERROR((FillUniform(g, x, 1, DType::kF32, 1, 0), 0), "found from=1 > to=0");
  MICA_REQUIRE_ERROR((FillUniform(g, x, 1, DType::kI64, 0, 1), 0), "not defined for the dtype int64");
  MICA_REQUIRE_ERROR((FillNormal(g, x, 1, DType::kF32, 0, -1), 0), "found std -1");
  MICA_REQUIRE_ERROR((FillBernoulli(g, x, 1, DType::kF32, 1.5), 0), "got p=1.5");
  MICA_REQUIRE_ERROR((FillBernoulli(g, x, 1, DType::kC64, 0.5), 0), "expected a real dtype");
  MICA_REQUIRE_ERROR((FillRandint(g, x, 1, DType::kI64, 3, 3), 0), "got from=3 >= to=3");
  MICA_REQUIRE_ERROR((FillRandperm(g, x, -1, DType::kI64), 0), "length (-1)");
  const float bad[1] = {std::nanf("")};
  MICA_REQUIRE_ERROR((FillBernoulliTensor(g, bits, 1, DType::kBool, bad, DType::kF32), 0), "element (0)");
  FillUniform(g, nullptr, 0, DType::kF32, 0, 1);
}

}  // namespace
}  // namespace mica
