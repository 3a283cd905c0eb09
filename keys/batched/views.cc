// Views: the operator itself on the whole batch, its dimensions shifted, where the batch
// has such a view; else by place.
//
// The view of an example is sizes, strides and an offset, which its ViewFunction computes
// from the wrapper (and checks, as for any tensor). The same place in every example is one
// strided view of the batch, with the batch's stride in front.
#include "keys/batched/batched.h"
#include "keys/batched/ops.h"

namespace mica::batched {
namespace {

// The view of one example, with the batch in front.
struct ViewSpec {
  const Tensor& batch;
  Dims sizes, strides;
  int64_t byte_offset = 0;
};

// Checks the call of one example. What it makes: `first`, if that is not NULL.
void FindSpec(const Call& call, ViewSpec* first) {
  const auto receive = [](void* context, MicaIntSpan sizes, MicaIntSpan strides, int64_t byte_offset) {
    if (!context) return;
    auto& spec = *static_cast<ViewSpec*>(context);
    if (!spec.sizes.empty()) return;
    spec.sizes = Prepended(spec.batch.sizes()[0], {sizes.data, sizes.size});
    spec.strides = Prepended(spec.batch.strides()[0], {strides.data, strides.size});
    spec.byte_offset = byte_offset;
  };
  layer::Check(layer::Table()->views_of(call.op().handle, call.given(), call.size(), receive, first));
}

Tensor ByPlace(const ViewSpec& spec) {
  const Tensor& value = spec.batch;
  return ops::as_strided(value, spec.sizes, spec.strides,
                         spec.byte_offset / plugin::TensorRef(value.get()).itemsize());
}

// The operator itself, of the batch.
Tensor Called(const Call& call) {
  MicaValue made{};
  CallBoxed(call.op(), &call[0], call.size(), &made);
  return formula::Unboxed<Tensor>::Take(made);
}

// Arguments that count dimensions of `self`.
bool CountsDims(std::string_view name) {
  return name == "dim" || name == "dim0" || name == "dim1" || name == "dim2" || name == "dims" ||
         name == "dimension";
}

bool ShiftDims(Call& call, int64_t rank) {
  bool any = false;
  for (int64_t i = 1; i < call.size(); ++i) {
    if (!CountsDims(call.op().info->args[i].name)) continue;
    if (call[i].tag == MICA_VALUE_INT) {
      call.SetInt(i, WrapDim(call[i].u.i, rank) + 1);
    } else {
      Dims dims = WrapDims(IntsOf(call[i]), rank);
      for (int64_t& d : dims) ++d;
      call.SetInts(i, std::move(dims));
    }
    any = true;
  }
  return any;
}

Tensor ViewOf(Call& call, const Part& self, const ViewSpec& spec) {
  const std::string_view name = call.op().name();
  // Not by place, whose gradient takes elements that share memory for one.
  if (name == "mica::view") return ops::view(self.value, spec.sizes);
  if (name == "mica::expand")
    return ops::expand(Aligned(self, static_cast<int64_t>(spec.sizes.size()) - 1), spec.sizes,
                       call[2].u.i != 0);
  if (name == "mica::t" && self.rank == 2) return ops::transpose(self.value, 1, 2);
  if (name == "mica::permute") {
    Dims dims = WrapDims(IntsOf(call[1]), self.rank);
    for (int64_t& d : dims) ++d;
    return ops::permute(self.value, Prepended(0, dims));
  }
  if (name == "mica::squeeze") {
    Dims ones;
    for (int64_t d = 1; d <= self.rank; ++d)
      if (self.value.sizes()[d] == 1) ones.push_back(d);
    return ops::squeeze(self.value, ones);
  }
  // Of 0-d examples no dimension can be shifted.
  const bool unsqueeze = name == "mica::unsqueeze";
  if ((self.rank == 0 && !unsqueeze) || !ShiftDims(call, self.rank + (unsqueeze ? 1 : 0)))
    return ByPlace(spec);
  return Called(call);
}

// What keeps all dimensions where they are, counted from the last.
bool IsWhole(std::string_view name) {
  return name == "mica::_conj" || name == "mica::_neg_view" || name == "mica::alias" ||
         name == "mica::detach" || name == "mica::view.dtype" || name == "mica::view_as_real" ||
         name == "mica::view_as_complex";
}

}  // namespace

bool View(Call& call) {
  const Part self = call.PartAt(0);
  if (IsWhole(call.op().name())) {
    FindSpec(call, nullptr);
    const Tensor view = Called(call);
    // What has no batch yet may get one: Note [Late batches].
    const bool apart = call.op().name() == "mica::detach" && self.batched;
    return apart ? call.Return(view) : call.ReturnView(view);
  }
  ViewSpec spec{self.value, {}, {}};
  FindSpec(call, &spec);
  return call.ReturnView(ViewOf(call, self, spec));
}

// The memory of one example has no room of its own to grow.
bool Resize(Call& call) {
  MicaTensor* const self = call.given()[0].u.tensor;
  const IntSpan sizes = IntsOf(call[1]);
  MICA_CHECK_IMPLEMENTED(SizesOf(self) == sizes, "Operator resize_ gives a tensor (", TextOf(self),
                         ") that stands for a batch under vmap another shape ", Show(sizes),
                         ", which cannot; make a tensor of that shape (x.reshape(...), x.new_zeros(...)).");
  return true;
}

bool BecomeView(Call& call) {
  MicaTensor* const self = call.given()[0].u.tensor;
  Promote(call.op(), self, call.frame());
  const Part to = call.PartAt(0), from = call.PartAt(1);
  const MicaStr name = call[2].u.str;
  ops::_become_view_(to.value, from.value, std::string_view(name.data, static_cast<size_t>(name.size)));
  layer::Check(layer::Table()->move_wrapper(self, &call.frame(), nullptr, 0));
  return true;
}

}  // namespace mica::batched
