#include "dispatcher/devices/device_fill.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/structured.h"
#include "dispatcher/devices/device_memory.h"
#include "tensor/shape.h"

namespace mica {
namespace {

// Whether the number may be alike bytes in a dtype. Of floats nonzero ones are left to kernels.
bool MayBeAlike(const MicaScalar& value, DType dtype) {
  const bool zero = value.tag == MICA_SCALAR_FLOAT ? value.u.f == 0 && !std::signbit(value.u.f)
                                                   : value.tag != MICA_SCALAR_COMPLEX && value.u.i == 0;
  return zero || ItemSize(dtype) == 1 || (IsInteger(dtype) && value.tag == MICA_SCALAR_INT);
}

// The byte that an element consists of after the call, none where its bytes differ. What the number becomes,
// and whether it fits, says the CPU's kernel.
std::optional<uint8_t> ByteOf(const Operator& op, DType dtype, const MicaValue* args, int64_t num_args) {
  if (num_args == 1) return 0;
  if (!MayBeAlike(args[1].u.scalar, dtype)) return std::nullopt;
  const Tensor one = EmptyTensor({}, dtype, Device{});
  const MicaValue on_cpu[2] = {AbiType<const Tensor&>::Box(one.impl()), args[1]};
  MicaValue unused;
  op.RedispatchBoxed(KeySet::Of(keys::kCpu), on_cpu, 2, &unused);
  const auto* bytes = static_cast<const uint8_t*>(one.data());
  const bool alike = std::all_of(bytes, bytes + one.itemsize(), [&](uint8_t b) { return b == bytes[0]; });
  return alike ? std::optional(bytes[0]) : std::nullopt;
}

}  // namespace

bool FillsBytes(std::string_view op) { return op == "mica::zero_" || op == "mica::fill_.Scalar"; }

void RunFill(const BoxedKernel& kernel, const Operator& op, KeySet keys, const MicaValue* args,
             int64_t num_args, MicaValue* results) {
  const Tensor& self = Tensor::Ref(args[0].u.tensor);
  if (self.numel() > 0 && IsNonOverlappingAndDense(self.sizes(), self.strides())) {
    CheckWritable(self, op.spec());
    const std::optional<uint8_t> byte = ByteOf(op, self.dtype(), args, num_args);
    if (byte && FillBytes(self.data(), self.device(), *byte, self.numel() * self.itemsize()))
      return MarkWritten(self, op.spec());
  }
  const auto& other = *static_cast<const BoxedKernel*>(kernel.context);
  other.fn(other, op, keys, args, num_args, results);
}

}  // namespace mica
