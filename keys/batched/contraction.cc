// Products of matrices and vectors, and operators of the last dimensions alone: a batch in
// front is what they have anyway.
#include "keys/batched/batched.h"
#include "keys/batched/ops.h"

namespace mica::batched {
namespace {

Scalar ScalarAt(const Call& call, std::string_view name) { return Scalar(call[call.Find(name)].u.scalar); }

// beta * self + alpha * a @ b, where a has rows for each example and the rest is shared: one
// product of all the rows.
bool SharedMatrix(Call& call, const Part& self, const Part& a, const Part& b) {
  if (!a.batched || b.batched || a.rank != 2 || self.batched || self.rank > 1) return false;
  const int64_t rows = a.value.sizes()[1];
  const Tensor flat = ops::reshape(a.value, {call.batch() * rows, a.value.sizes()[2]});
  const Tensor product =
      ops::addmm(self.value, flat, b.value, ScalarAt(call, "beta"), ScalarAt(call, "alpha"));
  return call.Return(ops::reshape(product, {call.batch(), rows, b.value.sizes()[1]}));
}

// addmm and baddbmm.
bool AddedProduct(Call& call) {
  const Part self = call.PartAt(0), a = call.PartAt(1), b = call.PartAt(2);
  if (SharedMatrix(call, self, a, b)) return true;
  const bool fold = a.rank == 3;
  const int64_t size = call.batch();
  const auto joined = [&](const Part& p, int64_t rank) {
    Part whole = p;
    whole.value = WithBatch(p, size);
    whole.batched = true;
    return Aligned(whole, rank);
  };
  Tensor x = joined(self, a.rank), m1 = joined(a, a.rank), m2 = joined(b, a.rank);
  if (!fold) {
    return call.Return(ops::baddbmm(x, m1, m2, ScalarAt(call, "beta"), ScalarAt(call, "alpha")));
  }
  Dims sizes = {size, a.value.sizes()[a.batched ? 1 : 0]};
  sizes.push_back(m1.sizes()[2]);
  sizes.push_back(m2.sizes()[3]);
  x = ops::expand(x, sizes, false);
  const Tensor all =
      ops::baddbmm(Fold(x), Fold(m1), Fold(m2), ScalarAt(call, "beta"), ScalarAt(call, "alpha"));
  return call.Return(Unfold(all, size));
}

// The product where the examples can be the rows of one matrix, since one side is shared and one
// a vector; undefined where they cannot.
Tensor AsRows(const Part& a, const Part& b) {
  if (a.batched && !b.batched && (a.rank == 1 || b.rank == 1)) return ops::matmul(a.value, b.value);
  if (!a.batched && b.rank == 1 && a.rank <= 2)
    return ops::matmul(b.value, a.rank == 2 ? ops::t(a.value) : a.value);
  return Tensor();
}

}  // namespace

bool Contraction(Call& call) {
  if (call.Find("beta") >= 0) return AddedProduct(call);
  const Part a = call.PartAt(0), b = call.PartAt(1);
  if (Tensor rows = AsRows(a, b); rows.defined()) return call.Return(std::move(rows));
  // A vector is a matrix of one row on the left, of one column on the right.
  Tensor left = a.value, right = b.value;
  if (a.rank == 1) left = ops::unsqueeze(left, -2);
  if (b.rank == 1) right = ops::unsqueeze(right, -1);
  Tensor product = ops::matmul(left, right);
  if (b.rank == 1) product = ops::squeeze(product, -1);
  if (a.rank == 1) product = ops::squeeze(product, -1);
  return call.Return(product);
}

// Composites have no meta function that refused an example of too low a rank: their parts do.
bool Trailing(Call& call) {
  for (int64_t i = 0; !call.op().has(MICA_OPERATOR_META) && i < call.size(); ++i)
    if (call.IsTensor(i) && call.PartAt(i).rank < 2) return false;
  call.AllAligned();
  return call.Run();
}

bool SquareMatrices(Call& call) {
  const Part self = call.PartAt(0);
  const IntSpan sizes = SizesOf(call.given()[0]);
  if (self.rank < 2 || sizes[self.rank - 1] != sizes[self.rank - 2]) return false;  // its parts say why
  return call.Run();
}

// LD (..., n, n), pivots (..., n) and B (..., n, k), whose batches broadcast.
bool LdlSolve(Call& call) {
  const int64_t rank = std::max(call.PartAt(0).rank, call.PartAt(2).rank);
  for (int64_t i = 0; i < 3; ++i) {
    Part p = call.PartAt(i);
    p.value = WithBatch(p, call.batch());
    p.batched = true;
    call.Set(i, Aligned(p, i == 1 ? rank - 1 : rank));
  }
  return call.Run();
}

bool Whole(Call& call) { return call.Run(); }

bool ByOperator(Call& call) {
  const std::string_view name = layer::Table()->operator_policy(call.op().handle, "batch_rule");
  const Op* rule = FindOp(name);
  MICA_CHECK(
      rule, "The batch rule (", name, ") of the operator ", call.op().name(),
      " is no operator; its plugin must define one of that name, of the same arguments with a batch in "
      "front of each tensor.");
  call.AllBatched();
  return call.Run(*rule, &call[0], call.size());
}

// Rows of the sequence and rows of the values correspond; a single sequence serves all.
bool Sorted(Call& call) {
  const Part sequence = call.PartAt(0), self = call.PartAt(1);
  if (!sequence.batched && sequence.rank == 1) return !call.PartAt(call.Find("sorter")).batched && call.Run();
  call.AllBatched();
  if (sequence.rank == self.rank) return call.Run();
  if (sequence.rank != 1) return false;
  const Dims sizes = Own(SizesOf(call[1]));
  CheckNotEmpty(call.batch());
  call.Set(1, ops::reshape(Tensor::Borrow(call[1].u.tensor), {call.batch(), -1}));
  return call.Run([&](Tensor t) { return ops::reshape(t, sizes); });
}

bool Transform(Call& call) {
  const int64_t at = call.Find("dim"), rank = call.PartAt(0).rank;
  Dims dims(call[at].u.ints.data, call[at].u.ints.data + call[at].u.ints.size);
  for (int64_t& d : dims) d = d < 0 ? d + rank + 1 : d + 1;
  call.SetInts(at, std::move(dims));
  return call.Run();
}

}  // namespace mica::batched
