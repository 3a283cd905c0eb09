// Operators along dimensions: reductions, scans, rows, sorting; gather and scatter by one.
//
// Dimensions of an example count from 1 in the batch. An example of rank 0 gets a dimension
// of size 1 first, which the result loses again.
#include "keys/batched/batched.h"
#include "keys/batched/ops.h"

namespace mica::batched {
namespace {

Tensor AtLeast1d(const Part& p) {
  return p.rank == 0 && p.value.defined() ? ops::unsqueeze(p.value, p.batched ? 1 : 0) : p.value;
}

Tensor Flattened(const Tensor& t) {
  int64_t elements = 1;  // of one example, also where there is none
  for (int64_t i = 1; i < t.ndim(); ++i) elements *= t.sizes()[i];
  return ops::reshape(t, {t.sizes()[0], elements});
}

Tensor WithShape(const Tensor& t, IntSpan sizes) { return ops::reshape(t, Prepended(t.sizes()[0], sizes)); }

Dims Shifted(IntSpan dims, int64_t rank) {
  Dims shifted = WrapDims(dims, rank);
  for (int64_t& d : shifted) ++d;
  return shifted;
}

// The overload of a reduction of everything that reduces given dimensions.
const Op* Dimensional(const Op& op) {
  const std::string_view name = op.name();
  const std::string base(name.substr(0, name.find('.')));
  const size_t colons = base.find("::") + 2;
  for (const std::string& candidate : {base + ".dim_IntList", base + ".dim_int", base + ".dim",
                                       base.substr(0, colons) + "a" + base.substr(colons)}) {
    const Op* found = FindOp(candidate);
    if (found && found->is_class("reduction") && found->info->dims_arg >= 0 &&
        found->info->num_results == op.info->num_results)
      return found;
  }
  return nullptr;
}

// A reduction of everything as the one of dimension 1 of flat examples.
bool ReduceAll(Call& call) {
  const Op* other = call.op().dimensional.load(std::memory_order_acquire);
  if (!other) call.op().dimensional.store(other = Dimensional(call.op()), std::memory_order_release);
  MICA_FORMULA_CHECK_(MICA_ERROR_INTERNAL, other, "a reduction has no overload of dimensions.");
  const Tensor flat = Flattened(call.PartAt(0).value);
  static constexpr int64_t kOne = 1;
  layer::Few<MicaValue, 6> args;
  for (int32_t at = 0; at < other->info->num_args; ++at) {
    const MicaArgumentInfo& a = other->info->args[at];
    MicaValue v{};
    const int64_t same = call.Find(a.name);
    if (at == 0) {
      v = formula::Box(flat);
    } else if (at == other->info->dims_arg) {
      v.tag = a.tag;
      if (a.tag == MICA_VALUE_INTS) {
        v.u.ints = {&kOne, 1};
      } else {
        v.u.i = kOne;
      }
    } else if (at == other->info->keepdim_arg) {
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
  const MicaOperatorInfo& spec = *call.op().info;
  if (spec.dims_arg < 0) return ReduceAll(call);
  const Part self = call.PartAt(0);
  const Tensor value = AtLeast1d(self);
  const MicaValue dims = call[spec.dims_arg];
  const bool keepdim = spec.keepdim_arg >= 0 && call[spec.keepdim_arg].u.i != 0;
  const bool all = dims.tag == MICA_VALUE_NONE ||
                   (dims.tag == MICA_VALUE_INTS && dims.u.ints.size == 0 && spec.none_dims == 1);
  const auto lowered = [&](Tensor t) { return self.rank == 0 && keepdim ? ops::squeeze(t, 1) : t; };
  call.Set(0, value);
  if (!all && dims.tag == MICA_VALUE_INT) {
    call.SetInt(spec.dims_arg, WrapDim(dims.u.i, self.rank) + 1);
    return call.Run(lowered);
  }
  if (!all) {
    call.SetInts(spec.dims_arg, Shifted(IntsOf(dims), self.rank));
    return call.Run(lowered);
  }
  if (spec.args[spec.dims_arg].tag == MICA_VALUE_INTS) {
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
  const Op& op = call.op();
  const int64_t rank = call.PartAt(0).rank;
  for (int64_t i = 0; i < call.size(); ++i) {
    if (call.IsTensor(i)) {
      Part p = call.PartAt(i);
      p.value = WithBatch(p, call.batch());
      p.batched = true;
      // The operands of a row broadcast to the first; elsewhere ranks are equal.
      if (op.is_class("row") && p.value.defined() && p.rank < rank) p = {Aligned(p, rank), true, rank};
      call.Set(i, rank == 0 || p.rank == 0 ? AtLeast1d(p) : p.value);
    }
    const std::string_view name = op.info->args[i].name;
    if (name != "dim" && name != "dims") continue;
    if (call[i].tag == MICA_VALUE_INT) call.SetInt(i, WrapDim(call[i].u.i, rank) + 1);
    if (call[i].tag == MICA_VALUE_INTS) call.SetInts(i, Shifted(IntsOf(call[i]), rank));
  }
  // What gather gives has its index's dimensions.
  const int64_t index = op.is_class("gather") ? call.Find("index") : -1;
  const bool number = index >= 0 ? call.PartAt(index).rank == 0 : rank == 0;
  return call.Run([&](Tensor t) {
    const bool lower = number && t.ndim() == 2 && t.sizes()[1] == 1;
    return lower ? ops::squeeze(t, 1) : t;
  });
}

bool UnfoldBackward(Call& call) {
  const IntSpan sizes = IntsOf(call[1]);
  if (sizes.size() == 0) return false;
  Dims whole = Prepended(call.batch(), sizes);
  call.SetInt(2, WrapDim(call[2].u.i, sizes.size()) + 1);
  call.SetInts(1, std::move(whole));
  return call.Run();
}

bool FlatAlong(Call& call) {
  const int64_t dims = call.Find("dims");
  if (call[dims].tag == MICA_VALUE_INTS && call[dims].u.ints.size > 0) return Along(call);
  const Part self = call.PartAt(0);
  const Dims shape = Own(SizesOf(call.given()[0]));
  call.Set(0, Flattened(self.value));
  call.SetInts(dims, {1});
  return call.Run([&](Tensor t) { return WithShape(t, shape); });
}

}  // namespace mica::batched
