// Many calls of one pointwise operator in one launch: `foreach` operators and optimizers' steps over lists of
// tensors, on a device whose class kernel takes lists (MicaClassListFunction).
//
// Every call is checked as a call of its own would be, and a row that is in any way unusual (a layer has
// work, memory with gaps, an output that is resized or shares memory with another row) is left to be called
// for itself.
#pragma once

#include <vector>

#include "dispatcher/tables/operator.h"
#include "tensor/tensor.h"

namespace mica {

// The arguments of the calls, one row of `op.spec().num_args` after another.
struct ListOfCalls {
  const Operator& op;
  std::vector<MicaValue> args;
  size_t count = 0;

  const MicaValue* row(size_t i) const { return args.data() + i * static_cast<size_t>(op.spec().num_args); }
};

// Makes those of the calls that the device takes together; which, by row. Results of a functional form go to
// `results`, num_outputs for each row, as undefined tensors where the row was not called. Throws what a call
// throws whose output may not be written, before anything is.
std::vector<bool> CallList(const ListOfCalls& calls, std::vector<Tensor>& results);

}  // namespace mica
