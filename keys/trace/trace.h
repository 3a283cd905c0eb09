// Trace: the frame kind "trace". One boxed kernel serves every operator: it records the call
// on the frame's tape (dispatcher/layers/tracing.h) and computes it in the parent, or on meta
// tensors where the tape is fake.
//
// The kind has an Autograd of its own, as grad has: where something of the trace requires
// grad, Autograd's kernels run on the wrappers, and what they call below themselves is
// recorded. So a backward inside of the function is part of the trace. Without gradients an
// operator is recorded as it was called, composites and writes included.
#pragma once

#include "dispatcher/layers/tracing.h"
#include "dispatcher/registration/registration.h"

namespace mica::trace {

// The current frame's wrapper of `t` (frames::EnterTrace).
Tensor Enter(const Tensor& t, bool as_input);

// A tensor without memory that looks like `t`.
Tensor OnMeta(const Tensor& t);

// Calls `op`, of which `args` are the frame's, in its parent.
void Compute(const Operator& op, const frames::Tape& tape, const MicaValue* args, int64_t n,
             MicaValue* results);
// The same for an operator that returns numbers or nothing but Python values. Raises where
// they depend on the values of tensors.
void ComputeNumber(const Operator& op, const MicaValue* args, int64_t n, MicaValue* results);

}  // namespace mica::trace
