// Gradient against what it must look like.
#include "keys/autograd/validate.h"

#include "keys/autograd/engine_ops.h"
#include "tensor/shape.h"

namespace mica::autograd {
namespace {

// Whether `from` came of `to` by broadcasting.
bool SumsTo(IntSpan from, IntSpan to) {
  if (to.size() > from.size()) return false;
  const int64_t lead = from.size() - to.size();
  for (int64_t i = 0; i < to.size(); ++i)
    if (to[i] != from[lead + i] && to[i] != 1) return false;
  return true;
}

}  // namespace

void ValidateGradient(const Node& source, int index, const OutputInfo& expected, Tensor& grad) {
  if (__builtin_expect(grad.sizes() == expected.sizes() && grad.dtype() == expected.dtype &&
                           grad.device() == expected.device,
                       1)) {
    return;
  }
  if (grad.sizes() != expected.sizes()) {
    MICA_CHECK(SumsTo(grad.sizes(), expected.sizes()), "The backward of ", source.name(),
               " returned a gradient of shape ", ShapeText(grad.sizes()), " for input (", index,
               "); expected shape ", ShapeText(expected.sizes()), ".");
    grad = ops::SumToSize(grad, expected.sizes());
  }
  if (grad.dtype() != expected.dtype) {
    MICA_CHECK(IsDifferentiable(grad.dtype()), "The backward of ", source.name(),
               " returned a gradient of dtype (", Name(grad.dtype()), ") for input (", index,
               "), whose dtype is (", Name(expected.dtype), "); gradients are floating or complex.");
    if (IsComplex(grad.dtype()) && !IsComplex(expected.dtype)) grad = ops::Real(grad);
    if (grad.dtype() != expected.dtype) grad = ops::ToDType(grad, expected.dtype);
  }
  if (!(grad.device() == expected.device)) {
    MICA_CHECK(grad.ndim() == 0, "The backward of ", source.name(), " returned a gradient on the device (",
               grad.device().ToString(), ") for input (", index, "), which is on the device (",
               expected.device.ToString(), ").");
    grad = ops::ToDevice(grad, expected.device);
  }
}

void ValidateRootGradient(const Tensor& output, int index, Tensor& grad) {
  MICA_CHECK(grad.sizes() == output.sizes(), "The shape ", ShapeText(grad.sizes()), " of gradient (", index,
             ") differs from the shape ", ShapeText(output.sizes()), " of the output it belongs to.");
  MICA_CHECK(IsComplex(grad.dtype()) == IsComplex(output.dtype()) || !IsComplex(grad.dtype()), "The dtype (",
             Name(grad.dtype()), ") of gradient (", index, ") is complex, and the dtype (",
             Name(output.dtype()), ") of its output is real.");
  MICA_CHECK(IsDifferentiable(grad.dtype()), "The dtype (", Name(grad.dtype()), ") of gradient (", index,
             ") is neither floating nor complex.");
  if (grad.dtype() != output.dtype()) grad = ops::ToDType(grad, output.dtype());
}

void CheckHookResult(const Node& node, const Tensor& grad, const Tensor& changed) {
  if (!changed.defined() || changed.is_same(grad)) return;
  MICA_CHECK(grad.defined(), "A hook of ", node.name(),
             " returned a gradient where none flows: it got None, and must return None.");
  MICA_CHECK(changed.sizes() == grad.sizes(), "A hook of ", node.name(), " got a gradient of the shape ",
             ShapeText(grad.sizes()), " and returned one of the shape ", ShapeText(changed.sizes()), ".");
  MICA_CHECK(changed.dtype() == grad.dtype(), "A hook of ", node.name(), " got a gradient of the dtype (",
             Name(grad.dtype()), ") and returned one of the dtype (", Name(changed.dtype()), ").");
  MICA_CHECK(changed.device() == grad.device(), "A hook of ", node.name(), " got a gradient on the device (",
             grad.device().ToString(), ") and returned one on the device (", changed.device().ToString(),
             ").");
}

}  // namespace mica::autograd
