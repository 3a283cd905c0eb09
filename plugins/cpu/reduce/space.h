// How a reduction, scan or row operator walks its tensors: the kept dimensions
// (outer space) and the reduced, scanned or row dimensions (inner space).
//
// Element (o, i) of operand k stands at outer.operands[k].data +
// outer.Offset(k, o) + inner.Offset(k, i). Operands are the inputs in the order
// of the program's table, then the outputs.
#ifndef MICA_PLUGINS_CPU_REDUCE_SPACE_H_
#define MICA_PLUGINS_CPU_REDUCE_SPACE_H_

#include <cstdint>

#include "plugins/cpu/engine/iteration.h"

namespace mica::cpu {

struct ReduceCall {
  const MicaCall* call;
  const MicaValue* args;
  MicaTensor* const* outputs;
  int64_t num_outputs;
  int32_t num_inputs;
  const MicaTensor* inputs[kMaxInputs];
};

struct Space {
  Iteration outer;
  Iteration inner;
  int32_t num_inputs;
  bool reduced[kMaxDims];  // by dimension of the first input

  int OutputOperand(int output) const { return num_inputs + output; }
};

// Reads a class kernel's arguments; throws where an input is absent.
ReduceCall MakeReduceCall(const MicaCall* call, const MicaValue* args, MicaTensor* const* outputs,
                          int64_t num_outputs);

// `keeps_order` when positions in the inner space have a meaning (an index).
// `elementwise` when outputs have the input's dimensions (scan, row), not only
// the kept ones.
void MakeSpace(const ReduceCall& call, bool keeps_order, bool elementwise, Space* space);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_SPACE_H_
