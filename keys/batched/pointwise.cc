// Pointwise operators, copy_ among them: batches in front, ranks aligned, so that
// broadcasting does the rest.
#include "keys/batched/batched.h"
#include "keys/batched/ops.h"

namespace mica::batched {
namespace {

// A 0-d tensor counts less in type promotion than others, and a batch of 0-d tensors is
// none any more: where dtypes differ, all get the dtype that one example computes in.
void Promoted(Call& call, layer::Few<Part, 6>& parts, uint64_t written) {
  bool scalars = false, differ = false;
  const Part* first = nullptr;
  for (const Part& p : parts) {
    if (!p.value.defined()) continue;
    scalars = scalars || (p.batched && p.rank == 0);
    first = first ? first : &p;
    differ = differ || p.value.dtype() != first->value.dtype();
  }
  if (!scalars || !differ || !call.op().has(MICA_OPERATOR_META)) return;
  int32_t computed = MICA_DTYPE_NONE;
  layer::Check(layer::Table()->compute_dtype(call.op().handle, call.given(), call.size(), &computed));
  if (computed == MICA_DTYPE_NONE) return;
  const auto dtype = static_cast<DType>(computed);
  for (size_t i = 0; i < parts.size(); ++i) {
    Tensor& t = parts[i].value;
    if (!t.defined() || ((written >> i) & 1) || t.dtype() == dtype || t.dtype() == DType::kBool) continue;
    t = ops::to(t, dtype);
  }
}

// Before it gets a batch, what is written must have the shape that the others broadcast to: the
// batch in front must not stand in for a dimension, and a call that raises changes nothing.
void CheckWritten(const Call& call, uint64_t written) {
  for (int64_t w = 0; w < call.size(); ++w) {
    if (!((written >> w) & 1) || !call.IsTensor(w)) continue;
    const IntSpan to = SizesOf(call.given()[w]);
    for (int64_t i = 0; i < call.size(); ++i) {
      if (i == w || !call.IsTensor(i)) continue;
      const IntSpan from = SizesOf(call.given()[i]);
      bool fits = from.size() <= to.size();
      for (int64_t d = 1; fits && d <= from.size(); ++d)
        fits = from[from.size() - d] == 1 || from[from.size() - d] == to[to.size() - d];
      MICA_CHECK(fits, "Operator ", call.op().name(), " writes `", call.op().info->args[w].name,
                 "` of shape ", Show(to), ", to which the shape ", Show(from), " of `",
                 call.op().info->args[i].name, "` does not broadcast.");
    }
  }
}

// Whether all values broadcast in one dtype as they are, as mostly they do.
bool Fit(const Call& call) {
  const MicaTensor* first = nullptr;
  int32_t least = INT32_MAX, rank = 0;  // of those with a batch; of all
  for (int64_t i = 0; i < call.size(); ++i) {
    if (!call.IsTensor(i)) continue;
    const MicaTensor* const t = call.given()[i].u.tensor;
    first = first ? first : t;
    if (plugin::TensorRef(t).dtype() != plugin::TensorRef(first).dtype()) return false;
    rank = std::max(rank, t->dl.ndim);
    if (call.IsBatched(i)) least = std::min(least, t->dl.ndim);
  }
  return least >= rank;
}

}  // namespace

bool Pointwise(Call& call) {
  const uint64_t written = call.op().info->written_args;
  const int64_t n = call.size();
  if (written) CheckWritten(call, written);
  for (int64_t i = 0; written && i < n; ++i)
    if (((written >> i) & 1) && call.IsTensor(i)) call.Promote(i);
  if (Fit(call)) return call.Run();
  layer::Few<Part, 6> parts(static_cast<size_t>(n));
  int64_t rank = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!call.IsTensor(i)) continue;
    Part& p = parts[static_cast<size_t>(i)] = call.PartAt(i);
    rank = std::max(rank, p.rank);
  }
  Promoted(call, parts, written);
  for (int64_t i = 0; i < n; ++i) {
    Part& p = parts[static_cast<size_t>(i)];
    if (p.value.defined()) call.Set(i, (written >> i) & 1 ? p.value : Aligned(std::move(p), rank));
  }
  return call.Run();
}

namespace {
Part InDType(Part p, DType dtype) {
  if (p.value.dtype() != dtype) p.value = ops::to(p.value, dtype);
  return p;
}
}  // namespace

// Operators that take a 0-d tensor as a number, of which a batch has many.
bool Filled(Call& call) {
  const Part self = call.PartAt(0), number = call.PartAt(1);
  if (number.rank != 0) return false;
  if (!number.batched) return call.Run();
  const Tensor value = Aligned(InDType(number, self.value.dtype()), self.rank);
  const Tensor whole = WithBatch(self, call.batch());
  return call.Return(ops::clone(ops::expand(value, whole.sizes(), false), MemoryFormat::kContiguous));
}

bool MaskedFilled(Call& call) {
  const Part self = call.PartAt(0), mask = call.PartAt(1), number = call.PartAt(2);
  if (number.rank != 0) return false;
  const int64_t rank = std::max(self.rank, mask.rank);
  return call.Return(ops::where(Aligned(mask, rank), Aligned(InDType(number, self.value.dtype()), rank),
                                Aligned(self, rank)));
}

bool Copied(Call& call) {
  const int64_t format = call.Find("memory_format");
  const bool plain = call[format].tag == MICA_VALUE_NONE ||
                     call[format].u.i == static_cast<int64_t>(MemoryFormat::kPreserve) ||
                     call[format].u.i == static_cast<int64_t>(MemoryFormat::kContiguous);
  return plain && call.Run();
}

}  // namespace mica::batched
