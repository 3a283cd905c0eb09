// Program: a MicaProgram of sdk/include/mica/program.h while it is being built.
//
// expr/ fills it from `compute` and `reduce`; emit/registry prints it as static
// tables. Always holds: a register is written once, at most 250 of them; numbers
// in input_args and scalar_args are argument numbers of the functional form.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <mica/program.h>

namespace mica::codegen {

inline constexpr int kMaxRegisters = 250;

using Code = std::vector<MicaInstruction>;

struct Program {
  std::string class_name;
  std::string source;
  std::string hint;
  int num_outputs = 0;
  int num_states = 0;
  int num_registers = 0;
  std::vector<int32_t> input_args;
  std::vector<int32_t> scalar_args;
  std::vector<MicaConstant> constants;
  Code main, init, combine, finish, map;
  int dims_arg = -1;
  int keepdim_arg = -1;
  int flags = 0;
  int first_state = 0;  // row: states below are results of earlier stages
  // gather, scatter, window, contraction: the fields of MicaProgram
  Code index, keep;
  int data_arg = -1, source_arg = -1, index_arg = -1, index_place = 0;
  int bounds = 0, fill_arg = -1, dim = MICA_NO_DIM;
  std::vector<int32_t> list_args;
  int num_windowed = 0, kernel_arg = -1, stride_arg = -1, pad_arg = -1, dilation_arg = -1, output_arg = -1;
  int join = 0;
  std::string equation;
  std::shared_ptr<const Program> next;  // row: the following stage

  bool operator==(const Program&) const;
  // The numbers of gather, scatter and window, in the order of MicaProgram.
  std::vector<int> Places() const {
    return {data_arg,     source_arg, index_arg,  index_place, bounds,       fill_arg,  dim,
            num_windowed, kernel_arg, stride_arg, pad_arg,     dilation_arg, output_arg};
  }
};

// A readable listing, one instruction a line: "r2 = MUL r0 r1".
std::string Listing(const Program& program);

}  // namespace mica::codegen
