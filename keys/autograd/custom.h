// Custom functions: forward and backward in the user's code, as one node.
#pragma once

#include <memory>
#include <vector>

#include "keys/autograd/node.h"

namespace mica::autograd {

class CustomNode final : public Node {
 public:
  explicit CustomNode(std::unique_ptr<CustomBackward> backward) : backward_(std::move(backward)) {}
  void Apply(const Tensor* grads, Tensor* out) override;
  void ReleaseSaved() override { backward_->ReleaseSaved(); }
  std::shared_ptr<void>* Context() override { return backward_->Context(); }
  bool RunsBelowAutograd() const override { return false; }
  std::string name() const override { return backward_->Name(); }
  void set_materialize_grads(bool on) { materialize_grads_ = on; }

 protected:
  void Destroy() override;

 private:
  std::unique_ptr<CustomBackward> backward_;
  bool materialize_grads_ = true;
};

// See AutogradInterface::MakeCustomNode and FinishCustom.
NodePtr MakeCustomNode(std::unique_ptr<CustomBackward> backward, TensorSpan inputs);
std::vector<Tensor> FinishCustom(const NodePtr& node, const AutogradInterface::CustomOutputs& call);

}  // namespace mica::autograd
