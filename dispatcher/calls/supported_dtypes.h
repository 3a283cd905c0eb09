// Whether an operator computes in a dtype. Asked of every structured call after its meta
// function, on the meta device too, and before any memory is written.
#pragma once

#include "dispatcher/tables/operator.h"

namespace mica {

inline bool Supports(const OperatorSpec& spec, DType compute_dtype) {
  return (spec.supports >> static_cast<int>(Kind(compute_dtype))) & 1;
}
// Throws NotImplementedError unless `spec` supports `compute_dtype` (MICA_DTYPE_NONE: nothing to
// ask). The sentence names the argument that has it and the dtypes that would do.
void CheckSupported(const OperatorSpec& spec, const Operator& op, const MicaValue* args, int64_t n,
                    int32_t compute_dtype);

}  // namespace mica
