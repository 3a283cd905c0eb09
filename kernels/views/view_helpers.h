// What view functions share: the spec that begins where `self` does, and that of "self as it is", of which
// each view changes sizes, strides or offset.
#pragma once

#include "dispatcher/tables/operator_spec.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace mica::views {

// Without dimensions.
inline ViewSpec First(const Tensor& self) {
  ViewSpec spec;
  spec.byte_offset = self.storage_offset() * self.itemsize();
  return spec;
}
inline ViewSpec Whole(const Tensor& self) {
  ViewSpec spec = First(self);
  spec.sizes = ToDims(self.sizes());
  spec.strides = ToDims(self.strides());
  return spec;
}

// The same memory, read as a layer of keys::kLazy says, or no longer so.
inline ViewSpec Flipped(const Tensor& self, int layer) {
  ViewSpec spec = Whole(self);
  spec.flips = KeySet::Of(layer);
  return spec;
}

}  // namespace mica::views
