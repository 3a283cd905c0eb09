// Composites that stay whole: their own gradient, or a fused kernel, is better than that of
// their parts. A call that does not fit is decomposed (false).
#include "keys/batched/batched.h"
#include "keys/batched/ops.h"

namespace mica::batched {

// (..., normalized shape): leading dimensions are batches. Weights of each example come after.
bool LayerNorm(Call& call) {
  const Part input = call.PartAt(0), weight = call.PartAt(2), bias = call.PartAt(3);
  if (input.rank < call[call.Find("normalized_shape")].u.ints.size) return false;
  call.Set(0, WithBatch(input, call.batch()));
  if (!weight.batched && !bias.batched) return call.Run();
  call.Set(2, Tensor());
  call.Set(3, Tensor());
  bool first = true;
  return call.Run([&](Tensor t) {
    if (!std::exchange(first, false)) return t;
    if (weight.value.defined()) t = ops::mul(t, Aligned(weight, input.rank));
    if (bias.value.defined()) t = ops::add(t, Aligned(bias, input.rank));
    return t;
  });
}

// (heads, L, E) and (N, heads, L, E): the batch is N, or joins it.
bool Attention(Call& call) {
  const int64_t rank = call.PartAt(0).rank, size = call.batch();
  const int64_t dropout = call.Find("dropout_p"), mask = call.Find("attn_mask");
  if (rank < 2 || rank > 4 || (dropout >= 0 && call[dropout].u.f != 0)) return false;
  for (int64_t i = 0; i < call.size(); ++i) {
    Part p = call.PartAt(i);
    if (!p.value.defined()) continue;
    if (p.rank > rank || (i != mask && p.rank != rank)) return false;
    p.value = WithBatch(p, size);
    p.batched = true;
    Tensor whole = Aligned(p, rank);
    if (rank == 4) {
      Dims sizes = Own(whole.sizes());
      if (i == mask) sizes[1] = call.PartAt(0).value.sizes()[call.PartAt(0).batched ? 1 : 0];
      whole = Fold(ops::expand(whole, sizes, false));
    }
    call.Set(i, whole);
  }
  return call.Run([&](Tensor t) { return rank == 4 ? Unfold(t, size) : t; });
}

}  // namespace mica::batched
