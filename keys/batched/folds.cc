// Operators over a list of tensors: cat and stack, along a dimension shifted by one.
#include "mica/keys/batched/batched.h"

#include "mica/tensor/shape.h"

namespace mica::batched {

bool Join(Call& call) {
  const int64_t at = call.Find("dim");
  if (at < 0) return false;  // block_diag
  const bool adds = call.op().name() == "mica::stack";
  std::vector<Part> parts = call.PartsAt(0);
  int64_t rank = 0;
  for (const Part& p : parts) rank = std::max(rank, p.rank);
  std::vector<Tensor> whole;
  for (const Part& p : parts) {
    // cat leaves out empty vectors among tensors of other ranks.
    if (!adds && p.rank == 1 && rank > 1 && p.value.numel() == 0) continue;
    if (p.rank != rank) return false;  // the operator says what is wrong
    whole.push_back(WithBatch(p, call.batch()));
  }
  call.SetList(0, std::move(whole));
  call.SetInt(at, WrapDim(call[at].u.i, rank + (adds ? 1 : 0)) + 1);
  return rank > 0 || adds ? call.Run() : false;
}

}  // namespace mica::batched
