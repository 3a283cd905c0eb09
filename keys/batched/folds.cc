// Operators over a list of tensors: cat and stack, along a dimension shifted by one; block_diag.
#include "keys/batched/batched.h"
#include "keys/batched/ops.h"

namespace mica::batched {

bool Join(Call& call) {
  const int64_t at = call.Find("dim");
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

// Each block is padded to rows of the result, which stand below each other.
bool Diagonal(Call& call) {
  std::vector<Tensor> rows;
  int64_t columns = 0, before = 0;
  for (Part& p : call.PartsAt(0)) {
    if (p.rank > 2) return false;  // the operator says what is wrong
    p.value = WithBatch(p, call.batch());
    p.batched = true;
    rows.push_back(Aligned(p, 2));
    columns += rows.back().sizes()[2];
  }
  for (Tensor& block : rows) {
    const int64_t width = block.sizes()[2];
    block = ops::constant_pad_nd(block, {before, columns - before - width}, Scalar(0));
    before += width;
  }
  return rows.empty() ? false : call.Return(ops::cat(rows, 1));
}

}  // namespace mica::batched
