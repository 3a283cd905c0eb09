// zero_ and fill_ through `fill` of the device table, which sets all bytes of a range to one: for a device
// without kernels of its own for these forms, where a tensor has no gaps and the bytes of its elements are
// alike.
#pragma once

#include "dispatcher/tables/operator.h"

namespace mica {

// Whether the host may serve the operator so: zero_(self) and fill_.Scalar(self, value).
bool FillsBytes(std::string_view op);
// A BoxedFunction for such an operator of a device with a table. Its context is the BoxedKernel that serves
// all other calls.
void RunFill(const BoxedKernel& kernel, const Operator& op, KeySet keys, const MicaValue* args,
             int64_t num_args, MicaValue* results);

}  // namespace mica
