// Index programs run as linear forms against the same expressions at every place, and
// what is refused: forms that are not linear, numbers that could overflow.
#include "plugins/cpu/indexing/linear.h"

#include <cstdint>
#include <limits>

#include "test/support/mica_test.h"
#include "test/unit/cpu/engine_fixture.h"

namespace mica::cpu::test {
namespace {

constexpr int64_t kSizes[] = {7, 9};
const Linear kCoordinates[] = {{0, 1, 0}, {1, 0, 0}};  // y, x

MicaValue Int(int64_t i) {
  MicaValue value = {};
  value.tag = MICA_VALUE_INT;
  value.u.i = i;
  return value;
}

struct Mask {
  int opcode;
  int64_t factor;  // of x
  bool (*holds)(int64_t left, int64_t right);
};
const Mask kMasks[] = {
    {MICA_OP_LE, 1, [](int64_t a, int64_t b) { return a <= b; }},
    {MICA_OP_LT, 3, [](int64_t a, int64_t b) { return a < b; }},
    {MICA_OP_GE, 1, [](int64_t a, int64_t b) { return a >= b; }},
    {MICA_OP_GT, -2, [](int64_t a, int64_t b) { return a > b; }},
    {MICA_OP_GE, 0, [](int64_t a, int64_t b) { return a >= b; }},
};

TEST_CASE("a mask over linear forms is an interval of each row", "[indexing]") {
  for (const Mask& m : kMasks)
    for (int64_t diagonal = -12; diagonal <= 12; ++diagonal) {
      // factor * x - y ? diagonal, and x < 8
      Builder b;
      const int scalar = b.Scalar(0), x = b.Op(MICA_OP_COORD, 0, 0, 0, -1),
                y = b.Op(MICA_OP_COORD, 0, 0, 0, 0);
      const int left = b.Op(MICA_OP_SUB, b.Op(MICA_OP_MUL, b.ConstInt(m.factor), x), y);
      const int both =
          b.Op(MICA_OP_MASK_AND, b.Op(m.opcode, left, scalar), b.Op(MICA_OP_LT, x, b.ConstInt(8)));
      b.Store(both);
      const MicaValue args[] = {Int(diagonal)};
      const MicaProgram* program = b.Pointwise();
      const LinearContext context = {program, args, kSizes, 2, 0, 0};
      Region region;
      REQUIRE(RunLinearMask(context, program->main, kCoordinates, &region));
      for (int64_t row = 0; row < kSizes[0]; ++row) {
        const Interval kept = region.Row(row, kSizes[1]);
        for (int64_t column = 0; column < kSizes[1]; ++column) {
          CAPTURE(m.opcode, m.factor, diagonal, row, column);
          const bool want = m.holds(m.factor * column - row, diagonal) && column < 8;
          REQUIRE((column >= kept.begin && column < kept.end) == want);
        }
      }
    }
}

TEST_CASE("what is not linear, or might overflow, is refused", "[indexing]") {
  struct Case {
    int opcode;
    int64_t scalar;
    bool runs;
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const Case cases[] = {{MICA_OP_ADD, 5, true},        {MICA_OP_MUL, 5, true},
                        {MICA_OP_REMAINDER, 5, false}, {MICA_OP_ADD, kMost, false},
                        {MICA_OP_SUB, -kMost, false},  {MICA_OP_MUL, kMost / 2, false},
                        {MICA_OP_FLOOR_DIV, 5, false}};
  for (const Case& c : cases) {
    Builder b;
    b.Store(b.Op(c.opcode, b.Op(MICA_OP_COORD, 0, 0, 0, 1), b.Scalar(0)));
    const MicaValue args[] = {Int(c.scalar)};
    const MicaProgram* program = b.Pointwise();
    const LinearContext context = {program, args, kSizes, 2, 0, 0};
    Linear result;
    CAPTURE(c.opcode, c.scalar);
    REQUIRE(RunLinear(context, program->main, kCoordinates, &result) == c.runs);
    if (c.runs && c.opcode == MICA_OP_MUL) REQUIRE((result.slope == 5 && result.start == 0));
    // At one place any operation on integers has a value.
    const Linear place[] = {{0, 0, 1}, {0, 0, 4}};
    if (c.opcode == MICA_OP_REMAINDER) {
      REQUIRE(RunLinear(context, program->main, place, &result));
      REQUIRE(result.start == 4);
    }
  }
}

}  // namespace
}  // namespace mica::cpu::test
