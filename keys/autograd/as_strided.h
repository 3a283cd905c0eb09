// The gradient of as_strided: elements of the result's gradient added where the
// view has them in the storage, and read where the input has its own.
#pragma once

#include "tensor/tensor.h"

namespace mica::autograd {

// Where a tensor's elements lie in a storage, in elements.
struct StridedPlace {
  Dims sizes, strides;
  int64_t offset = 0;
};

// One beyond the last place of it.
int64_t End(const StridedPlace& place);

// Whether two indices may reach one element: false only if surely none do.
bool MayOverlap(const StridedPlace& place);

// An element of the storage that the input reaches several times gives each of
// them its share, as torch defines it. Recorded like any other operators.
Tensor AsStridedBackward(const Tensor& grad, StridedPlace input, StridedPlace result);

}  // namespace mica::autograd
