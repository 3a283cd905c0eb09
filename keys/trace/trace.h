// Trace: the frame kind "trace". One boxed kernel serves every operator: it records the call
// on the frame's tape (tape.h) and computes it in the parent, or on meta
// tensors where the tape is fake.
//
// The kind has an Autograd of its own, as grad has: where something of the trace requires
// grad, Autograd's kernels run on the wrappers, and what they call below themselves is
// recorded. So a backward inside of the function is part of the trace. Without gradients an
// operator is recorded as it was called, composites and writes included.
#pragma once

#include "keys/trace/tape.h"

namespace mica::trace {

// The wrapper of the current frame that stands for `t`: `t` itself if it is one and has a number, else a
// new input or constant.
Tensor Enter(const Tensor& t, bool as_input);

// A tensor without memory that looks like `t`.
Tensor OnMeta(const Tensor& t);

// Makes the call, whose arguments are the frame's, in its parent.
void Compute(layer::Call& call, const Tape& tape);
// The same for an operator that returns numbers or nothing but Python values. Raises where
// they depend on the values of tensors.
void ComputeNumber(layer::Call& call);

}  // namespace mica::trace
