// The part of shape.h that is about memory: result layouts and overlap.
#include <algorithm>

#include <mica/overlap.h>
#include "tensor/error.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace mica {

namespace {

// The stride of a dim of the broadcast shape in an operand.
int64_t BroadcastStride(const Layouted& operand, int64_t dim, IntSpan shape) {
  const int64_t own = dim - (shape.size() - operand.sizes.size());
  if (own < 0 || operand.sizes[own] != shape[dim]) return 0;
  return operand.strides[own];
}

// -1: `a` belongs inside `b`; 1: outside; 0: the operands do not tell. As
// should_swap in TensorIteratorBase::reorder_dimensions.
int CompareDims(IntSpan shape, Span<Layouted> inputs, int64_t a, int64_t b) {
  for (const Layouted& input : inputs) {
    const int64_t stride_a = BroadcastStride(input, a, shape);
    const int64_t stride_b = BroadcastStride(input, b, shape);
    if (stride_a == 0 || stride_b == 0) continue;
    if (stride_a != stride_b) return stride_a < stride_b ? -1 : 1;
    if (shape[a] > shape[b]) return 1;
  }
  return 0;
}

Overlap IntervalsOverlap(const Tensor& a, const Tensor& b) {
  const auto a_begin = reinterpret_cast<uintptr_t>(a.data());
  const auto b_begin = reinterpret_cast<uintptr_t>(b.data());
  const auto a_end = a_begin + static_cast<uintptr_t>(a.numel() * a.itemsize());
  const auto b_end = b_begin + static_cast<uintptr_t>(b.numel() * b.itemsize());
  if (a_begin == b_begin && a_end == b_end)
    return a.strides() == b.strides() ? Overlap::kFull : Overlap::kPartial;
  return a_begin < b_end && b_begin < a_end ? Overlap::kPartial : Overlap::kNo;
}

}  // namespace

Dims ElementwiseStrides(IntSpan shape, Span<Layouted> inputs) {
  const int64_t n = shape.size();
  // Inputs that all have the result's shape and one dense layout pass it on.
  bool all_contiguous = true;
  bool all_channels_last = n == 4;
  for (const Layouted& input : inputs) {
    all_contiguous &= input.sizes == shape && IsContiguous(input.sizes, input.strides);
    all_channels_last &= input.sizes == shape && IsChannelsLast(input.sizes, input.strides);
  }
  if (n <= 1 || all_contiguous) return ContiguousStrides(shape);
  if (all_channels_last) return ChannelsLastStrides(shape);
  bool same = true;
  for (const Layouted& input : inputs) {
    same &= input.sizes == shape && input.strides == inputs[0].strides;
  }
  if (same && IsNonOverlappingAndDense(shape, inputs[0].strides)) return ToDims(inputs[0].strides);
  // Insertion sort, innermost first, where unknown pairs do not stop the search.
  Dims order(n);
  for (int64_t i = 0; i < n; ++i) order[i] = n - 1 - i;
  for (int64_t i = 1; i < n; ++i) {
    int64_t position = i;
    for (int64_t j = i - 1; j >= 0; --j) {
      const int comparison = CompareDims(shape, inputs, order[j], order[position]);
      if (comparison > 0) {
        std::swap(order[j], order[position]);
        position = j;
      } else if (comparison < 0) {
        break;
      }
    }
  }
  Dims strides(n);
  uint64_t step = 1;  // wraps for sizes that whoever allocates them refuses
  for (int64_t dim : order) {
    strides[dim] = static_cast<int64_t>(step);
    step *= static_cast<uint64_t>(std::max<int64_t>(shape[dim], 1));
  }
  return strides;
}

InternalOverlap HasInternalOverlap(IntSpan sizes, IntSpan strides) {
  if (IsNonOverlappingAndDense(sizes, strides)) return InternalOverlap::kNo;
  for (int64_t i = 0; i < sizes.size(); ++i) {
    if (strides[i] == 0 && sizes[i] > 1) return InternalOverlap::kYes;
  }
  // Strides that each exceed all that the smaller ones reach keep elements apart.
  Dims order;
  for (int64_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 1) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  int64_t reach = 0;
  for (int64_t i : order) {
    if (strides[i] <= reach) return InternalOverlap::kTooHard;
    reach += (sizes[i] - 1) * strides[i];
  }
  return InternalOverlap::kNo;
}

ByteRange ByteRangeOf(const Tensor& t) {
  const auto* begin = static_cast<const char*>(t.data());
  if (t.numel() == 0) return {begin, begin};
  int64_t last = 0;
  for (int64_t d = 0; d < t.ndim(); ++d) last += (t.sizes()[d] - 1) * t.strides()[d];
  return {begin, begin + (last + 1) * t.itemsize()};
}

Overlap GetOverlap(const Tensor& a, const Tensor& b) {
  if (a.is_same(b)) return Overlap::kFull;
  if (a.numel() == 0 || b.numel() == 0) return Overlap::kNo;
  if (a.impl()->storage != b.impl()->storage) return Overlap::kNo;
  if (a.impl()->is_apart() || b.impl()->is_apart()) a.data(), b.data();  // addresses are compared
  if (!a.impl()->has_flag(MICA_TENSOR_HAS_DATA)) return Overlap::kNo;
  if (IsNonOverlappingAndDense(a.sizes(), a.strides()) && IsNonOverlappingAndDense(b.sizes(), b.strides())) {
    return IntervalsOverlap(a, b);
  }
  // The same elements in the same order, though with gaps.
  if (a.data() == b.data() && a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
      a.strides() == b.strides()) {
    return Overlap::kFull;
  }
  return MayShareBytes(a.impl()->dl, b.impl()->dl) ? Overlap::kTooHard : Overlap::kNo;
}

void CheckNoInternalOverlap(const Tensor& t, const char* name) {
  MICA_CHECK(t.is_contiguous() || HasInternalOverlap(t.sizes(), t.strides()) != InternalOverlap::kYes,
             "unsupported operation: more than one element of the written-to tensor refers to a single "
             "memory location. Please clone() the tensor `",
             name, "`, of shape ", ShapeText(t.sizes()), " and strides ", ShapeText(t.strides()),
             ", before performing the operation.");
}

void CheckNoPartialOverlap(const Tensor& output, const Tensor& input, const char* output_name,
                           const char* input_name) {
  MICA_CHECK(
      GetOverlap(output, input) != Overlap::kPartial,
      "unsupported operation: some elements of the input tensor `", input_name, "` (", input.ToString(),
      ") and the written-to tensor `", output_name, "` (", output.ToString(),
      ") refer to a single memory location. Please clone() the tensor before performing the operation.");
}

}  // namespace mica
