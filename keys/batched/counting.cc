// Operators that count through an example: masked_scatter takes the next value at each true
// element, bincount adds to the bin that each element names.
#include "keys/batched/batched.h"
#include "keys/batched/ops.h"

namespace mica::batched {
namespace {

// Elements of one example of a batch.
int64_t Count(const Tensor& t) {
  int64_t count = 1;
  for (int64_t d = 1; d < t.ndim(); ++d) count *= t.sizes()[d];
  return count;
}

int64_t Read(const Tensor& t) { return ops::item(t).ToInt(); }

}  // namespace

// The k-th true element takes the k-th of the source; the others the zero that stands before it.
bool MaskedScatter(Call& call) {
  const Part self = call.PartAt(0), mask = call.PartAt(1), source = call.PartAt(2);
  if (mask.value.dtype() != DType::kBool || mask.rank > self.rank ||
      source.value.dtype() != self.value.dtype())
    return false;  // the operator says what is wrong
  const Tensor whole = WithBatch(self, call.batch());
  Part masks = mask;
  masks.value = WithBatch(mask, call.batch());
  masks.batched = true;
  const Tensor chosen = ops::expand(Aligned(masks, self.rank), whole.sizes(), false);
  const Tensor flat = ops::reshape(chosen, {call.batch(), Count(whole)});
  const Tensor place = ops::where(flat, ops::cumsum(flat, 1), Scalar(int64_t{0}));
  const Tensor values = WithBatch(source, call.batch());
  const int64_t count = Count(values);
  const Tensor from = ops::constant_pad_nd(ops::reshape(values, {call.batch(), count}), {1, 0}, Scalar(0));
  const Tensor taken = ops::gather(from, 1, place, false);
  return call.Return(ops::where(chosen, ops::reshape(taken, whole.sizes()), whole));
}

// How many bins there are depends on the values, and must be the same for all examples.
bool Bincount(Call& call) {
  const Part self = call.PartAt(0), weights = call.PartAt(1);
  const int64_t minlength = call[2].u.i, size = call.batch();
  const bool weighted = weights.value.defined();
  const DType dtype = self.value.dtype();
  if (self.rank != 1 || minlength < 0 || IsDifferentiable(dtype) || dtype == DType::kBool) return false;
  const Tensor bins = ops::to(WithBatch(self, size), DType::kI64);
  const Tensor amounts = WithBatch(weights, size);
  if (weighted && amounts.sizes() != bins.sizes()) return false;
  int64_t count = minlength;
  if (bins.numel() > 0) {
    if (Read(ops::amin(bins)) < 0) return false;
    const Tensor last = ops::clamp_min(ops::amax(bins, IntSpan({1})), Scalar(minlength - 1));
    count = Read(ops::amax(last)) + 1;
    const int64_t least = Read(ops::amin(last)) + 1;
    MICA_CHECK(least == count, "Operator bincount makes (", least, ") bins for one example of a batch and (",
               count, ") for another, which cannot become one tensor. Give `minlength` (", count,
               ") or more.");
  }
  const bool of_floats = weighted && bins.numel() > 0;
  const DType sums = !of_floats                             ? DType::kI64
                     : weights.value.dtype() == DType::kF32 ? DType::kF32
                                                            : DType::kF64;
  const Tensor added = of_floats ? ops::to(amounts, sums) : ops::ones(bins.sizes(), sums, bins.device());
  const Tensor none = ops::zeros({size, count}, sums, bins.device());
  return call.Return(ops::scatter_add(none, 1, bins, added));
}

}  // namespace mica::batched
