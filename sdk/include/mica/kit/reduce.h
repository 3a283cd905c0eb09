// What reductions, scans and rows share: a call's dimensions and operands, and the
// text of their kernels.
#pragma once

#include <vector>

#include "classes.h"

namespace opencl_device {

enum class Form { kReduction, kScan, kRow };

struct ReduceCall {
  const MicaCall* call;
  const MicaValue* args;
  Form form;
  int32_t lane;
  bool ordered;        // the program reads `index`
  int team = 1;        // work-items for a row
  int64_t splits = 1;  // groups for a row, whose states a second kernel combines
  bool small = true;
  Space kept;                              // operands: inputs, then outputs
  Space taken;                             // inputs, and the outputs of scans and rows
  std::vector<int32_t> input_args;         // of the operands that are inputs
  std::vector<const MicaProgram*> stages;  // one, but for rows
  int64_t num_outputs;

  int64_t rows() const { return kept.Count(); }
  int64_t length() const { return taken.Count(); }
  int num_states() const { return stages.back()->num_states; }
  size_t num_inputs() const { return input_args.size(); }
  // The operand that input `i` of a stage reads.
  size_t OperandOf(const MicaProgram& stage, int i) const;
};

ReduceCall MakeReduceCall(const MicaCall* call, const MicaValue* args, MicaTensor* const* outputs,
                          int64_t num_outputs, Form form);

// The program text. Entries: "whole"; and, for splits, "part" and "rest".
std::string ReduceSource(const ReduceCall& c, const Device& device);

}  // namespace opencl_device
