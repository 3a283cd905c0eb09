// backward() and grad(): roots and sinks from the user's tensors, then a
// GraphTask.
#pragma once

#include <vector>

#include "absl/container/inlined_vector.h"
#include "keys/autograd/node.h"

namespace mica::autograd {

// A MicaGradientPoint: a tensor or, where that is undefined, an edge.
struct GradientPoint {
  Tensor tensor;
  Edge edge;
};
using GradientPoints = absl::InlinedVector<GradientPoint, 2>;
inline GradientPoints PointsOf(TensorSpan tensors) {
  GradientPoints points;
  for (const Tensor& t : tensors) points.push_back({t, {}});
  return points;
}

// `flags`: MICA_BACKWARD_*.
void Backward(const GradientPoints& outputs, TensorSpan grads, const GradientPoints& inputs, uint64_t flags);
std::vector<Tensor> Gradients(const GradientPoints& outputs, const GradientPoints& inputs,
                              TensorSpan grad_outputs, uint64_t flags);

// retain_grad(): the gradient of a tensor that is no leaf is kept too.
void RetainGrad(const Tensor& t);

}  // namespace mica::autograd
