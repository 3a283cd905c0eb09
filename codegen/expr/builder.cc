// Instruction selection's last step: constants, sharing, register numbers.
#include "codegen/expr/builder.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace mica::codegen {
namespace {

MicaConstant MakeConstant(double f, int64_t i, bool is_integer) { return {f, i, is_integer, 0}; }

int64_t Saturate(double f) {
  if (std::isnan(f)) return 0;
  if (f >= 9223372036854775808.0) return std::numeric_limits<int64_t>::max();
  if (f < -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(f);
}

// Value of a unary function of a constant in double, if it is one of those that
// constants are written with.
std::optional<double> FoldUnary(int opcode, double a) {
  switch (opcode) {
    case MICA_OP_NEG:
      return -a;
    case MICA_OP_ABS:
      return std::fabs(a);
    case MICA_OP_SQUARE:
      return a * a;
    case MICA_OP_SQRT:
      return std::sqrt(a);
    case MICA_OP_RSQRT:
      return 1 / std::sqrt(a);
    case MICA_OP_RECIPROCAL:
      return 1 / a;
    case MICA_OP_EXP:
      return std::exp(a);
    case MICA_OP_LOG:
      return std::log(a);
    case MICA_OP_LOG2:
      return std::log2(a);
    case MICA_OP_LOG10:
      return std::log10(a);
    default:
      return std::nullopt;
  }
}

std::optional<double> FoldBinary(int opcode, double a, double b) {
  switch (opcode) {
    case MICA_OP_ADD:
      return a + b;
    case MICA_OP_SUB:
      return a - b;
    case MICA_OP_MUL:
      return a * b;
    case MICA_OP_DIV:
      return a / b;
    case MICA_OP_POW:
      return std::pow(a, b);
    default:
      return std::nullopt;
  }
}

bool FoldIntegers(int opcode, int64_t a, int64_t b, int64_t* out) {
  switch (opcode) {
    case MICA_OP_NEG:
      return !__builtin_sub_overflow(int64_t{0}, a, out);
    case MICA_OP_ADD:
      return !__builtin_add_overflow(a, b, out);
    case MICA_OP_SUB:
      return !__builtin_sub_overflow(a, b, out);
    case MICA_OP_MUL:
      return !__builtin_mul_overflow(a, b, out);
    default:
      return false;
  }
}

}  // namespace

void ProgramBuilder::Begin(Code* code) {
  code_ = code;
  next_register_ = 0;
  known_.clear();
}

Value ProgramBuilder::Constant(double f, int64_t i, bool is_integer) {
  Value value;
  value.constant = MakeConstant(f, i, is_integer);
  return value;
}

int ProgramBuilder::NewRegister() {
  if (next_register_ >= kMaxRegisters) return -1;
  const int reg = next_register_++;
  if (program_->num_registers < next_register_) program_->num_registers = next_register_;
  return reg;
}

int ProgramBuilder::IndexOf(std::vector<int32_t>* table, int arg) {
  for (size_t i = 0; i < table->size(); ++i)
    if ((*table)[i] == arg) return static_cast<int>(i);
  table->push_back(arg);
  return static_cast<int>(table->size()) - 1;
}

Value ProgramBuilder::Load(int arg) { return Source(MICA_OP_LOAD, IndexOf(&program_->input_args, arg)); }
Value ProgramBuilder::Scalar(int arg) { return Source(MICA_OP_SCALAR, IndexOf(&program_->scalar_args, arg)); }

Value ProgramBuilder::List(int opcode, int arg) { return Source(opcode, IndexOf(&program_->list_args, arg)); }
Value ProgramBuilder::Given(int arg) {
  Value value = Source(MICA_OP_GIVEN, IndexOf(&program_->scalar_args, arg));
  value.type = LaneType::kMask;
  return value;
}

Value ProgramBuilder::Source(int opcode, int aux) {
  const auto key = std::make_tuple(opcode, 255, 255, 255, aux);
  const auto it = known_.find(key);
  Value value;
  if (it != known_.end() && !IsRandom(opcode)) {
    value.reg = it->second;
    return value;
  }
  value.reg = NewRegister();
  if (value.reg < 0) return value;
  code_->push_back({static_cast<uint16_t>(opcode), static_cast<uint8_t>(value.reg), 255, 255, 255,
                    static_cast<int16_t>(aux)});
  known_[key] = value.reg;
  return value;
}

int ProgramBuilder::RegisterOf(const Value& value) {
  if (!value.is_constant()) return value.reg;
  const MicaConstant& c = *value.constant;
  int index = -1;
  for (size_t i = 0; i < program_->constants.size() && index < 0; ++i) {
    const MicaConstant& k = program_->constants[i];
    if (std::memcmp(&k.f, &c.f, sizeof c.f) == 0 && k.i == c.i && k.is_integer == c.is_integer)
      index = static_cast<int>(i);
  }
  if (index < 0) {
    index = static_cast<int>(program_->constants.size());
    program_->constants.push_back(c);
  }
  return Source(MICA_OP_CONST, index).reg;
}

std::optional<Value> ProgramBuilder::Fold(int opcode, const Value* operands, int count) const {
  // A real kind has no imaginary part, and an integer no fraction.
  if (count == 1 && kind_ != ComputeKind::kComplex) {
    if (opcode == MICA_OP_REAL || opcode == MICA_OP_CONJ) return operands[0];
    if (opcode == MICA_OP_IMAG) return Constant(0, 0, true);
  }
  if (count == 1 && (kind_ == ComputeKind::kInt || kind_ == ComputeKind::kBool) && opcode >= MICA_OP_FLOOR &&
      opcode <= MICA_OP_ROUND)
    return operands[0];
  for (int k = 0; k < count; ++k)
    if (!operands[k].is_constant()) return std::nullopt;
  if (count == 0 || count > 2) return std::nullopt;
  const MicaConstant& a = *operands[0].constant;
  const MicaConstant& b = *operands[count - 1].constant;
  if (a.is_integer && b.is_integer) {
    int64_t i = 0;
    if (FoldIntegers(opcode, a.i, b.i, &i)) return Constant(static_cast<double>(i), i, true);
  }
  const std::optional<double> f = count == 1 ? FoldUnary(opcode, a.f) : FoldBinary(opcode, a.f, b.f);
  if (!f) return std::nullopt;
  return Constant(*f, Saturate(*f), false);
}

bool ProgramBuilder::Emit(int opcode, const Value* operands, int count, Value* result) {
  if (std::optional<Value> folded = Fold(opcode, operands, count)) {
    *result = *folded;
    return true;
  }
  // x ** 2 is a product, as torch has it.
  if (opcode == MICA_OP_POW && operands[1].is_constant() && operands[1].constant->f == 2.0)
    return Emit(MICA_OP_SQUARE, operands, 1, result);
  int regs[3] = {255, 255, 255};
  for (int k = 0; k < count; ++k)
    if ((regs[k] = RegisterOf(operands[k])) < 0) return false;
  *result = Value();
  result->type = kOpcodeInfo[opcode].result == 'M' ? LaneType::kMask : LaneType::kLane;
  const auto key = std::make_tuple(opcode, regs[0], regs[1], regs[2], 0);
  const auto it = known_.find(key);
  if (it != known_.end()) {
    result->reg = it->second;
    return true;
  }
  if ((result->reg = NewRegister()) < 0) return false;
  code_->push_back({static_cast<uint16_t>(opcode), static_cast<uint8_t>(result->reg),
                    static_cast<uint8_t>(regs[0]), static_cast<uint8_t>(regs[1]),
                    static_cast<uint8_t>(regs[2]), 0});
  known_[key] = result->reg;
  return true;
}

bool ProgramBuilder::Store(int opcode, int aux, const Value& value) {
  const int reg = RegisterOf(value);
  if (reg < 0) return false;
  code_->push_back(
      {static_cast<uint16_t>(opcode), 255, static_cast<uint8_t>(reg), 255, 255, static_cast<int16_t>(aux)});
  return true;
}

}  // namespace mica::codegen
