// What composites share. A composite is an operator made of operators: it calls
// mica::ops functions only, so that it runs on every backend and every layer
// (autograd among them) sees its parts.
#pragma once

#include <vector>

#include "mica/kernels/composite_declarations.h"
#include "mica/tensor/promote.h"
#include "mica/tensor/shape.h"
#include "mica/tensor/tensor.h"

namespace mica::composite {

// The wrapped dimensions, all of them where none are given.
Dims DimsOrAll(std::optional<IntSpan> dims, int64_t ndim);
// The number of elements that a reduction over `dims` takes together.
int64_t CountOver(IntSpan sizes, const Dims& dims);
// The sizes with which a reduced tensor broadcasts against the original.
Dims KeptSizes(IntSpan sizes, const Dims& dims);
Tensor FullLike(const Tensor& self, IntSpan sizes, const Scalar& value);
Tensor ZerosLike(const Tensor& self, IntSpan sizes);
// int64, int32, ... index tensors as int64; bool and uint8 masks as the indices
// of their true elements; undefined ones stay.
std::vector<Tensor> ExpandIndices(const Tensor& self, TensorSpan indices);
// Mean (1), sum (2) or the losses themselves (0).
Tensor ReduceLoss(const Tensor& loss, int64_t reduction);
// `list` as `n` values; one value stands for all, none for `otherwise`.
Dims Repeated(IntSpan list, int64_t n, int64_t otherwise);
// The dtype in which a half-precision tensor's statistics are computed.
DType StatisticsDType(DType dtype);
Tensor Cast(const Tensor& self, DType dtype);

}  // namespace mica::composite
