// One element of CPU memory as a Scalar, and back.
#pragma once

#include "tensor/tensor.h"

namespace mica::python {

// The element of a tensor of one element, whatever its device; throws a kRuntime
// Error for other tensors. May give the GIL up for a device copy.
Scalar ItemOf(const Tensor& t);
// Whether a transformation's tensor stands for many values (vmap), so that it has no single one to read.
bool StandsForBatch(const Tensor& t);
// The element of dtype `d` at `data` (CPU memory).
Scalar ReadElement(const void* data, DType d);
// Writes `s`, converted; throws kOverflow when an integer dtype cannot hold it.
void WriteElement(void* data, DType d, const Scalar& s);

}  // namespace mica::python
