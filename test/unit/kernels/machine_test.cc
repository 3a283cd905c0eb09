// The interpreter on programs written out by hand: what each code of a program
// does, how integers wrap, and how the class kernels drive it over tensors.
#include <cmath>
#include <limits>

#include "dispatcher/tables/operator_spec.h"
#include "kernels/portable/machine.h"
#include "test/unit/kernels/portable_fixture.h"

namespace mica::testing {
namespace {

using portable::Machine;

// Instructions written as (opcode, register written, operands, aux).
MicaInstruction Source(int opcode, int dst, int aux = 0) {
  return {static_cast<uint16_t>(opcode), static_cast<uint8_t>(dst), 0, 0, 0, static_cast<int16_t>(aux)};
}
MicaInstruction Op(int opcode, int dst, int a, int b = 0, int c = 0) {
  return {static_cast<uint16_t>(opcode), static_cast<uint8_t>(dst), static_cast<uint8_t>(a),
          static_cast<uint8_t>(b),       static_cast<uint8_t>(c),   0};
}
MicaInstruction Store(int a, int aux = 0) {
  return {MICA_OP_STORE, 255, static_cast<uint8_t>(a), 0, 0, static_cast<int16_t>(aux)};
}
MicaInstruction StoreState(int a, int aux = 0) {
  return {MICA_OP_STORE_STATE, 255, static_cast<uint8_t>(a), 0, 0, static_cast<int16_t>(aux)};
}

using Code = std::vector<MicaInstruction>;
MicaCode View(const Code& c) { return {c.data(), static_cast<int64_t>(c.size())}; }

// A program that owns its tables.
struct Program : MicaProgram {
  std::vector<int32_t> tensors, numbers;
  std::vector<MicaConstant> table;
  Program(std::vector<int32_t> t, std::vector<int32_t> s, std::vector<MicaConstant> c)
      : MicaProgram{}, tensors(std::move(t)), numbers(std::move(s)), table(std::move(c)) {
    num_inputs = static_cast<int32_t>(tensors.size());
    input_args = tensors.data();
    num_scalars = static_cast<int32_t>(numbers.size());
    scalar_args = numbers.data();
    num_constants = static_cast<int32_t>(table.size());
    constants = table.data();
    num_outputs = 1;
    num_registers = 8;
    dims_arg = keepdim_arg = -1;
  }
};
MicaConstant Number(double f, int64_t i) { return {f, i, 1, 0}; }
const MicaConstant kInfinity = {std::numeric_limits<double>::infinity(), INT64_MAX, 0, 0};

MicaValue TensorValue(const Tensor& t) {
  MicaValue v{};
  v.tag = MICA_VALUE_TENSOR;
  v.u.tensor = t.impl();
  return v;
}
MicaValue ScalarValue(const Scalar& s) {
  MicaValue v{};
  v.tag = MICA_VALUE_SCALAR;
  v.u.scalar = s.ToAbi();
  return v;
}
MicaValue IntValue(int64_t i) {
  MicaValue v{};
  v.tag = MICA_VALUE_INT;
  v.u.i = i;
  return v;
}
void RunClass(OpClass c, const MicaProgram& program, const std::vector<MicaValue>& args, const Tensor& out,
              DType compute) {
  MicaCall call{};
  call.program = &program;
  call.compute_dtype = static_cast<int32_t>(compute);
  MicaTensor* const outputs[] = {out.impl()};
  REQUIRE(PortableClass(c) != nullptr);
  REQUIRE(PortableClass(c)(&call, args.data(), static_cast<int64_t>(args.size()), outputs, 1) == nullptr);
}

// One binary opcode on one pair.
template <typename T>
T Binary(int opcode, T a, T b, DType compute) {
  const Program p({0, 1}, {}, {});
  Machine<T> m(p, nullptr, compute);
  m.input(0)[0] = a;
  m.input(1)[0] = b;
  const Code code = {Source(MICA_OP_LOAD, 0, 0), Source(MICA_OP_LOAD, 1, 1), Op(opcode, 2, 0, 1), Store(2)};
  m.Run(View(code), 1);
  return m.output(0)[0];
}

TEST_CASE("integers wrap to the compute dtype and divide as Python does", "[kernels]") {
  CHECK(Binary<int64_t>(MICA_OP_ADD, 100, 100, DType::kI8) == -56);
  CHECK(Binary<int64_t>(MICA_OP_SUB, 3, 5, DType::kU8) == 254);
  CHECK(Binary<uint64_t>(MICA_OP_SUB, 3, 5, DType::kU64) == UINT64_MAX - 1);
  CHECK(Binary<int64_t>(MICA_OP_FLOOR_DIV, -7, 2, DType::kI64) == -4);
  CHECK(Binary<int64_t>(MICA_OP_TRUNC_DIV, -7, 2, DType::kI64) == -3);
  CHECK(Binary<int64_t>(MICA_OP_REMAINDER, -7, 3, DType::kI64) == 2);
  CHECK(Binary<int64_t>(MICA_OP_FMOD, -7, 3, DType::kI64) == -1);
  CHECK(Binary<int64_t>(MICA_OP_TRUNC_DIV, INT64_MIN, -1, DType::kI64) == INT64_MIN);
  CHECK(Binary<int64_t>(MICA_OP_POW, -2, 3, DType::kI64) == -8);
  CHECK(Binary<int64_t>(MICA_OP_POW, 2, -1, DType::kI64) == 0);
  CHECK(Binary<int64_t>(MICA_OP_SHL, 1, 8, DType::kU8) == 0);
  MICA_REQUIRE_ERROR(Binary<int64_t>(MICA_OP_FLOOR_DIV, 1, 0, DType::kI64), "divided by zero");
}

TEST_CASE("floating division and extrema follow Python and NaN", "[kernels]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(Binary<double>(MICA_OP_FLOOR_DIV, -7, 2, DType::kF64) == -4);
  CHECK(Binary<double>(MICA_OP_REMAINDER, -7, 3, DType::kF64) == 2);
  CHECK(Binary<double>(MICA_OP_FMOD, -7, 3, DType::kF64) == -1);
  CHECK(std::isnan(Binary<double>(MICA_OP_MAX, nan, 1, DType::kF64)));
  CHECK(std::isnan(Binary<double>(MICA_OP_MIN, 1, nan, DType::kF64)));
  CHECK(Binary<double>(MICA_OP_FMAX, nan, 1, DType::kF64) == 1);
  CHECK(Binary<double>(MICA_OP_LOGADDEXP, 1000, 1000, DType::kF64) == Approx(1000 + std::log(2)));
}

TEST_CASE("complex lanes multiply, and refuse what they have no meaning for", "[kernels]") {
  using portable::Complex;
  CHECK(Binary<Complex>(MICA_OP_MUL, {1, 2}, {3, 4}, DType::kC128) == Complex(-5, 10));
  CHECK(Binary<Complex>(MICA_OP_COMPLEX, {1, 0}, {2, 0}, DType::kC128) == Complex(1, 2));
  MICA_REQUIRE_ERROR(Binary<Complex>(MICA_OP_MAX, {1, 0}, {2, 0}, DType::kC128),
                     "no meaning for the instruction (MAX)");
}

TEST_CASE("masks select, and become lanes when they are stored", "[kernels]") {
  const Program p({0}, {}, {Number(0, 0)});
  Machine<double> m(p, nullptr, DType::kF64);
  m.input(0)[0] = -3;
  m.input(0)[1] = 5;
  const Code code = {Source(MICA_OP_LOAD, 0),
                     Source(MICA_OP_CONST, 1),
                     Op(MICA_OP_LT, 2, 0, 1),
                     Op(MICA_OP_SELECT, 3, 2, 1, 0),
                     Op(MICA_OP_MASK_NOT, 4, 2),
                     Store(3, 0),
                     Store(4, 1)};
  m.Run(View(code), 2);
  CHECK(Numbers(m.output(0), m.output(0) + 2) == Numbers{0, 5});
  CHECK(Numbers(m.output(1), m.output(1) + 2) == Numbers{0, 1});
}

TEST_CASE("an infinite constant is an integer's largest value", "[kernels]") {
  const Program p({}, {}, {kInfinity});
  const Code code = {Source(MICA_OP_CONST, 0), Store(0)};
  const auto largest = [&](DType d) {
    Machine<int64_t> m(p, nullptr, d);
    m.Run(View(code), 1);
    return m.output(0)[0];
  };
  CHECK(largest(DType::kI8) == 127);
  CHECK(largest(DType::kU16) == 65535);
  CHECK(largest(DType::kI64) == INT64_MAX);
  CHECK(largest(DType::kBool) == 1);
  Machine<double> real(p, nullptr, DType::kF32);
  real.Run(View(code), 1);
  CHECK(std::isinf(real.output(0)[0]));
}

TEST_CASE("a cast rounds through the dtype it names", "[kernels]") {
  const Program p({0}, {}, {});
  Machine<double> m(p, nullptr, DType::kF64);
  m.input(0)[0] = 1.0 / 3;
  MicaInstruction cast = Op(MICA_OP_CAST, 1, 0);
  cast.aux = static_cast<int16_t>(DType::kF32);
  const Code code = {Source(MICA_OP_LOAD, 0), cast, Store(1)};
  m.Run(View(code), 1);
  CHECK(m.output(0)[0] == static_cast<double>(1.0f / 3));
}

// self + alpha * other
TEST_CASE("the pointwise kernel broadcasts, strides and rounds once", "[kernels]") {
  Program p({0, 1}, {2}, {});
  const Code code = {Source(MICA_OP_LOAD, 0, 0), Source(MICA_OP_LOAD, 1, 1), Source(MICA_OP_SCALAR, 2),
                     Op(MICA_OP_MUL, 3, 1, 2),   Op(MICA_OP_ADD, 4, 0, 3),   Store(4)};
  p.main = View(code);
  const Tensor x = Transposed(Of({2, 3}, {1, 2, 3, 4, 5, 6})), y = Vector({10, 20}, DType::kF32),
               out = Empty({3, 2}, DType::kF32);
  RunClass(OpClass::kPointwise, p, {TensorValue(x), TensorValue(y), ScalarValue(Scalar(2))}, out,
           DType::kF32);
  CHECK(Values(out) == Numbers{21, 44, 22, 45, 23, 46});
  const Tensor many = Empty({600});  // more than two blocks
  portable::FromLanes(Numbers(600, 3), many);
  const Tensor result = Empty({600});
  RunClass(OpClass::kPointwise, p, {TensorValue(many), TensorValue(Of({1}, {1})), ScalarValue(Scalar(.5))},
           result, DType::kF64);
  CHECK(Values(result) == Numbers(600, 3.5));
}

TEST_CASE("the factory kernel counts coordinates", "[kernels]") {
  Program p({}, {}, {Number(10, 10)});
  const Code code = {Source(MICA_OP_COORD, 0, 0), Source(MICA_OP_COORD, 1, -1), Source(MICA_OP_CONST, 2),
                     Op(MICA_OP_MUL, 3, 0, 2),    Op(MICA_OP_ADD, 4, 3, 1),     Store(4)};
  p.main = View(code);
  const Tensor out = Empty({2, 3}, DType::kI64);
  RunClass(OpClass::kFactory, p, {}, out, DType::kI64);
  CHECK(Ints(out) == Integers{0, 1, 2, 10, 11, 12});
}

// Two states: the largest element and its index.
TEST_CASE("the reduction kernel carries several states and the index", "[kernels]") {
  Program p({0}, {}, {{-std::numeric_limits<double>::infinity(), INT64_MIN, 0, 0}, Number(0, 0)});
  p.num_states = 2;
  p.dims_arg = 1;
  const Code init = {Source(MICA_OP_CONST, 0, 0), Source(MICA_OP_CONST, 1, 1), StoreState(0, 0),
                     StoreState(1, 1)};
  const Code step = {Source(MICA_OP_STATE, 0, 0),
                     Source(MICA_OP_STATE, 1, 1),
                     Source(MICA_OP_ELEMENT, 2),
                     Source(MICA_OP_INDEX, 3),
                     Op(MICA_OP_GT, 4, 2, 0),
                     Op(MICA_OP_SELECT, 5, 4, 2, 0),
                     Op(MICA_OP_SELECT, 6, 4, 3, 1),
                     StoreState(5, 0),
                     StoreState(6, 1)};
  const Code finish = {Source(MICA_OP_STATE, 0, 1), Store(0)};
  p.init = View(init);
  p.main = View(step);
  p.finish = View(finish);
  const Tensor x = Of({2, 3}, {1, 9, 3, 8, 5, 6}), columns = Empty({3}, DType::kI64),
               rows = Empty({2}, DType::kI64), all = Empty({}, DType::kI64);
  RunClass(OpClass::kReduction, p, {TensorValue(x), IntValue(0)}, columns, DType::kF64);
  CHECK(Ints(columns) == Integers{1, 0, 1});
  RunClass(OpClass::kReduction, p, {TensorValue(x), IntValue(-1)}, rows, DType::kF64);
  CHECK(Ints(rows) == Integers{1, 0});
  RunClass(OpClass::kReduction, p, {TensorValue(x), MicaValue{}}, all, DType::kF64);
  CHECK(Ints(all) == Integers{1});
}

// Counts of elements other than 0 go beyond what bool and int8 hold.
TEST_CASE("the reduction kernel counts in the dtype of its output", "[kernels]") {
  Program p({0}, {}, {Number(0, 0), Number(1, 1)});
  p.num_states = 1;
  const Code init = {Source(MICA_OP_CONST, 0, 0), StoreState(0)};
  const Code step = {Source(MICA_OP_STATE, 0),    Source(MICA_OP_ELEMENT, 1),
                     Op(MICA_OP_TO_MASK, 2, 1),   Source(MICA_OP_CONST, 3, 1),
                     Source(MICA_OP_CONST, 4, 0), Op(MICA_OP_SELECT, 5, 2, 3, 4),
                     Op(MICA_OP_ADD, 6, 0, 5),    StoreState(6)};
  const Code finish = {Source(MICA_OP_STATE, 0), Store(0)};
  p.init = View(init);
  p.main = View(step);
  p.finish = View(finish);
  for (const DType dtype : {DType::kBool, DType::kI8}) {
    const Tensor out = Empty({}, DType::kI64);
    RunClass(OpClass::kReduction, p, {TensorValue(Vector(Numbers(300, 1), dtype))}, out, dtype);
    CHECK(Ints(out) == Integers{300});
  }
}

TEST_CASE("scalars wrap to the compute dtype", "[kernels]") {
  const Program p({}, {0}, {});
  const MicaValue minus_one = ScalarValue(Scalar(-1));
  Machine<int64_t> m(p, &minus_one, DType::kU8);
  const Code code = {Source(MICA_OP_SCALAR, 0), Store(0)};
  m.Run(View(code), 1);
  CHECK(m.output(0)[0] == 255);
}

TEST_CASE("the scan kernel finishes at each step", "[kernels]") {
  Program p({0}, {}, {Number(0, 0)});
  p.num_states = 1;
  p.dims_arg = 1;
  const Code init = {Source(MICA_OP_CONST, 0), StoreState(0)};
  const Code step = {Source(MICA_OP_STATE, 0), Source(MICA_OP_ELEMENT, 1), Op(MICA_OP_ADD, 2, 0, 1),
                     StoreState(2)};
  const Code finish = {Source(MICA_OP_STATE, 0), Store(0)};
  p.init = View(init);
  p.main = View(step);
  p.finish = View(finish);
  const Tensor x = Of({2, 3}, {1, 2, 3, 4, 5, 6}), out = Empty({2, 3});
  RunClass(OpClass::kScan, p, {TensorValue(x), IntValue(1)}, out, DType::kF64);
  CHECK(Values(out) == Numbers{1, 3, 6, 4, 9, 15});
  RunClass(OpClass::kScan, p, {TensorValue(x), IntValue(0)}, out, DType::kF64);
  CHECK(Values(out) == Numbers{1, 2, 3, 5, 7, 9});
}

// x - mean(x) in two stages' worth of codes: the stage sums, the map subtracts.
TEST_CASE("the row kernel maps with the results of its stages", "[kernels]") {
  Program p({0}, {}, {Number(0, 0)});
  p.num_states = 1;
  p.dims_arg = 1;
  const Code init = {Source(MICA_OP_CONST, 0), StoreState(0)};
  const Code step = {Source(MICA_OP_STATE, 0), Source(MICA_OP_ELEMENT, 1), Op(MICA_OP_ADD, 2, 0, 1),
                     StoreState(2)};
  const Code finish = {Source(MICA_OP_STATE, 0), Source(MICA_OP_COUNT, 1), Op(MICA_OP_DIV, 2, 0, 1),
                       StoreState(2)};
  const Code map = {Source(MICA_OP_ELEMENT, 0), Source(MICA_OP_STATE, 1), Op(MICA_OP_SUB, 2, 0, 1), Store(2)};
  p.init = View(init);
  p.main = View(step);
  p.finish = View(finish);
  p.map = View(map);
  const Tensor x = Of({2, 2}, {1, 3, 10, 30}), out = Empty({2, 2}, DType::kF32);
  RunClass(OpClass::kRow, p, {TensorValue(x), IntValue(-1)}, out, DType::kF64);
  CHECK(Values(out) == Numbers{-1, 1, -10, 10});
}

}  // namespace
}  // namespace mica::testing
