// Arithmetic on shapes, strides and dtypes, and how messages show them: what the host's kernels decide
// in the same way.
#pragma once

#include <mica/frame.h>

namespace mica::functionalize {

using formula::Dims;
using formula::DType;
using formula::IntSpan;
using formula::MemoryFormat;
using layer::Tensor;
using layer::TextOf;

// No two elements share a place and the elements fill their range: a permutation of contiguous.
bool IsNonOverlappingAndDense(IntSpan sizes, IntSpan strides);
Dims ContiguousStrides(IntSpan sizes);
// The strides of a dense tensor in this format; raises where the number of dimensions is not the format's.
Dims StridesIn(MemoryFormat format, IntSpan sizes);
// Whether a result of one dtype may be put into a tensor of another.
bool CanCast(DType from, DType to);
// The float dtype of a complex dtype's parts; others map to themselves.
DType RealOf(DType d);

const char* Name(DType d);  // "float32"

}  // namespace mica::functionalize
