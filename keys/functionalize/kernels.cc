// The way of a call through the frame: a view is another link; a write is a value for a base;
// a composite decomposes, so that what its parts write is seen; anything else runs on values.
#include <atomic>
#include <mutex>
#include <unordered_map>

#include "keys/functionalize/functional.h"

namespace mica::functionalize {
namespace {

// What the rule gives each kernel: the operator, and its functional form once it was looked for.
struct Entry {
  OperatorRef op;
  mutable std::atomic<void*> functional{nullptr};
};
// One for each operator, for good: a table that is made again has the same.
const Entry& EntryOf(void* op) {
  static std::mutex mutex;
  static auto& entries = *new std::unordered_map<void*, Entry>();
  const std::lock_guard<std::mutex> lock(mutex);
  Entry& entry = entries[op];
  entry.op = {op, layer::Table()->operator_info(op)};
  return entry;
}
const OperatorRef& OpOf(const layer::Call& call) { return call.context<const Entry>()->op; }

// The functional form of what writes; empty where there is none.
OperatorRef FunctionalOf(const Entry& entry) {
  const char* const name = entry.op.info->functional_name;
  if (!name || entry.op.name() == name) return {};
  void* handle = entry.functional.load(std::memory_order_acquire);
  if (!handle) {
    handle = layer::Table()->find_operator(name);
    entry.functional.store(handle, std::memory_order_release);
  }
  return handle ? OperatorRef(handle, layer::Table()->operator_info(handle)) : OperatorRef();
}

// What an operator of values returned, as a tensor of the frame: also where it returned one
// of them, or a part of one, though its schema does not say so.
Tensor Wrapped(Tensor result, const Place* shown, const MicaValue* args, int64_t n, const MicaFrame& frame) {
  if (!result.defined()) return result;
  Tensor origin;
  bool same = false;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t) {
    if (same) return;
    const auto own = layer::OwnOf(t, frame);
    MicaTensor* const value = own ? own->value : t.get();
    if (!ShareStorage(value, result.get())) return;
    origin = t;
    same = value == result.get();
  });
  if (same) return origin;
  if (!origin.defined()) return LiftAs(result, shown, frame);
  if (!layer::OwnOf(origin, frame)) return result;  // of an outer level, as its origin is
  const LinkRef link = LinkOf(origin);
  if (result.dtype() != origin.dtype() || link->value.strides() != IntSpan(link->place.strides))
    return LiftRoot(Clone(result, std::nullopt), frame);
  Place place = Place::Of(result);
  place.offset += link->place.offset - OffsetOf(link->value);
  LinkRef part = LinkAt(link, std::move(place));
  part->value = std::move(result);
  part->generation = link->base->generation;
  return WrapLink(origin, std::move(part), frame, true);
}

void RunOnValues(layer::Call& call) {
  const OperatorRef& op = OpOf(call);
  const layer::LeaveFrame left;
  const MicaFrame& frame = left.frame();
  bool differs = false;  // values lie otherwise than their wrappers show: results do too
  {
    const layer::ReplacedArguments values(call.args(), call.size(), [&](const Tensor& t) {
      Tensor value = ValueOf(t, frame);
      differs = differs || value.strides() != t.strides();
      return value;
    });
    call.Again(values.data(), call.results());
  }
  const std::vector<Place> places =
      differs ? PlacesOfResults(op, call.args(), call.size()) : std::vector<Place>();
  size_t next = 0;
  ReplaceResults(*op.info, call.results(), [&](Tensor t) {
    const Place* shown = next < places.size() ? &places[next] : nullptr;
    ++next;
    return Wrapped(std::move(t), shown, call.args(), call.size(), frame);
  });
}

// Captured tensors are inputs from their first write on: runs the call again with their
// wrappers. False: there are none.
bool RunCaptured(layer::Call& call, uint64_t written) {
  bool captured = false;
  call.ForEachTensor([&](MicaTensor* t, int64_t) { captured = captured || !layer::OwnOf(t, call.frame()); });
  if (!captured) return false;
  std::optional<layer::ReplacedArguments> known;
  {
    const layer::LeaveFrame left;
    const MicaFrame& frame = left.frame();
    Level* level = LevelOf(frame);
    bool any = false;
    ForEachTensor(call.args(), call.size(), [&](const Tensor& t, int64_t i) {
      if (layer::OwnOf(t, frame)) return;
      const bool writes = (written >> i) & 1;
      if (writes && !level) layer::Check(layer::Table()->refuse_captured(call.op(), &frame, t.get()));
      if (writes) level->Capture(t);
      any = any || writes || (level && level->Find(t).defined());
    });
    if (!any) return false;
    known.emplace(call.args(), call.size(), [&](const Tensor& t) {
      const Tensor wrapper = layer::OwnOf(t, frame) ? t : level->Find(t);
      return wrapper.defined() ? wrapper : t;
    });
  }
  call.Again(known->data(), call.results());
  return true;
}

// As the write would leave it: in the shape, dtype and device of `to`.
Tensor Fitted(Tensor value, const Tensor& to) {
  using std::optional;
  static const Function<Tensor(Tensor, IntSpan, bool)> expand("mica::expand"),
      expand_copy("mica::expand_copy");
  static const Function<Tensor(Tensor, optional<DType>, optional<formula::Layout>, optional<formula::Device>,
                               optional<bool>, bool, optional<MemoryFormat>)>
      to_copy("mica::_to_copy");
  if (value.sizes() != to.sizes())
    value = (LinkOf(to)->base->copies ? expand_copy : expand)(value, to.sizes(), false);
  if (value.dtype() == to.dtype() && value.device() == to.device()) return value;
  return to_copy(value, to.dtype(), std::nullopt, to.device(), std::nullopt, false, std::nullopt);
}

void CheckNoInternalOverlap(const Tensor& t, const char* name) {
  layer::Check(layer::Table()->check_overlap(t.get(), name, nullptr, nullptr));
}

void WriteResult(const OperatorRef& op, const Tensor& to, Tensor value, const MicaFrame& frame) {
  const bool is_out = op.info->form == MICA_FORM_OUT;
  if (op.info->form == MICA_FORM_INPLACE && op.has(MICA_OPERATOR_COMPOSITE)) {  // which makes these checks
    MICA_CHECK(
        to.sizes() == value.sizes(),
        "Shape of the result differs from that of `self`, which is written in place; expected the same "
        "shape, since an in-place form does not broadcast `self`.");
    MICA_CHECK(CanCast(value.dtype(), to.dtype()), "Result has dtype (", Name(value.dtype()),
               "), which `self` of dtype (", Name(to.dtype()),
               ") cannot hold; expected a `self` of the same kind or a wider one.");
  }
  MICA_CHECK(!is_out || CanCast(value.dtype(), to.dtype()), "The result of ", op.info->name,
             " has the dtype (", Name(value.dtype()), "), which cannot be cast to the dtype (",
             Name(to.dtype()), ") of `out`; give one of a dtype that can hold it.");
  if (is_out && value.sizes() != to.sizes())
    Resize(op, to, value.sizes(), ContiguousStrides(value.sizes()), frame);
  CheckNoInternalOverlap(to, is_out ? "out" : "self");
  Write(op, to, Fitted(std::move(value), to), frame);
}

// In-place and out=: the functional form.
void RunFunctional(layer::Call& call, const OperatorRef& functional) {
  const OperatorRef& op = OpOf(call);
  const uint64_t written = op.info->written_args;
  const MicaValue* const args = call.args();
  const int64_t n = call.size();
  const MicaFrame frame = call.frame();
  {
    const layer::LeaveFrame left;
    CheckRecorded(op, nullptr, args, n, written, frame);
    CheckShapes(op, args, n);
  }
  std::vector<MicaValue> inputs(args, args + functional.info->num_args);
  // What is written has the dtype, unless another is asked for.
  const int32_t dtype = op.info->dtype_arg;
  if (dtype >= 0 && inputs[static_cast<size_t>(dtype)].tag == MICA_VALUE_NONE) {
    ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
      if ((written >> i) & 1) inputs[static_cast<size_t>(dtype)] = formula::Box(t.dtype());
    });
  }
  std::vector<MicaValue> results(static_cast<size_t>(functional.info->num_results));
  functional.Call(inputs.data(), static_cast<int64_t>(inputs.size()), results.data());
  std::vector<Tensor> made;
  ReplaceResults(*functional.info, results.data(), [&](Tensor t) {
    made.push_back(std::move(t));
    return Tensor();
  });
  const layer::LeaveFrame left;
  size_t next = 0;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    if (!((written >> i) & 1)) return;
    MICA_FORMULA_CHECK_(MICA_ERROR_INTERNAL, next < made.size(), "Internal error: the functional form of ",
                        op.info->name, " returns less than it writes.");
    const Tensor& from = made[next++];
    Tensor value = ValueOf(from, frame);
    if (IsSame(from, t)) return;
    bool given = false;
    ForEachTensor(args, n, [&](const Tensor& arg, int64_t) { given = given || IsSame(arg, from); });
    if (given) value = Clone(value, std::nullopt);
    WriteResult(op, t, std::move(value), frame);
  });
}

// An operator that has no functional form writes clones.
void RunOnClones(layer::Call& call, uint64_t written) {
  const OperatorRef& op = OpOf(call);
  const layer::LeaveFrame left;
  const MicaFrame& frame = left.frame();
  CheckRecorded(op, nullptr, call.args(), call.size(), written, frame);
  CheckShapes(op, call.args(), call.size());
  std::vector<std::pair<Tensor, Tensor>> clones;  // of wrappers
  ForEachTensor(call.args(), call.size(), [&](const Tensor& t, int64_t i) {
    if ((written >> i) & 1) clones.emplace_back(t, Clone(ValueOf(t, frame), std::nullopt));
  });
  {
    const layer::ReplacedArguments values(call.args(), call.size(), [&](const Tensor& t) {
      for (const auto& [wrapper, clone] : clones)
        if (IsSame(wrapper, t)) return clone;
      return ValueOf(t, frame);
    });
    call.Again(values.data(), call.results());
  }
  ReplaceResults(*op.info, call.results(), [&](Tensor t) {
    for (const auto& [wrapper, clone] : clones)
      if (IsSame(clone, t)) return wrapper;
    return Wrapped(std::move(t), nullptr, call.args(), call.size(), frame);
  });
  for (const auto& [wrapper, clone] : clones) WriteResult(op, wrapper, clone, frame);
}

// What an operator writes, also the running statistics that torch's schema, which is ours,
// does not declare.
uint64_t WrittenBy(const OperatorRef& op) {
  uint64_t written = op.info->written_args;
  if (op.name() != "mica::native_batch_norm") return written;
  for (int32_t i = 0; i < op.info->num_args; ++i) {
    const std::string_view name = op.info->args[i].name;
    if (name == "running_mean" || name == "running_var") written |= uint64_t{1} << i;
  }
  return written;
}

void RunWhole(layer::Call& call) {
  const uint64_t written = WrittenBy(OpOf(call));
  if (RunCaptured(call, written)) return;
  bool any = false;
  call.ForEachTensor([&](MicaTensor*, int64_t i) { any = any || ((written >> i) & 1); });
  any ? RunOnClones(call, written) : RunOnValues(call);
}

void RunCall(layer::Call& call) {
  const OperatorRef& op = OpOf(call);
  const MicaOperatorInfo& info = *op.info;
  if (RunCaptured(call, info.written_args)) return;
  const bool decomposes = op.has(MICA_OPERATOR_COMPOSITE);
  // A composite out= form sizes and checks its outputs itself.
  if (info.written_args && (info.form == MICA_FORM_INPLACE || (info.form == MICA_FORM_OUT && !decomposes))) {
    if (const OperatorRef functional = FunctionalOf(*call.context<const Entry>()))
      return RunFunctional(call, functional);
  }
  if (decomposes) return call.Decompose();
  info.written_args ? RunOnClones(call, info.written_args) : RunOnValues(call);
}

// How a view of `self` is made here, in the frame.
int32_t CreationOfViewOf(const Tensor& self) {
  const MicaThread& thread = layer::Thread();
  if (thread.inference_mode) return MICA_VIEW_IN_INFERENCE;
  if (!thread.grad_enabled) return MICA_VIEW_WITHOUT_GRAD;
  return DetailsOf(self).view_creation;
}

void RunView(layer::Call& call) {
  if (RunCaptured(call, 0)) return;
  const OperatorRef& op = OpOf(call);
  const Tensor self = formula::Argument<Tensor>(call[0]);
  if (!layer::OwnOf(self, call.frame())) return RunOnValues(call);
  // Of the wrapper, whose bounds as_strided may leave.
  Place place = Place::Of(layer::Taken(layer::Table()->view_by(op.handle, call.args(), call.size())));
  const int32_t creation = CreationOfViewOf(self);
  const layer::LeaveFrame left;
  const LinkRef from = LinkOf(self);
  LinkRef link;
  if (op.name() == "mica::as_strided") {
    link = LinkAt(from, std::move(place));
  } else {
    link = LinkRef(new Link);
    link->base = from->base;
    link->from = from;
    link->op = op;
    link->args = KeptArguments(op, call.args(), call.size());
    link->place = std::move(place);
  }
  link->value = Replay(*link, Value(link->from), link->base->copies);
  link->generation = link->base->generation;
  const bool view = !op.has(MICA_OPERATOR_NOT_DIFFERENTIABLE);
  Tensor wrapper = WrapLink(self, std::move(link), left.frame(), view);
  if (view) layer::Check(layer::Table()->set_view_creation(wrapper.get(), creation));
  call.results()[0] = formula::Box(wrapper);
  wrapper.release();
}

void RunResize(layer::Call& call) {
  if (RunCaptured(call, 1)) return;
  const OperatorRef& op = OpOf(call);
  const layer::LeaveFrame left;
  const MicaFrame& frame = left.frame();
  const Tensor self = formula::Argument<Tensor>(call[0]);
  const Tensor value = ValueOf(self, frame);
  if (layer::Thread().grad_enabled && DetailsOf(value).requires_grad)
    layer::Check(layer::Table()->check_recorded_write(op.handle, nullptr, value.get()));
  const IntSpan sizes(call[1].u.ints.data, call[1].u.ints.size);
  const bool given = call[2].tag != MICA_VALUE_NONE;
  if (self.sizes() == sizes && !given) return;
  const auto format = given ? static_cast<MemoryFormat>(call[2].u.i) : MemoryFormat::kContiguous;
  Resize(op, self, sizes, StridesIn(format, sizes), frame);
}

void RunBecomeView(layer::Call& call) {
  if (RunCaptured(call, 1)) return;
  const layer::LeaveFrame left;
  const MicaFrame& frame = left.frame();
  const Tensor self = formula::Argument<Tensor>(call[0]);
  const Tensor view = formula::Argument<Tensor>(call[1]);
  const auto name = formula::Argument<std::string>(call[2]);
  CheckRecorded(OpOf(call), name.c_str(), call.args(), call.size(), 1, frame);
  MICA_CHECK(layer::OwnOf(view, frame) && ShareStorage(self, view) && self.dtype() == view.dtype(),
             "The tensor that ", name, " writes and its new view do not share memory.");
  SetLink(self, LinkOf(view), frame);
  static_cast<void>(ValueOf(self, frame));
  layer::Table()->mark_written(nullptr, self.get());
}

void RunCopy(layer::Call& call) {
  if (RunCaptured(call, 1)) return;
  const OperatorRef& op = OpOf(call);
  const layer::LeaveFrame left;
  const MicaFrame& frame = left.frame();
  CheckRecorded(op, nullptr, call.args(), call.size(), 1, frame);
  const Tensor self = formula::Argument<Tensor>(call[0]);
  const Tensor src = formula::Argument<Tensor>(call[1]);
  CheckNoInternalOverlap(self, "self");
  const Tensor from = ValueOf(src, frame);
  Tensor value = Fitted(from, self);
  // A value of its own: what is an input's may be written when the function has returned.
  if (ShareStorage(value, from)) value = Clone(value, std::nullopt);
  Write(op, self, std::move(value), frame);
}

// Whether a composite runs as one operator: its schema neither writes nor returns a view, and
// Autograd has a kernel for the whole, whose gradient the parts would not have, or lets it pass.
bool StaysWhole(void* op, const MicaOperatorInfo& info) {
  if (!(info.flags & MICA_OPERATOR_COMPOSITE) || info.written_args || info.form != MICA_FORM_FUNCTIONAL)
    return false;
  for (int32_t i = 0; i < info.num_results; ++i)
    if (info.results[i].alias_of >= 0) return false;
  return layer::Table()->operator_at(op, "Autograd") != MICA_AT_DECOMPOSITION;
}

bool MakesOrReadsMemory(std::string_view composite) {
  return composite == "mica::empty.memory_format" || composite == "mica::empty_strided" ||
         composite == "mica::empty_like" || composite == "mica::_linalg_failure" ||
         composite == "mica::_linalg_failure_code" || composite == "mica::_any_true";
}

}  // namespace

void Choose(void* op, MicaLayerChoice* out) {
  const Entry& entry = EntryOf(op);
  const MicaOperatorInfo* const info = entry.op.info;
  void* const context = const_cast<Entry*>(&entry);
  const std::string_view name = info->name;
  if (name == "mica::copy_") return layer::Choose<&RunCopy>(out, context);
  if (name == "mica::resize_") return layer::Choose<&RunResize>(out, context);
  if (name == "mica::_become_view_") return layer::Choose<&RunBecomeView>(out, context);
  if (info->flags & MICA_OPERATOR_VIEW) return layer::Choose<&RunView>(out, context);
  if (MakesOrReadsMemory(name) || StaysWhole(op, *info)) return layer::Choose<&RunWhole>(out, context);
  layer::Choose<&RunCall>(out, context);
}

}  // namespace mica::functionalize
