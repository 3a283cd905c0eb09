// Results that are written straight into a tensor that the caller gave: when a kernel may
// see an output that is one of its inputs, and when it converts the result itself.
//
// Used by structured.cc for in-place and out forms; where either says no, the result is
// made beside the output and copied.
#pragma once

#include "dispatcher/calls/structured.h"
#include "dispatcher/tables/operator.h"
#include "tensor/tensor.h"

namespace mica {

// A program of the operator, whichever the dtype; NULL where it has none.
const MicaProgram* AnyProgram(const OperatorSpec& spec);

// Whether `out` shares memory with an input in a way that no kernel of the operator may
// see; throws where a pointwise operator gets an output that shares a part of an input.
bool MustNotAlias(const Operator& op, const Tensor& out, const char* out_name, const MicaValue* args,
                  int64_t n);

// Whether the kernel stores results of dtype `want` into `out`, of another dtype, as a
// conversion of them would be.
bool ConvertsAtStore(const StructuredContext& c, DType want, const Tensor& out);

}  // namespace mica
