// What the autograd tests share: the plugin, the portable kernels as the cpu
// backend (no plugin of a device is needed), tensors from values, values back.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "dispatcher/calls/thread_state.h"
#include "dispatcher/layers/autograd_interface.h"
#include "tensor/tensor.h"
#include "test/support/mica_test.h"

namespace mica::testing {

// The plugin's table; the first call loads the plugin.
AutogradInterface& Autograd();

// float64 tensors of one dimension, or of `sizes`.
Tensor Values(std::vector<double> values);
Tensor Values(std::vector<double> values, IntSpan sizes);
Tensor Leaf(std::vector<double> values);
Tensor Leaf(std::vector<double> values, IntSpan sizes);
std::vector<double> Read(const Tensor& t);  // row-major; {} for an undefined tensor

inline std::vector<double> GradOf(const Tensor& t) { return Read(Autograd().Grad(t)); }
void Backward(const Tensor& t, BackwardOptions options = {});
void Backward(const Tensor& t, const Tensor& grad, BackwardOptions options = {});
inline BackwardOptions Retain() { return {.retain_graph = true}; }
inline BackwardOptions Create() { return {.create_graph = true}; }

// The largest difference between what backward gives for each input of `f` (its
// sum, weighted) and central differences, relative to max(1, |gradient|).
double GradientError(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                     const std::vector<Tensor>& inputs);
// The same for the gradient of the gradient.
double SecondGradientError(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                           const std::vector<Tensor>& inputs);

// A custom function from two lambdas.
class LambdaBackward final : public CustomBackward {
 public:
  using Function = std::function<std::vector<Tensor>(std::vector<Tensor>)>;
  LambdaBackward(std::string name, Function f, std::function<void()> release = {})
      : name_(std::move(name)), f_(std::move(f)), release_(std::move(release)) {}
  std::string Name() const override { return name_; }
  std::vector<Tensor> Apply(std::vector<Tensor> grads) override { return f_(std::move(grads)); }
  void ReleaseSaved() override {
    if (release_) release_();
  }

 private:
  std::string name_;
  Function f_;
  std::function<void()> release_;
};

}  // namespace mica::testing
