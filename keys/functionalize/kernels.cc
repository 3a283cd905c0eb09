// The way of a call through the frame: a view is another link; a write is a value for a base;
// a composite decomposes, so that what its parts write is seen; anything else runs on values.
#include <optional>

#include "dispatcher/calls/given_output.h"
#include "keys/functionalize/functional.h"
#include "mica/ops/_to_copy.h"
#include "mica/ops/clone.h"
#include "mica/ops/expand.h"
#include "mica/ops/expand_copy.h"
#include "tensor/promote.h"
#include "tensor/shape.h"

namespace mica::functionalize {
namespace {

using frames::ForEachTensor;
using frames::Frame;

// What an operator of values returned, as a tensor of the frame: also where it returned one
// of them, or a part of one, though its schema does not say so.
Tensor Wrapped(Tensor result, const Place* shown, const MicaValue* args, int64_t n, const Frame& frame) {
  if (!result.defined()) return result;
  Tensor origin;
  bool same = false;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t) {
    if (same) return;
    const frames::Wrapper* w = frames::Own(t, frame);
    const Tensor& value = w ? w->value : t;
    if (value.impl()->storage != result.impl()->storage) return;
    origin = t;
    same = value.is_same(result);
  });
  if (same) return origin;
  if (!origin.defined()) return LiftAs(std::move(result), shown, frame);
  if (!frames::Own(origin, frame)) return result;  // of an outer level, as its origin is
  const LinkRef link = LinkOf(origin);
  if (result.dtype() != origin.dtype() || link->value.strides() != IntSpan(link->place.strides))
    return LiftRoot(::mica::ops::op::clone::call(result, std::nullopt), frame);
  Place place = Place::Of(result);
  place.offset += link->place.offset - link->value.storage_offset();
  LinkRef part = LinkAt(link, std::move(place));
  part->value = std::move(result);
  part->generation = link->base->generation;
  return WrapLink(origin, std::move(part), frame, true);
}

void RunOnValues(const Operator& op, const MicaValue* args, int64_t n, MicaValue* results) {
  const frames::LeaveFrame left;
  const Frame& frame = left.frame();
  {
    const frames::ReplacedArguments values(args, n, [&](const Tensor& t) { return ValueOf(t, frame); });
    op.CallBoxed(values.data(), n, results);
  }
  // Where values lie otherwise than their wrappers show, results do too.
  bool differs = false;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t) {
    const frames::Wrapper* w = frames::Own(t, frame);
    differs = differs || (w && w->value.strides() != t.strides());
  });
  const std::vector<Place> places = differs ? PlacesOfResults(op, args, n) : std::vector<Place>();
  size_t next = 0;
  ReplaceResults(op, results, [&](Tensor t) {
    const Place* shown = next < places.size() ? &places[next] : nullptr;
    ++next;
    return Wrapped(std::move(t), shown, args, n, frame);
  });
}

// Captured tensors are inputs from their first write on: runs the call again with their
// wrappers. False: there are none.
bool RunCaptured(const Operator& op, const MicaValue* args, int64_t n, uint64_t written, MicaValue* results) {
  std::optional<frames::ReplacedArguments> known;
  {
    const frames::LeaveFrame left;
    const Frame& frame = left.frame();
    Level* level = LevelOf(frame);
    bool any = false;
    ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
      if (frames::Own(t, frame)) return;
      const bool writes = (written >> i) & 1;
      if (writes && !level) frames::ThrowCaptured(op, frame, t);
      if (writes) level->Capture(t);
      any = any || writes || (level && level->Find(t).defined());
    });
    if (!any) return false;
    known.emplace(args, n, [&](const Tensor& t) {
      const Tensor wrapper = frames::Own(t, frame) ? t : level->Find(t);
      return wrapper.defined() ? wrapper : t;
    });
  }
  op.CallBoxed(known->data(), n, results);
  return true;
}

// As the write would leave it: in the shape, dtype and device of `to`.
Tensor Fitted(Tensor value, const Tensor& to) {
  if (value.sizes() != to.sizes())
    value = LinkOf(to)->base->copies ? ::mica::ops::op::expand_copy::call(value, to.sizes(), false)
                                     : ::mica::ops::op::expand::call(value, to.sizes(), false);
  if (value.dtype() == to.dtype() && value.device() == to.device()) return value;
  return ::mica::ops::op::_to_copy::call(value, to.dtype(), std::nullopt, to.device(), std::nullopt, false,
                                         std::nullopt);
}

void WriteResult(const Operator& op, const Tensor& to, Tensor value, const Frame& frame) {
  if (op.spec().form == OpForm::kInplace && op.spec().composite) {  // which makes these checks
    MICA_CHECK(
        to.sizes() == value.sizes(),
        "Shape of the result differs from that of `self`, which is written in place; expected the same "
        "shape, since an in-place form does not broadcast `self`.");
    MICA_CHECK(CanCast(value.dtype(), to.dtype()), "Result has dtype (", Name(value.dtype()),
               "), which `self` of dtype (", Name(to.dtype()),
               ") cannot hold; expected a `self` of the same kind or a wider one.");
  }
  MICA_CHECK(op.spec().form != OpForm::kOut || CanCast(value.dtype(), to.dtype()), "The result of ",
             op.spec().name, " has the dtype (", Name(value.dtype()),
             "), which cannot be cast to the dtype (", Name(to.dtype()),
             ") of `out`; give one of a dtype that can hold it.");
  if (op.spec().form == OpForm::kOut && value.sizes() != to.sizes())
    Resize(op, to, value.sizes(), ContiguousStrides(value.sizes()), frame);
  CheckNoInternalOverlap(to, op.spec().form == OpForm::kOut ? "out" : "self");
  Write(op, to, Fitted(std::move(value), to), frame);
}

// In-place and out=: the functional form.
void RunFunctional(const Operator& op, const Operator& functional, const MicaValue* args, int64_t n) {
  const OperatorSpec& spec = op.spec();
  const Frame& frame = *frames::Current();
  {
    const frames::LeaveFrame left;
    CheckRecorded(op, op.spec().name, args, n, spec.written_args, frame);
    CheckShapes(op, args, n);
  }
  std::vector<MicaValue> inputs(args, args + functional.schema().arguments.size());
  // What is written has the dtype, unless another is asked for.
  if (spec.dtype_arg >= 0 && inputs[static_cast<size_t>(spec.dtype_arg)].tag == MICA_VALUE_NONE) {
    ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
      if (!((spec.written_args >> i) & 1)) return;
      inputs[static_cast<size_t>(spec.dtype_arg)].tag = MICA_VALUE_DTYPE;
      inputs[static_cast<size_t>(spec.dtype_arg)].u.i = static_cast<int64_t>(t.dtype());
    });
  }
  ResultRoom results(functional);
  functional.CallBoxed(inputs.data(), static_cast<int64_t>(inputs.size()), results);
  std::vector<Tensor> made;
  ReplaceResults(functional, results, [&](Tensor t) {
    made.push_back(std::move(t));
    return Tensor();
  });
  const frames::LeaveFrame left;
  size_t next = 0;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    if (!((spec.written_args >> i) & 1)) return;
    MICA_INTERNAL(next < made.size(), "the functional form of ", spec.name, " returns less than it writes.");
    const Tensor& from = made[next++];
    Tensor value = ValueOf(from, frame);
    if (from.is_same(t)) return;
    bool given = false;
    ForEachTensor(args, n, [&](const Tensor& arg, int64_t) { given = given || arg.is_same(from); });
    if (given) value = ::mica::ops::op::clone::call(value, std::nullopt);
    WriteResult(op, t, std::move(value), frame);
  });
}

// An operator that has no functional form writes clones.
void RunOnClones(const Operator& op, const MicaValue* args, int64_t n, uint64_t written, MicaValue* results) {
  const frames::LeaveFrame left;
  const Frame& frame = left.frame();
  CheckRecorded(op, op.spec().name, args, n, written, frame);
  CheckShapes(op, args, n);
  std::vector<std::pair<Tensor, Tensor>> clones;  // of wrappers
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    if ((written >> i) & 1)
      clones.emplace_back(t, ::mica::ops::op::clone::call(ValueOf(t, frame), std::nullopt));
  });
  {
    const frames::ReplacedArguments values(args, n, [&](const Tensor& t) {
      for (const auto& [wrapper, clone] : clones)
        if (wrapper.is_same(t)) return clone;
      return ValueOf(t, frame);
    });
    op.CallBoxed(values.data(), n, results);
  }
  ReplaceResults(op, results, [&](Tensor t) {
    for (const auto& [wrapper, clone] : clones)
      if (clone.is_same(t)) return wrapper;
    return Wrapped(std::move(t), nullptr, args, n, frame);
  });
  for (const auto& [wrapper, clone] : clones) WriteResult(op, wrapper, clone, frame);
}

// What an operator writes, also the running statistics that torch's schema, which is ours,
// does not declare.
uint64_t WrittenBy(const Operator& op) {
  uint64_t written = op.spec().written_args;
  if (op.name() == "mica::native_batch_norm")
    for (const char* name : {"running_mean", "running_var"})
      written |= uint64_t{1} << op.schema().FindArgument(name);
  return written;
}

}  // namespace

void RunWhole(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
              MicaValue* results) {
  if (RunCaptured(op, args, n, WrittenBy(op), results)) return;
  const uint64_t written = WrittenBy(op);
  bool any = false;
  ForEachTensor(args, n, [&](const Tensor&, int64_t i) { any = any || ((written >> i) & 1); });
  any ? RunOnClones(op, args, n, written, results) : RunOnValues(op, args, n, results);
}

void RunCall(const BoxedKernel&, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
             MicaValue* results) {
  if (RunCaptured(op, args, n, op.spec().written_args, results)) return;
  const OperatorSpec& spec = op.spec();
  const bool decomposes = spec.composite && spec.adapters;
  // A composite out= form sizes and checks its outputs itself.
  if (spec.written_args && (spec.form == OpForm::kInplace || (spec.form == OpForm::kOut && !decomposes))) {
    const Operator* functional = spec.functional_name ? FindOperator(spec.functional_name) : nullptr;
    if (functional && functional != &op) return RunFunctional(op, *functional, args, n);
  }
  if (decomposes) return spec.adapters->call_slot({spec.composite, nullptr}, keys, args, results);
  spec.written_args ? RunOnClones(op, args, n, spec.written_args, results)
                    : RunOnValues(op, args, n, results);
}

void RunView(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
             MicaValue* results) {
  if (RunCaptured(op, args, n, 0, results)) return;
  const Tensor& self = Tensor::Ref(args[0].u.tensor);
  if (!frames::Own(self, *frames::Current())) return RunOnValues(op, args, n, results);
  ViewSpecs specs;
  op.spec().view(args, specs);
  const ViewSpec& spec = specs[0];
  const ThreadState& thread = CurrentThread();
  const bool grad_enabled = thread.grad_enabled;
  const frames::LeaveFrame left;
  const DType dtype = spec.dtype < 0 ? self.dtype() : static_cast<DType>(spec.dtype);
  Place place{spec.sizes, spec.strides, spec.byte_offset / ItemSize(dtype), dtype};
  // Checks the bounds, which as_strided may leave.
  static_cast<void>(MakeViewAs(self, place.sizes, place.strides, spec.byte_offset, dtype, true));
  const LinkRef from = LinkOf(self);
  LinkRef link;
  if (op.name() == "mica::as_strided") {
    link = LinkAt(from, std::move(place));
  } else {
    link = std::make_shared<Link>();
    link->base = from->base;
    link->from = from;
    link->op = &op;
    link->args = KeptArguments(op, args, n);
    link->place = std::move(place);
  }
  link->value = Replay(*link, Value(link->from), link->base->copies);
  link->generation = link->base->generation;
  const bool view = !(op.spec().flags & kNotDifferentiable);
  Tensor wrapper = WrapLink(self, std::move(link), left.frame(), view);
  if (view) {
    const ViewCreation creation = thread.inference_mode ? ViewCreation::kInference
                                  : !grad_enabled       ? ViewCreation::kNoGrad
                                  : self.is_view()
                                      ? static_cast<ViewCreation>(self.impl()->extra->view_creation)
                                      : ViewCreation::kDefault;
    wrapper.impl()->extra->view_creation = static_cast<uint8_t>(creation);
  }
  results[0] = OwnedTensorValue(std::move(wrapper));
}

void RunResize(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
               MicaValue* results) {
  if (RunCaptured(op, args, n, 1, results)) return;
  const frames::LeaveFrame left;
  const Frame& frame = left.frame();
  const Tensor& self = Tensor::Ref(args[0].u.tensor);
  if (CurrentThread().grad_enabled && ValueOf(self, frame).requires_grad()) RefuseRecordedResize(op.spec());
  const IntSpan sizes(args[1].u.ints.data, args[1].u.ints.size);
  const bool given = args[2].tag != MICA_VALUE_NONE;
  if (self.sizes() == sizes && !given) return;
  const MemoryFormat format = given ? static_cast<MemoryFormat>(args[2].u.i) : MemoryFormat::kContiguous;
  Resize(op, self, sizes, StridesIn(format, sizes), frame);
}

void RunBecomeView(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
                   MicaValue* results) {
  if (RunCaptured(op, args, n, 1, results)) return;
  const frames::LeaveFrame left;
  const Frame& frame = left.frame();
  const Tensor& self = Tensor::Ref(args[0].u.tensor);
  const Tensor& view = Tensor::Ref(args[1].u.tensor);
  const std::string name(args[2].u.str.data, static_cast<size_t>(args[2].u.str.size));
  CheckRecorded(op, name.c_str(), args, n, 1, frame);
  MICA_CHECK(frames::Own(view, frame) && self.impl()->storage == view.impl()->storage &&
                 self.dtype() == view.dtype(),
             "The tensor that ", name, " writes and its new view do not share memory.");
  SetLink(self, LinkOf(view));
  static_cast<void>(ValueOf(self, frame));
  self.impl()->storage->BumpVersion();
}

void RunCopy(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
             MicaValue* results) {
  if (RunCaptured(op, args, n, 1, results)) return;
  const frames::LeaveFrame left;
  const Frame& frame = left.frame();
  CheckRecorded(op, op.spec().name, args, n, 1, frame);
  const Tensor& self = Tensor::Ref(args[0].u.tensor);
  const Tensor& src = Tensor::Ref(args[1].u.tensor);
  CheckNoInternalOverlap(self, "self");
  const Tensor from = ValueOf(src, frame);
  Tensor value = Fitted(from, self);
  // A value of its own: what is an input's may be written when the function has returned.
  if (value.impl()->storage == from.impl()->storage)
    value = ::mica::ops::op::clone::call(value, std::nullopt);
  Write(op, self, std::move(value), frame);
}

}  // namespace mica::functionalize
