// Operators along dimensions: reductions, scans, rows, sorting; gather and scatter by one.
//
// Dimensions of an example count from 1 in the batch. An example of rank 0 gets a dimension
// of size 1 first, which the result loses again.
#include "keys/batched/batched.h"

#include "absl/strings/str_cat.h"
#include "mica/ops/reshape.h"
#include "mica/ops/squeeze.h"
#include "mica/ops/unsqueeze.h"
#include "tensor/shape.h"

namespace mica::batched {
namespace {

Tensor AtLeast1d(const Part& p) {
  return p.rank == 0 && p.value.defined() ? ::mica::ops::op::unsqueeze::call(p.value, p.batched ? 1 : 0)
                                          : p.value;
}

Tensor Flattened(const Tensor& t) { return ::mica::ops::op::reshape::call(t, {t.sizes()[0], -1}); }

Tensor WithShape(const Tensor& t, IntSpan sizes) {
  Dims all = {t.sizes()[0]};
  all.insert(all.end(), sizes.begin(), sizes.end());
  return ::mica::ops::op::reshape::call(t, all);
}

Dims Shifted(IntSpan dims, int64_t rank) {
  Dims shifted = WrapDims(dims, rank);
  for (int64_t& d : shifted) ++d;
  return shifted;
}

// The overload of a reduction of everything that reduces given dimensions.
const Operator* Dimensional(const Operator& op) {
  const std::string_view name = op.name();
  const std::string base(name.substr(0, name.find('.')));
  const size_t colons = base.find("::") + 2;
  for (const std::string& candidate :
       {absl::StrCat(base, ".dim_IntList"), absl::StrCat(base, ".dim_int"), absl::StrCat(base, ".dim"),
        absl::StrCat(base.substr(0, colons), "a", base.substr(colons))}) {
    const Operator* found = FindOperator(candidate);
    if (found && found->spec().op_class == OpClass::kReduction && found->spec().dims_arg >= 0 &&
        found->spec().num_outputs == op.spec().num_outputs)
      return found;
  }
  return nullptr;
}

// A reduction of everything as the one of dimension 1 of flat examples.
bool ReduceAll(Call& call) {
  const Operator* other = Dimensional(call.op());
  MICA_INTERNAL(other, "a reduction has no overload of dimensions.");
  const Tensor flat = Flattened(call.PartAt(0).value);
  static constexpr int64_t kOne = 1;
  absl::InlinedVector<MicaValue, 6> args;
  for (const schema::Argument& a : other->schema().arguments) {
    MicaValue v{};
    v.tag = MICA_VALUE_NONE;
    const int64_t same = call.Find(a.name);
    const auto at = static_cast<int16_t>(args.size());
    if (at == 0) {
      v.tag = MICA_VALUE_TENSOR;
      v.u.tensor = flat.impl();
    } else if (at == other->spec().dims_arg) {
      v.tag = a.type.is_list() ? MICA_VALUE_INTS : MICA_VALUE_INT;
      if (a.type.is_list()) {
        v.u.ints = {&kOne, 1};
      } else {
        v.u.i = kOne;
      }
    } else if (at == other->spec().keepdim_arg) {
      v.tag = MICA_VALUE_BOOL;
    } else if (same >= 0) {
      v = call[same];
    }
    args.push_back(v);
  }
  return call.Run(*other, args.data(), static_cast<int64_t>(args.size()));
}

}  // namespace

bool Reduction(Call& call) {
  const OperatorSpec& spec = call.op().spec();
  if (spec.dims_arg < 0) return ReduceAll(call);
  const Part self = call.PartAt(0);
  const Tensor value = AtLeast1d(self);
  const MicaValue dims = call[spec.dims_arg];
  const bool keepdim = spec.keepdim_arg >= 0 && call[spec.keepdim_arg].u.i != 0;
  const bool all = dims.tag == MICA_VALUE_NONE ||
                   (dims.tag == MICA_VALUE_INTS && dims.u.ints.size == 0 && spec.none_dims == 1);
  const auto lowered = [&](Tensor t) {
    return self.rank == 0 && keepdim ? ::mica::ops::op::squeeze_dim::call(t, 1) : t;
  };
  call.Set(0, value);
  if (!all && dims.tag == MICA_VALUE_INT) {
    call.SetInt(spec.dims_arg, WrapDim(dims.u.i, self.rank) + 1);
    return call.Run(lowered);
  }
  if (!all) {
    call.SetInts(spec.dims_arg, Shifted({dims.u.ints.data, dims.u.ints.size}, self.rank));
    return call.Run(lowered);
  }
  if (call.op().schema().arguments[static_cast<size_t>(spec.dims_arg)].type.is_list()) {
    Dims every;
    for (int64_t d = 1; d < value.ndim(); ++d) every.push_back(d);
    call.SetInts(spec.dims_arg, std::move(every));
    return call.Run(lowered);
  }
  call.Set(0, Flattened(value));
  call.SetInt(spec.dims_arg, 1);
  const Dims ones(static_cast<size_t>(keepdim ? self.rank : 0), 1);
  return call.Run([&](Tensor t) { return WithShape(t, ones); });
}

bool Along(Call& call) {
  const Operator& op = call.op();
  const int64_t rank = call.PartAt(0).rank;
  for (int64_t i = 0; i < call.size(); ++i) {
    if (call.IsTensor(i)) {
      Part p = call.PartAt(i);
      p.value = WithBatch(p, call.batch());
      p.batched = true;
      // The operands of a row broadcast to the first; elsewhere ranks are equal.
      if (op.spec().op_class == OpClass::kRow && p.value.defined() && p.rank < rank)
        p = {Aligned(p, rank), true, rank};
      call.Set(i, rank == 0 || p.rank == 0 ? AtLeast1d(p) : p.value);
    }
    const std::string& name = op.schema().arguments[static_cast<size_t>(i)].name;
    if (name != "dim" && name != "dims") continue;
    if (call[i].tag == MICA_VALUE_INT) call.SetInt(i, WrapDim(call[i].u.i, rank) + 1);
    if (call[i].tag == MICA_VALUE_INTS)
      call.SetInts(i, Shifted({call[i].u.ints.data, call[i].u.ints.size}, rank));
  }
  // What gather gives has its index's dimensions.
  const int64_t index = op.spec().op_class == OpClass::kGather ? call.Find("index") : -1;
  const bool number = index >= 0 ? call.PartAt(index).rank == 0 : rank == 0;
  return call.Run([&](Tensor t) {
    const bool lower = number && t.ndim() == 2 && t.sizes()[1] == 1;
    return lower ? ::mica::ops::op::squeeze_dim::call(t, 1) : t;
  });
}

bool UnfoldBackward(Call& call) {
  const IntSpan sizes(call[1].u.ints.data, call[1].u.ints.size);
  if (sizes.empty()) return false;
  Dims whole = {call.batch()};
  whole.insert(whole.end(), sizes.begin(), sizes.end());
  call.SetInt(2, WrapDim(call[2].u.i, sizes.size()) + 1);
  call.SetInts(1, std::move(whole));
  return call.Run();
}

bool FlatAlong(Call& call) {
  const int64_t dims = call.Find("dims");
  if (call[dims].tag == MICA_VALUE_INTS && call[dims].u.ints.size > 0) return Along(call);
  const Part self = call.PartAt(0);
  const Dims shape = ToDims(Tensor::Ref(call.given()[0].u.tensor).sizes());
  call.Set(0, Flattened(self.value));
  call.SetInts(dims, {1});
  return call.Run([&](Tensor t) { return WithShape(t, shape); });
}

}  // namespace mica::batched
