// Views: the operator itself on the whole batch, its dimensions shifted, where the batch
// has such a view; else by place.
//
// The view of an example is sizes, strides and an offset, which its ViewFunction computes
// from the wrapper (and checks, as for any tensor). The same place in every example is one
// strided view of the batch, with the batch's stride in front.
#include "keys/batched/batched.h"

#include "mica/ops/_become_view_.h"
#include "mica/ops/alias.h"
#include "mica/ops/as_strided.h"
#include "mica/ops/expand.h"
#include "mica/ops/permute.h"
#include "mica/ops/squeeze.h"
#include "mica/ops/transpose.h"
#include "mica/ops/view.h"
#include "tensor/shape.h"

namespace mica::batched {
namespace {

Dims Prepended(int64_t first, IntSpan rest) {
  Dims all = {first};
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

Tensor ByPlace(const Tensor& value, const ViewSpec& spec) {
  return ::mica::ops::op::as_strided::call(value, Prepended(value.sizes()[0], spec.sizes),
                                           Prepended(value.strides()[0], spec.strides),
                                           spec.byte_offset / value.itemsize());
}

// Arguments that count dimensions of `self`.
bool CountsDims(std::string_view name) {
  return name == "dim" || name == "dim0" || name == "dim1" || name == "dim2" || name == "dims" ||
         name == "dimension";
}

bool ShiftDims(Call& call, int64_t rank) {
  bool any = false;
  for (int64_t i = 1; i < call.size(); ++i) {
    if (!CountsDims(call.op().schema().arguments[static_cast<size_t>(i)].name)) continue;
    if (call[i].tag == MICA_VALUE_INT) {
      call.SetInt(i, WrapDim(call[i].u.i, rank) + 1);
    } else {
      Dims dims = WrapDims({call[i].u.ints.data, call[i].u.ints.size}, rank);
      for (int64_t& d : dims) ++d;
      call.SetInts(i, std::move(dims));
    }
    any = true;
  }
  return any;
}

Tensor ViewOf(Call& call, const Part& self, const ViewSpec& spec) {
  const std::string_view name = call.op().name();
  const Dims sizes = Prepended(self.value.sizes()[0], spec.sizes);
  // Not by place, whose gradient takes elements that share memory for one.
  if (name == "mica::view") return ::mica::ops::op::view::call(self.value, sizes);
  if (name == "mica::expand")
    return ::mica::ops::op::expand::call(Aligned(self, static_cast<int64_t>(spec.sizes.size())), sizes,
                                         call[2].u.i != 0);
  if (name == "mica::t" && self.rank == 2) return ::mica::ops::op::transpose_int::call(self.value, 1, 2);
  if (name == "mica::permute") {
    Dims dims = WrapDims({call[1].u.ints.data, call[1].u.ints.size}, self.rank);
    for (int64_t& d : dims) ++d;
    return ::mica::ops::op::permute::call(self.value, Prepended(0, dims));
  }
  if (name == "mica::squeeze") {
    Dims ones;
    for (int64_t d = 1; d <= self.rank; ++d)
      if (self.value.sizes()[d] == 1) ones.push_back(d);
    return ::mica::ops::op::squeeze_dims::call(self.value, ones);
  }
  // Of 0-d examples no dimension can be shifted.
  const bool unsqueeze = name == "mica::unsqueeze";
  if ((self.rank == 0 && !unsqueeze) || !ShiftDims(call, self.rank + (unsqueeze ? 1 : 0)))
    return ByPlace(self.value, spec);
  MicaValue made[1];
  call.op().CallBoxed(&call[0], call.size(), made);
  return TakeTensor(made[0]);
}

// What keeps all dimensions where they are, counted from the last.
bool IsWhole(std::string_view name) {
  return name == "mica::_conj" || name == "mica::_neg_view" || name == "mica::alias" ||
         name == "mica::detach" || name == "mica::view.dtype" || name == "mica::view_as_real" ||
         name == "mica::view_as_complex";
}

}  // namespace

bool View(Call& call) {
  ViewSpecs specs;
  call.op().spec().view(call.given(), specs);
  const Part self = call.PartAt(0);
  if (IsWhole(call.op().name())) {
    MicaValue made[1];
    call.op().CallBoxed(&call[0], call.size(), made);
    const Tensor view = TakeTensor(made[0]);
    // What has no batch yet may get one: Note [Late batches].
    const bool apart = call.op().name() == "mica::detach" && self.batched;
    return apart ? call.Return(view) : call.ReturnView(view);
  }
  return call.ReturnView(ViewOf(call, self, specs[0]));
}

// The memory of one example has no room of its own to grow.
bool Resize(Call& call) {
  const Tensor& self = Tensor::Ref(call.given()[0].u.tensor);
  const IntSpan sizes(call[1].u.ints.data, call[1].u.ints.size);
  MICA_CHECK_IMPLEMENTED(self.sizes() == sizes, "Operator resize_ gives a tensor (", self.ToString(),
                         ") that stands for a batch under vmap another shape ", ShapeText(sizes),
                         ", which cannot; make a tensor of that shape (x.reshape(...), x.new_zeros(...)).");
  return true;
}

bool BecomeView(Call& call) {
  const Tensor& self = Tensor::Ref(call.given()[0].u.tensor);
  Promote(call.op(), self, call.frame());
  const Part to = call.PartAt(0), from = call.PartAt(1);
  const MicaStr name = call[2].u.str;
  ::mica::ops::op::_become_view_::call(to.value, from.value,
                                       std::string_view(name.data, static_cast<size_t>(name.size)));
  frames::Refresh(self);
  return true;
}

}  // namespace mica::batched
