// Makes a gradient fit the tensor that it belongs to, or refuses it.
#pragma once

#include "keys/autograd/node.h"

namespace mica::autograd {

// What broadcasting added is summed away, complex becomes real for a real tensor,
// the dtype is cast, a 0-d CPU gradient goes to the device. Other differences of
// shape throw an Error that names `source`, the node that returned `grad` as
// number `index`.
void ValidateGradient(const Node& source, int index, const OutputInfo& expected, Tensor& grad);
// The same test for gradients that the user gave for `output` number `index`.
void ValidateRootGradient(const Tensor& output, int index, Tensor& grad);
// Throws if a hook of `node` or of its tensors made of a gradient one that cannot stand for it.
void CheckHookResult(const Node& node, const Tensor& grad, const Tensor& changed);

}  // namespace mica::autograd
