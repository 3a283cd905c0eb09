// Tensors written from one device to another, and the operators that the host
// serves on every device with a table: copy_ and reading one element.
//
// Bytes cross in whole blocks: what is dense goes over as it lies; the rest is
// converted and laid out on the CPU, or on the device by a kernel of its own
// (copy_, or its class kernel for pointwise operators), never element by element.
#pragma once

#include "dispatcher/tables/operator.h"
#include "tensor/tensor.h"

namespace mica {

// `source`, broadcast and converted, into `destination`, on whatever devices,
// below every layer.
void CopyValues(const Tensor& destination, const Tensor& source, bool non_blocking = false);
// A CPU tensor with the values of `t`, in the memory order of `t`; `t` itself if it is on the CPU.
Tensor OnHost(const Tensor& t);
// The same on `device`.
Tensor OnDevice(const Tensor& t, Device device);

// What a kernel of the host is called by, or NULL: a BoxedFunction for operators
// of any device with a table. Its context is the StructuredContext of the backend's
// own kernel, which may be empty.
BoxedFunction HostKernel(std::string_view op);

}  // namespace mica
