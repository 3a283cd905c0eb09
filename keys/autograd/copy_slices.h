// CopySlices: the grad_fn of a tensor that was written through a view of it.
//
// See Note [Views and writes] in meta.h. Edge 0 is the base's history before the
// write; the others are those of the writing operator's node.
#pragma once

#include "keys/autograd/meta.h"

namespace mica::autograd {

class CopySlices final : public Node {
 public:
  // Edge `written` of `fn` is the view's.
  CopySlices(const Tensor& base, ViewGeometry view, NodeRef fn, int written);
  void Apply(const Tensor* grads, Tensor* out) override;
  void ReleaseSaved() override;
  const char* name() const override { return "CopySlices"; }

 private:
  Dims base_strides_;
  ViewGeometry view_;
  NodeRef fn_;
  int written_;
};

}  // namespace mica::autograd
