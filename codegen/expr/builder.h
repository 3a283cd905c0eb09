// ProgramBuilder: appends typed instructions to one code of a Program, folding
// constants and sharing equal instructions.
//
// A Value is either a register or a constant that has not been given one yet; a
// constant gets its register when an instruction needs it. Registers are written
// once, and are numbered from 0 in each code (main, init, ...), since the codes
// of a program run one after the other.
#pragma once

#include <map>
#include <optional>
#include <tuple>

#include "codegen/expr/opcodes.h"
#include "codegen/program.h"

namespace mica::codegen {

struct Value {
  LaneType type = LaneType::kLane;
  int reg = -1;  // -1: a constant
  std::optional<MicaConstant> constant;
  bool is_constant() const { return constant.has_value(); }
};

class ProgramBuilder {
 public:
  ProgramBuilder(Program* program, ComputeKind kind) : program_(program), kind_(kind) {}

  ComputeKind kind() const { return kind_; }
  // Instructions go to `code` from now on.
  void Begin(Code* code);

  static Value Constant(double f, int64_t i, bool is_integer);
  Value Source(int opcode, int aux);
  // The next random number of an element: no two draws are shared.
  Value Draw(int opcode) { return Source(opcode, draws_++); }
  Value Load(int arg);              // a Tensor argument of the functional form
  Value Scalar(int arg);            // a number argument
  Value List(int opcode, int arg);  // LIST, BEFORE or AFTER of a list argument
  Value Given(int arg);             // a mask: whether an optional number is given
  // Operands have the types that the opcode takes. False when the registers run
  // out (kMaxRegisters).
  bool Emit(int opcode, const Value* operands, int count, Value* result);
  bool Store(int opcode, int aux, const Value& value);

 private:
  std::optional<Value> Fold(int opcode, const Value* operands, int count) const;
  int RegisterOf(const Value& value);  // -1 when there is none left
  int NewRegister();
  int IndexOf(std::vector<int32_t>* table, int arg);

  Program* program_;
  ComputeKind kind_;
  Code* code_ = nullptr;
  int next_register_ = 0;
  int draws_ = 0;
  std::map<std::tuple<int, int, int, int, int>, int> known_;
};

}  // namespace mica::codegen
