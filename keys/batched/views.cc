// Views: the operator itself on the whole batch, its dimensions shifted, where the batch
// has such a view; else by place.
//
// Dimensions are counted in the example, so that the operator refuses of the batch what it refuses of an
// example, and the loop says why (RefuseAsTheLoop). By place, the view of an example is sizes, strides and
// an offset, which its ViewFunction computes from the wrapper (and checks, as for any tensor). The same place
// in every example is one strided view of the batch, with the batch's stride in front.
#include "keys/batched/batched.h"
#include "keys/batched/ops.h"

namespace mica::batched {
namespace {

// The view of one example, with the batch in front.
struct ViewSpec {
  const Tensor& batch;
  bool by_place;  // strides and offset are asked for, too
  Dims sizes, strides;
  int64_t byte_offset = 0;
};

// Checks the call of one example, and finds what it makes.
void FindSpec(const Call& call, ViewSpec& first) {
  const auto receive = [](void* context, MicaIntSpan sizes, MicaIntSpan strides, int64_t byte_offset) {
    auto& spec = *static_cast<ViewSpec*>(context);
    if (!spec.sizes.empty()) return;
    spec.sizes = Prepended(spec.batch.sizes()[0], {sizes.data, sizes.size});
    if (!spec.by_place) return;
    spec.strides = Prepended(spec.batch.strides()[0], {strides.data, strides.size});
    spec.byte_offset = byte_offset;
  };
  layer::Check(layer::Table()->views_of(call.op().handle, call.given(), call.size(), receive, &first));
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

void ShiftDims(Call& call, int64_t rank) {
  for (int64_t i = 1; i < call.size(); ++i) {
    if (!((call.op().dims_args >> i) & 1)) continue;
    if (call[i].tag == MICA_VALUE_INT) {
      call.SetInt(i, WrapDim(call[i].u.i, rank) + 1);
    } else {
      Dims dims = WrapDims(IntsOf(call[i]), rank);
      for (int64_t& d : dims) ++d;
      call.SetInts(i, std::move(dims));
    }
  }
}

// The way for examples of the rank, of which those of none have no dimension to shift. Of an empty batch
// nobody can tell which size a -1 stands for, but of its examples.
ViewWay WayOf(const Call& call, int64_t rank) {
  const Op& op = call.op();
  if (op.view == ViewWay::kT && rank != 2) return ViewWay::kByPlace;
  if (op.view == ViewWay::kByDims && rank == 0 && op.name() != "mica::unsqueeze") return ViewWay::kByPlace;
  if (op.view == ViewWay::kView && call.batch() == 0) return ViewWay::kByPlace;
  return op.view;
}

Dims BatchInFront(const MicaValue& dims, int64_t rank) {
  Dims all = {0};
  for (const int64_t d : WrapDims(IntsOf(dims), rank)) all.push_back(d + 1);
  return all;
}

Dims Ones(const Tensor& batch) {
  Dims ones;
  for (int64_t d = 1; d < batch.ndim(); ++d)
    if (batch.sizes()[d] == 1) ones.push_back(d);
  return ones;
}

// Where the view needs nothing of an example's.
Tensor ByOperatorAlone(Call& call, const Part& self, ViewWay way) {
  if (way == ViewWay::kView) return ops::view(self.value, Prepended(call.batch(), IntsOf(call[1])));
  if (way == ViewWay::kT) return ops::transpose(self.value, 1, 2);
  if (way == ViewWay::kPermute) return ops::permute(self.value, BatchInFront(call[1], self.rank));
  if (way == ViewWay::kSqueeze) return ops::squeeze(self.value, Ones(self.value));
  if (way == ViewWay::kByDims) ShiftDims(call, self.rank + (call.op().name() == "mica::unsqueeze" ? 1 : 0));
  return Called(call);
}

Tensor BySpec(const Call& call, const Part& self, const ViewSpec& spec, ViewWay way) {
  if (way == ViewWay::kExpand)
    return ops::expand(Aligned(self, static_cast<int64_t>(spec.sizes.size()) - 1), spec.sizes,
                       call[2].u.i != 0);
  return ByPlace(spec);
}

}  // namespace

uint64_t DimsArgs(const MicaOperatorInfo& info) {
  uint64_t args = 0;
  for (int32_t i = 1; i < std::min(info.num_args, 64); ++i)
    if (CountsDims(info.args[i].name)) args |= uint64_t{1} << i;
  return args;
}

// By place only where nothing else is known: its gradient takes elements that share memory for one.
ViewWay WayOfView(const MicaOperatorInfo& info) {
  const std::string_view name = info.name;
  for (const char* whole : {"mica::_conj", "mica::_neg_view", "mica::alias", "mica::detach",
                            "mica::view.dtype", "mica::view_as_real", "mica::view_as_complex"})
    if (name == whole) return ViewWay::kWhole;
  if (name == "mica::view") return ViewWay::kView;
  if (name == "mica::expand") return ViewWay::kExpand;
  if (name == "mica::t") return ViewWay::kT;
  if (name == "mica::permute") return ViewWay::kPermute;
  if (name == "mica::squeeze") return ViewWay::kSqueeze;
  return DimsArgs(info) ? ViewWay::kByDims : ViewWay::kByPlace;
}

bool View(Call& call) {
  const Part self = call.PartAt(0);
  const ViewWay way = WayOf(call, self.rank);
  ViewSpec spec{self.value, way == ViewWay::kByPlace, {}, {}};
  const bool by_spec = way >= ViewWay::kExpand;
  // The batch would stand in for the last dimension, which an example without any lacks.
  if (by_spec || (way == ViewWay::kWhole && self.rank == 0)) FindSpec(call, spec);
  if (by_spec) return call.ReturnView(BySpec(call, self, spec, way));
  Tensor view = ByOperatorAlone(call, self, way);
  // What has no batch yet may get one: Note [Late batches].
  const bool apart = self.batched && call.op().name() == "mica::detach";
  return apart ? call.Return(std::move(view)) : call.ReturnView(std::move(view));
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
  call.Promote(0);
  const Part to = call.PartAt(0), from = call.PartAt(1);
  const MicaStr name = call[2].u.str;
  ops::_become_view_(to.value, from.value, std::string_view(name.data, static_cast<size_t>(name.size)));
  layer::Check(layer::Table()->move_wrapper(self, &call.frame(), nullptr, 0));
  return true;
}

}  // namespace mica::batched
