// Memory lent by an output: who gets it, and what is left of it afterwards.
#include <optional>

#include "tensor/loan.h"
#include "tensor/tensor.h"
#include "test/support/mica_test.h"

namespace mica {
namespace {

constexpr int64_t kSide = 64;

Tensor Square(DType dtype = DType::kF32) { return EmptyTensor({kSide, kSide}, dtype, Device{}); }

// A copy in fresh memory, all of it `value`'s first element.
Tensor Copied(const Tensor& value) {
  const Tensor copy = EmptyTensor(value.sizes(), value.dtype(), Device{});
  *copy.data_as<float>() = *value.data_as<float>();
  return copy;
}

TEST_CASE("a fresh tensor lies in the output's memory, once", "[loan]") {
  const Tensor out = Square();
  MemoryLoan loan(true, {out});
  Tensor values[] = {Square()};
  CHECK(values[0].data() == out.data());
  CHECK(values[0].impl()->storage != out.impl()->storage);
  CHECK(Square().data() != out.data());
  loan.Settle(values, Copied);
  CHECK(loan.Fills(values[0], out));
  CHECK(values[0].data() == out.data());
  values[0].reset();
  CHECK(Square().data() != out.data());
}

TEST_CASE("what does not fit, or may not be lent, gets memory of its own", "[loan]") {
  const Tensor out = Square(), tiny = EmptyTensor({4}, DType::kF32, Device{});
  const Tensor part = MakeView(out, {kSide}, {1}, 256);
  const Tensor transposed = MakeView(out, {kSide / 2, kSide}, {1, kSide}, 0);
  // `fresh` is made while the loan lasts.
  const auto lends = [](const MemoryLoan&, const Tensor& to, IntSpan sizes, DType dtype, IntSpan strides) {
    return EmptyStrided(sizes, strides, dtype, Device{}).data() == to.data();
  };
  const Dims square = {kSide, kSide}, rows = {kSide, 1}, columns = {1, kSide};
  const Dims half = {kSide / 2, kSide}, line = {kSide}, whole = {kSide * kSide}, one = {1};
  const DType f32 = DType::kF32;
  CHECK_FALSE(lends(MemoryLoan(false, {out}), out, square, f32, rows));
  CHECK_FALSE(lends(MemoryLoan(true, {out}), out, square, DType::kI32, rows));
  CHECK_FALSE(lends(MemoryLoan(true, {out}), out, line, f32, one));
  CHECK_FALSE(lends(MemoryLoan(true, {out}), out, square, f32, columns));
  CHECK_FALSE(lends(MemoryLoan(true, {tiny}), tiny, {4}, f32, one));
  CHECK_FALSE(lends(MemoryLoan(true, {transposed}), transposed, half, f32, rows));
  CHECK_FALSE(lends(MemoryLoan(true, {out}, part), out, square, f32, rows));
  CHECK_FALSE(lends(MemoryLoan(true, {out}, Tensor(), TensorSpan({tiny, part})), out, square, f32, rows));
  CHECK_FALSE(lends(MemoryLoan(true, {out, out}), out, square, f32, rows));
  CHECK(lends(MemoryLoan(true, {out}, tiny), out, square, f32, rows));
  CHECK(lends(MemoryLoan(true, {out}), out, whole, f32, one));
}

TEST_CASE("a result elsewhere in lent memory is copied out of it", "[loan]") {
  const Tensor first = Square(), second = Square();
  MemoryLoan loan(true, {first, second});
  const Tensor a = Square(), b = Square();
  REQUIRE(a.data() == first.data());
  REQUIRE(b.data() == second.data());
  *a.data_as<float>() = 1;
  *b.data_as<float>() = 2;
  Tensor values[] = {MakeView(b, b.sizes(), b.strides(), 0), MakeView(a, {kSide, kSide}, {1, kSide}, 0)};
  loan.Settle(values, Copied);
  for (const Tensor& value : values) {
    CHECK(value.data() != first.data());
    CHECK(value.data() != second.data());
  }
  CHECK(*values[0].data_as<float>() == 2);
  CHECK(*values[1].data_as<float>() == 1);
}

TEST_CASE("a view of the whole counts as the result", "[loan]") {
  const Tensor out = EmptyTensor({kSide * kSide}, DType::kF32, Device{});
  MemoryLoan loan(true, {out});
  Tensor values[] = {MakeView(Square(), {kSide * kSide}, {1}, 0)};
  REQUIRE(values[0].data() == out.data());
  loan.Settle(values, Copied);
  CHECK(loan.Fills(values[0], out));
}

TEST_CASE("what outlives the loan keeps its elements", "[loan]") {
  const Tensor out = Square();
  std::optional<MemoryLoan> loan;
  loan.emplace(true, TensorSpan({out}));
  Tensor kept = Square();
  REQUIRE(kept.data() == out.data());
  *kept.data_as<float>() = 7;
  Tensor values[] = {Square()};
  loan->Settle(values, Copied);
  CHECK(kept.data() != out.data());
  *out.data_as<float>() = 0;
  CHECK(*kept.data_as<float>() == 7);

  // And so does a second name of the result itself.
  const Tensor other = Square();
  loan.emplace(true, TensorSpan({other}));
  values[0] = Square();
  kept = values[0];
  *kept.data_as<float>() = 8;
  loan->Settle(values, Copied);
  CHECK_FALSE(loan->Fills(values[0], other));
  *other.data_as<float>() = 0;
  CHECK(*kept.data_as<float>() == 8);
}

TEST_CASE("loans nest, grow as fresh memory does, and end with an exception", "[loan]") {
  const Tensor outer = Square(), inner = Square();
  MemoryLoan loan(true, {outer});
  {
    const MemoryLoan within(true, {inner});
    CHECK(Square().data() == inner.data());
    CHECK(Square().data() != outer.data());
  }
  const Tensor grown = Square();
  REQUIRE(grown.data() == outer.data());
  *grown.data_as<float>() = 5;
  const Dims larger = {2 * kSide, kSide}, strides = {kSide, 1};
  ResizeTensor(grown, larger, strides);
  CHECK(grown.data() != outer.data());
  CHECK(*grown.data_as<float>() == 5);
  try {
    const MemoryLoan within(true, {inner});
    throw 1;
  } catch (int) {
  }
  CHECK(Square().data() != inner.data());
}

}  // namespace
}  // namespace mica
