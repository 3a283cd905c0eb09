// backward() and grad(): roots and sinks from the user's tensors, then a
// GraphTask.
#pragma once

#include <vector>

#include "keys/autograd/node.h"

namespace mica::autograd {

void Backward(const GradientPoints& outputs, TensorSpan grads, const GradientPoints& inputs,
              const BackwardOptions& options);
std::vector<Tensor> Gradients(const GradientPoints& outputs, const GradientPoints& inputs,
                              TensorSpan grad_outputs, const BackwardOptions& options);

// retain_grad(): the gradient of a tensor that is no leaf is kept too.
void RetainGrad(const Tensor& t);

}  // namespace mica::autograd
