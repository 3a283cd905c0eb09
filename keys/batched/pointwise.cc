// Pointwise operators, copy_ among them: batches in front, ranks aligned, so that
// broadcasting does the rest.
#include "keys/batched/batched.h"

#include "mica/ops/clone.h"
#include "mica/ops/expand.h"
#include "mica/ops/to.h"
#include "mica/ops/where.h"
#include "tensor/shape.h"

namespace mica::batched {
namespace {

// A 0-d tensor counts less in type promotion than others, and a batch of 0-d tensors is
// none any more: where dtypes differ, all get the dtype that one example computes in.
void Promoted(Call& call, absl::InlinedVector<Part, 4>& parts, uint64_t written) {
  bool scalars = false, differ = false;
  const Part* first = nullptr;
  for (const Part& p : parts) {
    if (!p.value.defined()) continue;
    scalars = scalars || (p.batched && p.rank == 0);
    first = first ? first : &p;
    differ = differ || p.value.dtype() != first->value.dtype();
  }
  const OperatorSpec& spec = call.op().spec();
  if (!scalars || !differ || !spec.meta) return;
  MetaResult meta;
  spec.meta(spec, call.given(), meta);
  if (meta.compute_dtype == MICA_DTYPE_NONE) return;
  const auto dtype = static_cast<DType>(meta.compute_dtype);
  for (size_t i = 0; i < parts.size(); ++i) {
    Tensor& t = parts[i].value;
    if (!t.defined() || ((written >> i) & 1) || t.dtype() == dtype || t.dtype() == DType::kBool) continue;
    t = ::mica::ops::op::to_dtype::call(t, dtype, false, false, std::nullopt);
  }
}

// Before it gets a batch, what is written must have the shape that the others broadcast to: the
// batch in front must not stand in for a dimension, and a call that raises changes nothing.
void CheckWritten(const Call& call, uint64_t written) {
  for (int64_t w = 0; w < call.size(); ++w) {
    if (!((written >> w) & 1) || !call.IsTensor(w)) continue;
    const IntSpan to = Tensor::Ref(call.given()[w].u.tensor).sizes();
    for (int64_t i = 0; i < call.size(); ++i) {
      if (i == w || !call.IsTensor(i)) continue;
      const IntSpan from = Tensor::Ref(call.given()[i].u.tensor).sizes();
      bool fits = from.size() <= to.size();
      for (int64_t d = 1; fits && d <= from.size(); ++d)
        fits = from[from.size() - d] == 1 || from[from.size() - d] == to[to.size() - d];
      MICA_CHECK(fits, "Operator ", call.op().spec().name, " writes `",
                 call.op().schema().arguments[static_cast<size_t>(w)].name, "` of shape ", ShapeText(to),
                 ", to which the shape ", ShapeText(from), " of `",
                 call.op().schema().arguments[static_cast<size_t>(i)].name, "` does not broadcast.");
    }
  }
}

}  // namespace

bool Pointwise(Call& call) {
  const uint64_t written = call.op().spec().written_args;
  const int64_t n = call.size();
  absl::InlinedVector<Part, 4> parts(static_cast<size_t>(n));
  int64_t rank = 0;
  if (written) CheckWritten(call, written);
  for (int64_t i = 0; i < n; ++i) {
    if (!call.IsTensor(i)) continue;
    if ((written >> i) & 1) Promote(call.op(), Tensor::Ref(call.given()[i].u.tensor), call.frame());
    Part& p = parts[static_cast<size_t>(i)] = call.PartAt(i);
    rank = std::max(rank, p.rank);
  }
  Promoted(call, parts, written);
  for (int64_t i = 0; i < n; ++i) {
    const Part& p = parts[static_cast<size_t>(i)];
    if (p.value.defined()) call.Set(i, (written >> i) & 1 ? p.value : Aligned(p, rank));
  }
  return call.Run();
}

namespace {
Part InDType(Part p, DType dtype) {
  if (p.value.dtype() != dtype)
    p.value = ::mica::ops::op::to_dtype::call(p.value, dtype, false, false, std::nullopt);
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
  return call.Return(::mica::ops::op::clone::call(::mica::ops::op::expand::call(value, whole.sizes(), false),
                                                  MemoryFormat::kContiguous));
}

bool MaskedFilled(Call& call) {
  const Part self = call.PartAt(0), mask = call.PartAt(1), number = call.PartAt(2);
  if (number.rank != 0) return false;
  const int64_t rank = std::max(self.rank, mask.rank);
  return call.Return(::mica::ops::op::where_self::call(
      Aligned(mask, rank), Aligned(InDType(number, self.value.dtype()), rank), Aligned(self, rank)));
}

bool Copied(Call& call) {
  const int64_t format = call.Find("memory_format");
  const bool plain = call[format].tag == MICA_VALUE_NONE ||
                     call[format].u.i == static_cast<int64_t>(MemoryFormat::kPreserve) ||
                     call[format].u.i == static_cast<int64_t>(MemoryFormat::kContiguous);
  return plain && call.Run();
}

}  // namespace mica::batched
