// Calls the kernels that a table found for one operator and backend, over outputs that are ready.
//
// Used by whoever makes the outputs of a structured operator: structured.cc for any call, alike.cc for the
// usual one of a pointwise operator. What must surround every kernel is here: the current device and stream,
// the layers that its own calls skip, the check of what it writes, and who comes next when it refuses.
#pragma once

#include "dispatcher/calls/structured.h"
#include "dispatcher/tables/operator.h"
#include "tensor/tensor.h"

namespace mica {

// The call that a leaf kernel gets; without a program.
MicaCall MakeCall(const StructuredContext& c, int32_t compute_dtype, Device device);
// The operator's program for calls that compute in that dtype (MICA_DTYPE_NONE: any), or NULL.
const MicaProgram* ProgramFor(const OperatorSpec& functional, int32_t compute_dtype);

inline bool Refused(MicaStatus s) { return s == BareStatus(MICA_ERROR_NOT_IMPLEMENTED); }

// Calls the backend's kernel for the class, `c.class_fn`; where it refuses, those that it has replaced.
inline MicaStatus CallClassKernels(const StructuredContext& c, MicaCall& call, const MicaValue* args,
                                   int64_t n, MicaTensor* const* outs, int64_t num_outs) {
  MicaStatus status;
  const StructuredContext* k = &c;
  do {
    call.context = k->class_context;
    status = k->class_fn(&call, args, n, outs, num_outs);
    k = k->replaced_class;
  } while (k && Refused(status));
  return status;
}

// Fills `outs` from arguments of the functional form. False when no kernel of the backend takes the call: the
// caller has another way. On the CPU there is none, and that is a kNotImplemented Error.
bool RunKernel(const StructuredContext& c, const Operator& op, int32_t compute_dtype, const MicaValue* args,
               TensorSpan outs);

// What is left when a device's kernels refuse a call: the decomposition, else the CPU.
void RunWithoutKernel(const StructuredContext& c, const Operator& op, KeySet keys, const MicaValue* args,
                      int64_t n, MicaValue* results);

// At most this many threads in a kernel.
void SetNumThreads(int n);
int NumThreads();

}  // namespace mica
