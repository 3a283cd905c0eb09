// The stack of frames, wrappers, and the way of a call through a frame.
#include "dispatcher/frames/frames.h"

#include <array>
#include <atomic>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/boxed_results.h"
#include "dispatcher/frames/frame_slots.h"
#include "tensor/small_pool.h"

namespace mica::frames {
namespace {

struct Kinds {
  std::mutex mutex;
  // Never freed: wrappers of a kind that is gone may still be asked about.
  std::array<std::atomic<const Kind*>, kMaxKinds> list{};
  std::array<std::atomic<bool>, kMaxKinds> enabled{};
  std::atomic<int> count{0};
};
Kinds& AllKinds() {
  static Kinds* kinds = new Kinds();
  return *kinds;
}

std::atomic<uint64_t> g_next_tag{1};

void DeleteWrapper(void* w) { delete static_cast<Wrapper*>(w); }

bool IsConstant(const Tensor& t, const Wrapper& w) {
  const Kind& kind = KindOf(w.kind);
  return kind.is_constant && kind.is_constant(t, w);
}

// The wrapper of a call, of those that carry the frame's tag, that `result` is or shares
// memory with.
struct Origin {
  Tensor wrapper;
  bool same = false;     // the result is the wrapper's value
  bool written = false;  // and the operator wrote it
  bool outer = false;    // memory of a tensor of an outer level
};

Origin OriginOf(const Tensor& result, const Operator& op, const Frame& frame, const MicaValue* args,
                int64_t n) {
  Origin found;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    if (found.same) return;
    const Wrapper* w = Own(t, frame);
    if (w) Settle(t);
    if (t.impl()->storage != result.impl()->storage) return;
    const bool same = w && w->value.is_same(result);
    if (found.wrapper.defined() && !same) return;
    found.wrapper = w ? t : Tensor();
    found.outer = !w;
    found.same = same;
    found.written = (op.spec().written_args >> i) & 1;
  });
  return found;
}

Tensor WrapResult(Tensor result, const Operator& op, const Frame& frame, const MicaValue* args, int64_t n,
                  bool grad_enabled) {
  if (!result.defined()) return result;
  const Origin origin = OriginOf(result, op, frame, args, n);
  if (origin.outer) return result;
  if (origin.same && origin.written) return origin.wrapper;
  const bool view = origin.wrapper.defined() &&
                    (!(op.spec().flags & kNotDifferentiable) || KindOf(frame.kind).moves_memory);
  const auto is_of_many = [](const Tensor& t) {
    const TensorExtra* extra = t.impl()->extra;
    return extra && extra->view_creation == static_cast<uint8_t>(ViewCreation::kMultiOutput);
  };
  const bool many = is_of_many(result) || (view && is_of_many(origin.wrapper));
  Tensor wrapper = Wrap(std::move(result), frame, view ? origin.wrapper : Tensor());
  if (view) {
    const ViewCreation creation = !grad_enabled || (op.spec().flags & kNotDifferentiable)
                                      ? ViewCreation::kNoGrad
                                  : many ? ViewCreation::kMultiOutput
                                         : ViewCreation::kDefault;
    wrapper.impl()->extra->view_creation = static_cast<uint8_t>(creation);
  }
  return wrapper;
}

}  // namespace

int RegisterKind(const Kind& kind) {
  if (const int old = KindNumber(kind.name); old >= 0) return old;
  Kinds& kinds = AllKinds();
  std::lock_guard lock(kinds.mutex);
  const int count = kinds.count.load(std::memory_order_relaxed);
  int number = 0;
  while (number < count && kinds.list[static_cast<size_t>(number)].load()) ++number;
  MICA_CHECK(number < kMaxKinds, "No number is free for the frame kind (", kind.name, "): ", kMaxKinds,
             " kinds are registered.");
  kinds.list[static_cast<size_t>(number)].store(new Kind(kind), std::memory_order_release);
  kinds.enabled[static_cast<size_t>(number)].store(true);
  if (number == count) kinds.count.store(number + 1, std::memory_order_release);
  return number;
}

int NumKinds() { return AllKinds().count.load(std::memory_order_acquire); }
const Kind& KindOf(int kind) {
  static const Kind* const gone = new Kind{"(taken back)", "", false, nullptr};
  const Kind* k = AllKinds().list[static_cast<size_t>(kind)].load(std::memory_order_acquire);
  return k ? *k : *gone;
}
int KindNumber(std::string_view name) {
  for (int i = 0; i < NumKinds(); ++i)
    if (KindOf(i).name == name) return i;
  return -1;
}
void EnableKind(int kind, const Kind* as) {
  AllKinds().list[static_cast<size_t>(kind)].store(as, std::memory_order_release);
  AllKinds().enabled[static_cast<size_t>(kind)].store(true);
}
void DisableKind(int kind) { AllKinds().enabled[static_cast<size_t>(kind)].store(false); }
bool IsKindEnabled(int kind) {
  return AllKinds().enabled[static_cast<size_t>(kind)].load(std::memory_order_relaxed);
}
void ReleaseKind(int kind) {
  DisableKind(kind);
  AllKinds().list[static_cast<size_t>(kind)].store(nullptr, std::memory_order_release);
}

FrameScope::FrameScope(int kind, void* payload, uint64_t tag) {
  MICA_CHECK(IsKindEnabled(kind), "The frame kind (", KindOf(kind).name,
             ") is not to be entered: the plugin that brought it is disabled. Put it back with "
             "mica.enable_plugin(...).");
  ThreadState& t = CurrentThread();
  frame_.kind = kind;
  frame_.tag = tag ? tag : g_next_tag.fetch_add(1, std::memory_order_relaxed);
  frame_.parent = Current();
  frame_.payload = payload;
  frame_.outer_include = t.include;
  frame_.outer_exclude = t.exclude;
  frame_.outer_grad_enabled = t.grad_enabled;
  t.frame = &frame_;
  t.include = t.include | KeySet::Of(keys::kFrame);
  if (!KindOf(kind).own_autograd) return;
  t.exclude = t.exclude - KeySet::Of(keys::kAutograd);
  t.grad_enabled = true;
}

FrameScope::~FrameScope() {
  ThreadState& t = CurrentThread();
  t.frame = frame_.parent;
  t.include = frame_.outer_include;
  t.exclude = frame_.outer_exclude;
  t.grad_enabled = frame_.outer_grad_enabled;
}

LeaveFrame::LeaveFrame() {
  ThreadState& t = CurrentThread();
  frame_ = Current();
  include_ = t.include;
  exclude_ = t.exclude;
  grad_enabled_ = t.grad_enabled;
  t.frame = frame_->parent;
  t.include = t.include - KeySet::Of(keys::kFrameBelow);
  if (!frame_->parent) t.include = t.include - KeySet::Of(keys::kFrame);
  // What a kernel of this level left out of its own calls, the parent's frames are not.
  t.exclude = (t.exclude | keys::kAboveFrame) - KeySet::Of(keys::kFrame) - KeySet::Of(keys::kFrameEscape);
  if (!KindOf(frame_->kind).own_autograd) return;
  const KeySet autograd = KeySet::Of(keys::kAutograd);
  t.exclude = (t.exclude - autograd) | (frame_->outer_exclude & autograd);
  t.grad_enabled = t.grad_enabled && frame_->outer_grad_enabled;
}

LeaveFrame::~LeaveFrame() {
  ThreadState& t = CurrentThread();
  t.frame = frame_;
  t.include = include_;
  t.exclude = exclude_;
  t.grad_enabled = grad_enabled_;
}

void* Wrapper::operator new(size_t size) {
  return internal::SmallAllocate(internal::SmallClass(static_cast<int64_t>(size)));
}
void Wrapper::operator delete(void* p) noexcept {
  internal::SmallFree(p, internal::SmallClass(sizeof(Wrapper)));
}

namespace {
IntSpan Shown(IntSpan all, int hidden) { return all.subspan(hidden, all.size() - hidden); }
}  // namespace

namespace {
// While base and view lie in one memory; what comes later keeps their distance.
void KeepPlace(const Tensor& view) {
  const TensorImpl& impl = *view.impl();
  const TensorImpl& root = *impl.extra->view_base;
  if (impl.storage != root.storage) return;
  WrapperOf(view).place = impl.byte_offset() - root.byte_offset();
}
}  // namespace

Tensor Wrap(Tensor value, const MicaFrame& frame, const Tensor& base, int hidden) {
  const TensorImpl& from = *value.impl();
  Tensor wrapper = MakeInnerView(value, hidden);
  TensorImpl& impl = *wrapper.impl();
  impl.keys = (from.keys & (keys::kBackends | keys::kLazy)) | KeySet::Of(keys::kFrameEscape);
  impl.flags |= from.flags & MICA_TENSOR_WRAPPED_NUMBER;
  TensorExtra& extra = impl.EnsureExtra();
  auto* w = new Wrapper();
  w->tag = frame.tag;
  w->kind = frame.kind;
  w->hidden = hidden;
  w->value = std::move(value);
  extra.extension = w;
  extra.extension_deleter = &DeleteWrapper;
  if (base.defined()) {
    Tensor root = base.is_view() ? base.view_base() : base;
    Settle(root);
    extra.view_base = root.release();
    KeepPlace(wrapper);
  }
  return wrapper;
}

void ShowDevice(const Tensor& wrapper, Device device) {
  TensorImpl& impl = *wrapper.impl();
  const uint64_t backend = static_cast<uint64_t>(device.backend) << MICA_TENSOR_BACKEND_SHIFT;
  impl.flags = (impl.flags & ~(uint64_t{0xff} << MICA_TENSOR_BACKEND_SHIFT)) | backend;
  impl.dl.device = EmptyTensor({0}, DType::kU8, device).impl()->dl.device;
  impl.keys = (impl.keys - keys::kBackends) | KeySet::Of(device.backend);
}

Tensor AdoptInto(Tensor fresh, const Frame* innermost) {
  return innermost ? Lift(AdoptInto(std::move(fresh), innermost->parent), *innermost) : fresh;
}

Tensor Alias(const Tensor& wrapper) {
  const Wrapper& w = WrapperOf(wrapper);
  const MicaFrame named{w.kind, 0, w.tag, nullptr};  // the frame itself may be gone
  Tensor alias = Wrap(w.value, named, Tensor(), w.hidden);
  if (alias.device() != wrapper.device()) ShowDevice(alias, wrapper.device());
  Wrapper& behind = WrapperOf(alias);
  behind.number = w.number;
  behind.second = w.second;
  behind.shared = w.shared;
  return alias;
}

void Refresh(const Tensor& wrapper) {
  TensorImpl& impl = *wrapper.impl();
  const Wrapper& w = WrapperOf(wrapper);
  const TensorImpl& from = *w.value.impl();
  impl.PointWhere(from);
  if (wrapper.is_view()) KeepPlace(wrapper);
  const IntSpan sizes = Shown(from.sizes(), w.hidden), strides = Shown(from.strides(), w.hidden);
  if (impl.sizes() == sizes && impl.strides() == strides) return;
  impl.SetSizesStrides(sizes, strides);
}

void Mirror(const Tensor& wrapper) {
  const Tensor& value = WrapperOf(wrapper).value;
  Settle(value);
  if (wrapper.impl()->storage != value.impl()->storage) Refresh(wrapper);
}

bool IsReadable(const Tensor& t) {
  const Tensor* inner = &t;
  for (; IsWrapper(*inner); inner = &WrapperOf(*inner).value) {
    const Wrapper& w = WrapperOf(*inner);
    if (w.hidden > 0 || (!KindOf(w.kind).unreadable.empty() && !IsConstant(*inner, w))) return false;
  }
  return !inner->device().is_meta() && !inner->keys().has(keys::kNoData) &&
         !inner->keys().has(keys::kPythonSubclass);
}

void CheckReadable(const Tensor& t, const char* what) {
  const Tensor* inner = &t;
  for (; IsWrapper(*inner); inner = &WrapperOf(*inner).value) {
    const Wrapper& w = WrapperOf(*inner);
    const Kind& kind = KindOf(w.kind);
    MICA_CHECK(kind.unreadable.empty() || IsConstant(*inner, w), "The tensor (", t.ToString(), ") ",
               kind.unreadable, " (", what, ").");
    const Tensor base = inner->is_view() ? inner->view_base() : *inner;
    MICA_CHECK(
        w.hidden == 0 && (!IsWrapper(base) || WrapperOf(base).hidden == 0), "The tensor (", t.ToString(),
        ") stands for a batch inside of ", KindOf(w.kind).name, ", so that ", what,
        " has no single value to read; choose by values with mica.where instead of `if`, or return the "
        "tensor and read it outside.");
  }
  MICA_CHECK_IMPLEMENTED(!inner->keys().has(keys::kNoData), "The tensor (", inner->ToString(),
                         ") is of a wrapper subclass and has no memory of its own, so that ", what,
                         " has nothing to read; ask the tensor that it wraps.");
}

namespace {

bool IsRead(const Tensor& t) { return IsWrapper(t) && KindOf(WrapperOf(t).kind).read != nullptr; }

// From the current frame out to the outermost. `found`: what stands where a kind reads.
void ReadThrough(Tensor t, Tensor& found) {
  if (!Current()) return;
  const LeaveFrame left;
  const Frame& frame = left.frame();
  if (const auto& read = KindOf(frame.kind).read) {
    Tensor now = read(t, frame);
    if (!now.is_same(t)) found = now;
    t = std::move(now);
  } else {
    t = Unwrap(t, frame);
  }
  ReadThrough(std::move(t), found);
}

// The elements of a lazy conjugate or negative, in memory of their own.
Tensor Resolved(const Tensor& t) {
  const ExcludeGuard no_layers(keys::kAboveBackends);
  static const Operator& clone = GetOperator("mica::clone");
  const MicaValue args[2] = {AbiType<const Tensor&>::Box(t.impl()), {}};
  MicaValue made[1];
  clone.CallBoxed(args, 2, made);
  return TakeTensor(made[0]);
}
}  // namespace

Tensor Readable(const Tensor& t, const char* what) {
  CheckReadable(t, what);
  Tensor found = t;
  ReadThrough(t, found);
  while (IsRead(found)) found = Tensor(WrapperOf(found).value);  // of a frame that is over
  return IsLazy(found) ? Resolved(found) : found;
}

Tensor Behind(const Tensor& t) {
  if (!IsRead(t)) return t;
  const Wrapper& w = WrapperOf(t);
  if (!Current()) return w.value;
  const LeaveFrame left;
  return left.frame().tag == w.tag ? KindOf(w.kind).read(t, left.frame()) : Behind(t);
}

void ThrowCaptured(const Operator& op, const MicaFrame& frame, const Tensor& written) {
  const std::string& kind = KindOf(frame.kind).name;
  MICA_THROW(
      kRuntime, "Operator ", op.spec().name, " writes a tensor (", written.ToString(),
      ") that the function of ", kind, " captured from outside, with values that belong to this ", kind,
      "; they would leave it unseen. Pass the tensor to the function as an argument and return it, make "
      "it inside (x.new_zeros(...)), or write to a clone.");
}

void ThrowNoRule(const Operator& op, const Frame& frame) {
  const std::string& kind = KindOf(frame.kind).name;
  MICA_CHECK_IMPLEMENTED(IsKindEnabled(frame.kind), "Operator ", op.spec().name,
                         " is called inside of the frame kind (", kind,
                         "), and the plugin that brought it was disabled meanwhile. Enable it, or leave the "
                         "transform first.");
  MICA_THROW(kNotImplemented, "Operator ", op.spec().name, " has no rule for the frame kind (", kind,
             ") and no decomposition. Register a kernel for it at (", kind,
             "), or detach its inputs (x.detach()) if it is to be a constant there.");
}

void CheckWrites(const Operator& op, const Frame& frame, const MicaValue* args, int64_t n) {
  const OperatorSpec& spec = op.spec();
  if (__builtin_expect(!spec.written_args, 1) || KindOf(frame.kind).writes_captured) return;
  // Of an operator that is defined at run time the form is not known.
  if (spec.form == OpForm::kFunctional && spec.adapters) return;
  const Tensor* captured = nullptr;
  bool moving = false;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    const Wrapper* w = Own(t, frame);
    if (w) moving = moving || !IsConstant(t, *w);
    if (!w && ((spec.written_args >> i) & 1)) captured = &t;
  });
  if (captured && moving) ThrowCaptured(op, frame, *captured);
}

void CallInParent(const Operator& op, const MicaValue* args, int64_t n, MicaValue* results) {
  const bool grad_enabled = CurrentThread().grad_enabled;
  const LeaveFrame left;
  const Frame& frame = left.frame();
  CheckWrites(op, frame, args, n);
  {
    const ReplacedArguments values(args, n, [&](const Tensor& t) { return Unwrap(t, frame); });
    op.CallBoxed(values.data(), n, results);
  }
  const OperatorSpec& spec = op.spec();
  if (spec.written_args) {
    ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
      if (((spec.written_args >> i) & 1) && Own(t, frame)) Refresh(t);
    });
  }
  ReplaceResults(op, results,
                 [&](Tensor t) { return WrapResult(std::move(t), op, frame, args, n, grad_enabled); });
}

namespace {

// What stands for an escaped tensor: its value, where it is a constant.
Tensor OutOfFrame(const Operator& op, const Tensor& t) {
  if (!IsWrapper(t)) return t;
  const Wrapper& w = WrapperOf(t);
  const Kind& kind = KindOf(w.kind);
  MICA_CHECK(IsConstant(t, w), "A tensor of ", kind.name, ", ", t.ToString(), ", is used by ", op.spec().name,
             " after it escaped from that ", kind.name, ". ", kind.after_escape);
  return OutOfFrame(op, w.value);
}

}  // namespace

}  // namespace mica::frames

namespace mica::internal {

void RunEscaped(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
                MicaValue* results) {
  const frames::ReplacedArguments values(args, n, [&](const Tensor& t) { return frames::OutOfFrame(op, t); });
  op.CallBoxed(values.data(), n, results);
  frames::ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    if (((op.spec().written_args >> i) & 1) && frames::IsWrapper(t)) frames::Refresh(t);
  });
}

}  // namespace mica::internal
