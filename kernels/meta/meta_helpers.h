// What meta functions share: adding an output to a MetaResult, dtype rules, and
// the checks that several operators make.
#pragma once

#include "dispatcher/tables/operator_spec.h"
#include "tensor/promote.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace mica::meta {

// A contiguous output.
inline OutputSpec& AddOutput(MetaResult& result, IntSpan sizes, DType dtype, Device device) {
  OutputSpec& out = result.outputs.emplace_back();
  out.sizes = ToDims(sizes);
  out.dtype = dtype;
  out.device = device;
  return out;
}

// An output like `like`, in its memory order when that is dense.
OutputSpec& AddLike(MetaResult& result, const Tensor& like, DType dtype);
inline OutputSpec& AddLike(MetaResult& result, const Tensor& like) {
  return AddLike(result, like, like.dtype());
}

// The strides of `sizes` in the memory format of `like`, as torch tells it by strides: channels
// last (of 2 or 3 dimensions), or none for contiguous ones.
Dims StridesInFormatOf(const Tensor& like, IntSpan sizes);

inline void ComputeIn(MetaResult& result, DType dtype) { result.compute_dtype = static_cast<int32_t>(dtype); }

// Sizes of `self` without the dimensions `dims` (already wrapped), or with size 1
// in their place.
Dims ReducedSizes(IntSpan sizes, const Dims& dims, bool keepdim);

// Throws unless all are on one device; a 0-d tensor on the CPU goes with any.
void CheckSameDevice(const Tensor& a, const Tensor& b, const char* a_name, const char* b_name);
void CheckSameDType(const Tensor& a, const Tensor& b, const char* a_name, const char* b_name);
void CheckDims(const Tensor& t, int64_t ndim, const char* name);
// Throws unless the dtype holds `value` (HoldsNumber).
void CheckInRange(const Scalar& value, DType dtype, const char* name);
// int64 or int32, as an index tensor must be.
void CheckIndexDType(const Tensor& index, const char* name);

}  // namespace mica::meta
