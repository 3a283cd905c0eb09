// AccumulateGrad: the sink of a leaf; adds what arrives to the leaf's grad.
//
// It is part of the leaf: the leaf's Meta owns it, and a reference to it is one to
// the leaf (Node::leaf_), so that using a leaf takes neither lock nor memory.
// A gradient that nobody else holds and that lies in memory as the leaf does is
// taken as it is; others are copied.
#pragma once

#include "keys/autograd/node.h"

namespace mica::autograd {

class AccumulateGrad final : public Node {
 public:
  // Not counted: the leaf's Meta deletes it.
  explicit AccumulateGrad(TensorImpl* leaf);
  ~AccumulateGrad() override = default;
  // After the leaf got another shape or dtype.
  void Refresh();
  void Apply(const Tensor* grads, Tensor* out) override;
  bool RunsBelowAutograd() const override { return false; }  // its hooks are the user's code
  const char* name() const override { return "AccumulateGrad"; }
  const Tensor* variable() const override { return reinterpret_cast<const Tensor*>(&leaf_); }

 private:
  void Add(const Tensor& grad);
};

}  // namespace mica::autograd
