// What the autograd tests share: the plugin, the portable kernels as the cpu
// backend (no plugin of a device is needed), tensors from values, values back.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "bindings/python/src/autograd/gradients.h"
#include "dispatcher/calls/thread_state.h"
#include "tensor/tensor.h"
#include "test/support/mica_test.h"

namespace mica::testing {

using python::GraphEdge;
using python::HookRemover;
using python::NodePtr;
using python::SavedTensorBox;

// A custom function from lambdas.
struct LambdaBackward {
  std::string name;
  std::function<std::vector<Tensor>(std::vector<Tensor>)> apply;
  std::function<void()> release = {};
};
struct LambdaHooks {
  std::function<std::vector<double>(const Tensor&)> pack;
  std::function<Tensor(const std::vector<double>&)> unpack;
};

// Autograd's table with lambdas for hooks, and with tensors alone where backward begins and ends.
class TestedAutograd : public python::Autograd {
 public:
  using Autograd::Autograd;
  void Backward(TensorSpan outputs, TensorSpan grads, TensorSpan inputs, uint64_t flags) const;
  std::vector<Tensor> Gradients(TensorSpan outputs, TensorSpan inputs, TensorSpan grad_outputs,
                                uint64_t flags) const;
  HookRemover AddTensorHook(const Tensor& t, std::function<Tensor(const Tensor&)> hook) const;
  HookRemover AddAccumulateHook(const Tensor& leaf, std::function<void(const Tensor&)> hook) const;
  HookRemover AddNodeHook(MicaNode* node, std::function<void(std::vector<Tensor>&)> hook) const;
  HookRemover AddNodePostHook(
      MicaNode* node, std::function<void(std::vector<Tensor>&, const std::vector<Tensor>&)> hook) const;
  void QueueCallback(std::function<void()> callback) const;
  void PushSavedTensorHooks(LambdaHooks hooks) const;
  NodePtr MakeCustomNode(LambdaBackward backward, TensorSpan inputs) const;
  bool InBackward() const { return (*this)->backward_number() != 0; }
};

// The plugin's table; the first call loads the plugin.
const TestedAutograd& Autograd();

// float64 tensors of one dimension, or of `sizes`.
Tensor Values(std::vector<double> values);
Tensor Values(std::vector<double> values, IntSpan sizes);
Tensor Leaf(std::vector<double> values);
Tensor Leaf(std::vector<double> values, IntSpan sizes);
std::vector<double> Read(const Tensor& t);  // row-major; {} for an undefined tensor

inline std::vector<double> GradOf(const Tensor& t) { return Read(Autograd().Grad(t)); }
void Backward(const Tensor& t, uint64_t flags = 0);
void Backward(const Tensor& t, const Tensor& grad, uint64_t flags = 0);
inline uint64_t Retain() { return MICA_BACKWARD_RETAIN_GRAPH; }
inline uint64_t Create() { return MICA_BACKWARD_CREATE_GRAPH; }

// The largest difference between what backward gives for each input of `f` (its
// sum, weighted) and central differences, relative to max(1, |gradient|).
double GradientError(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                     const std::vector<Tensor>& inputs);
// The same for the gradient of the gradient.
double SecondGradientError(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                           const std::vector<Tensor>& inputs);

}  // namespace mica::testing
