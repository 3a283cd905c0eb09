// Losses that reduce an example to a number: by the steps that they are made of.
#include "keys/batched/batched.h"
#include "keys/batched/ops.h"

namespace mica::batched {
namespace {

constexpr int64_t kMean = 1, kSum = 2;

// Class indices (B, N) of a batch of (B, N, C), and what each counts, which is a constant as in
// the operator's own gradient.
struct Classes {
  Tensor index;   // (B, N, 1); 0 where it is ignored
  Tensor valid;   // (B, N)
  Tensor weight;  // (B, N); 0 where it is ignored
};

Tensor Rows(const Part& p, int64_t size, int64_t rank) {
  const Tensor whole = WithBatch(p, size);
  return p.rank < rank ? ops::unsqueeze(whole, 1) : whole;
}

Classes ClassesOf(const Part& target, const Part& weight, int64_t ignored, int64_t size, DType dtype) {
  Classes c;
  const Tensor index = Rows(target, size, 1);
  c.valid = ops::ne(index, Scalar(ignored));
  const Tensor safe = ops::where(c.valid, index, Scalar(int64_t{0}));
  c.index = ops::unsqueeze(safe, 2);
  const Tensor counts = ops::to(c.valid, dtype);
  c.weight = weight.value.defined()
                 ? ops::mul(ops::gather(ops::detach(WithBatch(weight, size)), 1, safe, false), counts)
                 : counts;
  return c;
}

}  // namespace

bool NllLoss(Call& call) {
  const Part self = call.PartAt(0), target = call.PartAt(1), weight = call.PartAt(2);
  if (self.rank > 2) return false;
  const int64_t reduction = call[3].u.i, size = call.batch();
  const Tensor x = Rows(self, size, 2);
  const Classes c = ClassesOf(target, weight, call[4].u.i, size, x.dtype());
  const Tensor picked = ops::squeeze(ops::gather(x, 2, c.index, false), 2);
  const Tensor zero = ops::zeros({}, x.dtype(), x.device());
  Tensor losses = ops::where(c.valid, ops::neg(ops::mul(picked, c.weight)), zero);
  const bool reduced = reduction == kMean || reduction == kSum;
  const Tensor total = ops::sum(reduced ? c.weight : ops::mul(c.weight, Scalar(int64_t{0})), IntSpan({1}));
  if (reduced) losses = ops::sum(losses, IntSpan({1}));
  if (reduction == kMean) losses = ops::div(losses, total);
  if (!reduced && self.rank == 1) losses = ops::squeeze(losses, 1);
  call.Return(losses, 0);
  return call.Return(total, 1);
}

bool NllLossBackward(Call& call) {
  const Part grad = call.PartAt(0), self = call.PartAt(1), target = call.PartAt(2), weight = call.PartAt(3);
  if (self.rank > 2) return false;
  const int64_t reduction = call[4].u.i, size = call.batch();
  const Tensor x = Rows(self, size, 2);
  const Classes c = ClassesOf(target, weight, call[5].u.i, size, x.dtype());
  Tensor g = Rows(grad, size, 1);  // (B, N) or (B, 1)
  if (reduction == kMean) g = ops::div(g, Rows(call.PartAt(6), size, 1));
  const Tensor zero = ops::zeros({}, x.dtype(), x.device());
  const Tensor values = ops::where(c.valid, ops::neg(ops::mul(g, c.weight)), zero);
  const Tensor zeros = ops::zeros(x.sizes(), x.dtype(), x.device());
  const Tensor result = ops::scatter(zeros, 2, c.index, ops::unsqueeze(values, 2));
  return call.Return(self.rank == 1 ? ops::squeeze(result, 1) : result);
}

// ---- ctc_loss: its sequences are a batch already, which the examples join
namespace {

// (B, T, N, C) as (T, B * N, C).
Tensor Sequences(const Part& p, int64_t size) {
  const Tensor t = ops::movedim(WithBatch(p, size), 0, 1);
  const IntSpan s = t.sizes();
  return ops::reshape(t, {s[0], s[1] * s[2], s[3]});
}

// Argument `at`, the lengths of the sequences of one example, for all.
void RepeatLengths(Call& call, int64_t at) {
  const IntSpan one = IntsOf(call[at]);
  Dims all;
  for (int64_t e = 0; e < call.batch(); ++e) all.insert(all.end(), one.begin(), one.end());
  call.SetInts(at, std::move(all));
}

// The arguments from log_probs, number `at`, to the lengths.
bool JoinSequences(Call& call, int64_t at) {
  const Part probabilities = call.PartAt(at), targets = call.PartAt(at + 1);
  if (probabilities.rank != 3 || targets.rank < 1) return false;
  call.Set(at, Sequences(probabilities, call.batch()));
  call.Set(at + 1, Fold(WithBatch(targets, call.batch())));
  RepeatLengths(call, at + 2);
  RepeatLengths(call, at + 3);
  return true;
}

}  // namespace

bool CtcLoss(Call& call) {
  return JoinSequences(call, 0) && call.Run([&](Tensor t) { return Unfold(t, call.batch()); });
}

bool CtcLossBackward(Call& call) {
  if (!JoinSequences(call, 1)) return false;
  for (const int64_t i : {0, 5, 6}) call.Set(i, Fold(WithBatch(call.PartAt(i), call.batch())));
  return call.Run([&](Tensor t) {
    const IntSpan s = t.sizes();
    const Tensor all = ops::reshape(t, {s[0], call.batch(), s[1] / call.batch(), s[2]});
    return ops::movedim(all, 1, 0);
  });
}

}  // namespace mica::batched
