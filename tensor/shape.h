// Arithmetic on shapes and strides: sizes, formats, broadcasting, views, overlap.
//
// Used by tensor.cc, meta functions, views and kernels. Sizes are >= 0 and
// strides (in elements) are >= 0 everywhere; results follow torch 2.13, which
// the tests hold them to. Errors are the caller's and name sizes and shapes.
#pragma once

#include <optional>
#include <string>

#include "tensor/span.h"

namespace mica {

class Tensor;

std::string ShapeText(IntSpan shape);  // "[2, 3]"

// The product of the sizes. Throws kRuntime when a size is negative or the
// product of the non-zero sizes exceeds 2^63 - 1.
int64_t CheckedNumel(IntSpan sizes);

// `dim` in 0..ndim-1, counting negative ones from the end. Out of range throws
// kIndex. With `allow_scalar` a 0-d tensor has the dims -1 and 0 (result 0).
int64_t WrapDim(int64_t dim, int64_t ndim, bool allow_scalar = true);
// Wraps each dim and throws kRuntime when one comes twice.
Dims WrapDims(IntSpan dims, int64_t ndim, bool allow_scalar = true);

Dims ContiguousStrides(IntSpan sizes);
// Strides with the channel (dim 1) innermost; 4 or 5 dims, else kRuntime.
Dims ChannelsLastStrides(IntSpan sizes);
bool IsContiguous(IntSpan sizes, IntSpan strides);
// True for 4 or 5 dims in channels-last order; size-1 dims are ignored.
bool IsChannelsLast(IntSpan sizes, IntSpan strides);
// As torch's is_channels_last_strides: strides that grow from the channels to the last spatial
// dimension, the first one and the batch. Where size 1 leaves it open, they do not.
bool HasChannelsLastStrides(IntSpan sizes, IntSpan strides);
// No two elements share a place and the elements fill their range: a
// permutation of contiguous.
bool IsNonOverlappingAndDense(IntSpan sizes, IntSpan strides);

// The shape that both broadcast to. `a_name` and `b_name` appear in the error.
Dims BroadcastShapes(IntSpan a, IntSpan b, const char* a_name = "self", const char* b_name = "other");
bool CanExpandTo(IntSpan from, IntSpan to);
// Strides (0 where a size-1 or missing dim grows) of `sizes` expanded to `to`;
// -1 in `to` keeps a size. `resolved` receives the final sizes.
Dims ExpandStrides(IntSpan sizes, IntSpan strides, IntSpan to, Dims* resolved);

// Sizes with at most one -1, which is inferred from `numel`.
Dims InferSize(IntSpan sizes, int64_t numel);
// The strides with which a tensor can be seen as `new_sizes` without a copy, if
// it can (torch's computeStride).
std::optional<Dims> ComputeStride(IntSpan old_sizes, IntSpan old_strides, IntSpan new_sizes);

// An operand of an elementwise operation.
struct Layouted {
  IntSpan sizes;
  IntSpan strides;
};
// The strides of a fresh elementwise result of shape `shape`: dense, in the
// memory order of the inputs as torch's TensorIterator chooses it (of equal
// inputs theirs; otherwise dims sorted by the first input that tells).
Dims ElementwiseStrides(IntSpan shape, Span<Layouted> inputs);

// Whether two elements of one tensor may lie at one place. kYes is certain
// (a dim with stride 0), kNo too; kTooHard is unknown.
enum class InternalOverlap { kNo, kYes, kTooHard };
InternalOverlap HasInternalOverlap(IntSpan sizes, IntSpan strides);
// From a tensor's first element to the end of its last one.
struct ByteRange {
  const char *begin, *end;
  bool overlaps(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};
ByteRange ByteRangeOf(const Tensor& t);

// How the memory of two tensors overlaps, as torch's get_overlap_status: kFull
// is the same elements in the same places.
enum class Overlap { kFull, kPartial, kNo, kTooHard };
Overlap GetOverlap(const Tensor& a, const Tensor& b);
// Throw kRuntime: "in-place into an expanded tensor", "output overlaps input".
void CheckNoInternalOverlap(const Tensor& t, const char* name);
void CheckNoPartialOverlap(const Tensor& output, const Tensor& input, const char* output_name,
                           const char* input_name);

}  // namespace mica
