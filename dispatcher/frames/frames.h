// Frames: the one mechanism of transforms (jvp, grad, vmap, functionalize, trace, a
// third party's), in any nesting.
//
// A frame is one level of a transform on one thread: kind, unique tag, parent. While
// one is current, the bit keys::kFrame is included in this thread's calls and routes
// each of them to the operator's kernel for the frame's kind. A kind is registered by
// name as a layer is (Scope::AddKind), and so are its kernels (Scope::AddKernel(op, "jvp",
// ...)), its boxed fallback (AddBoxedFallback) and whether composites without a kernel
// decompose in it (DecomposeAt). Such a kernel unwraps the tensors that carry the
// frame's tag, makes the parent current (LeaveFrame), computes, and wraps the results.
//
// Wrappers of all kinds are one thing: a tensor that shares its value's memory and
// mirrors its shape, dtype and device, with the key FrameEscape and a Wrapper behind it.
// A wrapper without a current frame that knows it has escaped: using it raises, unless
// the kind says that it is a constant, which stands for its value.
//
// Thread-local throughout: a frame is entered and left on one thread, innermost first.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <mica/layers.h>
#include "absl/container/inlined_vector.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/tables/operator.h"
#include "tensor/tensor.h"

namespace mica {

namespace keys {
// Everything that stands above the frames.
inline constexpr KeySet kAboveFrame = KeySet(~((uint64_t{2} << kFrame) - 1));
}  // namespace keys

namespace frames {

inline constexpr int kMaxKinds = 16;

struct Frame;
struct Wrapper;

// What the core must know of a kind.
struct Kind {
  std::string name;           // "jvp": of messages, registration and explain
  std::string after_escape;   // what the user shall do: the second half of a sentence
  bool own_autograd = false;  // grad mode and Autograd's exclusion belong to one frame
  // Whether the wrapper holds nothing of the transform and may stand for its value.
  std::function<bool(const Tensor& wrapper, const Wrapper& w)> is_constant = nullptr;
  // What goes on below the kind's own Autograd (keys::kFrameBelow); NULL: CallInParent.
  std::function<void(const Operator& op, const MicaValue* args, int64_t n, MicaValue* results)>
      below_autograd = nullptr;
  // Whether operators may write what the function captured (the kind keeps the write).
  bool writes_captured = false;
  // Why the elements of a wrapper that is no constant cannot be read, and what to do: the rest of a sentence
  // that begins with "The tensor (...)"; "": they can.
  std::string unreadable;
  // How what a factory made becomes a tensor of the frame; NULL: Wrap.
  std::function<Tensor(Tensor value, const Frame& frame)> lift = nullptr;
  // What a tensor stands for now in the frame's parent, which is current then: the value of a
  // wrapper, something else for what was captured, else `t`. NULL: Wrapper::value, whose memory
  // the wrapper shares.
  std::function<Tensor(const Tensor& t, const Frame& frame)> read = nullptr;
  // Brings what a wrapper mirrors up to date (Settle); NULL where wrappers mirror nothing.
  std::function<void(const Tensor& wrapper)> settle = nullptr;
  // Whether all that shares memory with a wrapper follows it to other memory, and so is a view
  // of it: also what operators without a gradient return (detach).
  bool moves_memory = false;
};

// The number of a new kind, or of the old one of that name. Throws when kMaxKinds are
// taken.
int RegisterKind(const Kind& kind);
int KindNumber(std::string_view name);  // -1 if unknown
// The number of a kind whose frame is to be entered, its plugin opened on first use. Where there is none
// throws `why` and which plugin is missing.
int ProvidedKind(std::string_view name, std::string_view why);
const Kind& KindOf(int kind);
int NumKinds();
// Of a plugin that comes and goes: while a kind is disabled, no frame of it is entered.
// `as`, which stays, is what the kind is from now on.
void EnableKind(int kind, const Kind* as);
void DisableKind(int kind);
bool IsKindEnabled(int kind);
// Takes back a kind that nobody has used: its plugin failed to start.
void ReleaseKind(int kind);

// One level. Lives in its Scope.
struct Frame : MicaFrame {
  Frame() : MicaFrame{-1, 0, 0, nullptr} {}
  MICA_PRIVATE_STRUCT;
  Frame* parent = nullptr;
  // The thread as it was when the frame was entered.
  KeySet outer_include;
  KeySet outer_exclude;
  bool outer_grad_enabled = true;
};

inline Frame* Current() { return static_cast<Frame*>(t_state.frame); }

// Enters a frame; leaves it at the end, on every path. With `tag`, of a frame that was left
// before, the wrappers of that one are at home again (a vjp that is called later).
class FrameScope {
 public:
  explicit FrameScope(int kind, void* payload = nullptr, uint64_t tag = 0);
  ~FrameScope();
  FrameScope(const FrameScope&) = delete;
  FrameScope& operator=(const FrameScope&) = delete;
  const Frame& frame() const { return frame_; }
  Frame& frame() { return frame_; }

 private:
  Frame frame_;
};

// While it lives, the parent of the frame that was current is current, and layers above
// the frames are left out: what a frame's kernel computes in.
class LeaveFrame {
 public:
  LeaveFrame();
  ~LeaveFrame();
  LeaveFrame(const LeaveFrame&) = delete;
  LeaveFrame& operator=(const LeaveFrame&) = delete;
  const Frame& frame() const { return *frame_; }  // the one that was left

 private:
  Frame* frame_;
  KeySet include_;
  KeySet exclude_;
  bool grad_enabled_;
};

// A counted reference to an object that a plugin's kind keeps with its wrappers.
class SharedObject {
 public:
  SharedObject() = default;
  explicit SharedObject(MicaShared* borrowed) : object_(borrowed) {
    if (object_) std::atomic_ref(object_->holders).fetch_add(1, std::memory_order_relaxed);
  }
  SharedObject(const SharedObject& o) : SharedObject(o.object_) {}
  SharedObject& operator=(SharedObject o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~SharedObject() {
    if (object_ && std::atomic_ref(object_->holders).fetch_sub(1, std::memory_order_acq_rel) == 1)
      object_->destroy(object_);
  }

 private:
  MicaShared* object_ = nullptr;
};

// What stands behind a wrapper.
struct Wrapper {
  // As MicaWrapper in <mica/layers.h>: dispatcher/layers/faces.cc holds the two together.
  Tensor value;      // in the frame's parent
  uint64_t tag = 0;  // of the frame that made it
  int32_t kind = -1;
  int32_t hidden = 0;   // leading dimensions of the value that the wrapper does not show (vmap: the batch)
  int64_t number = 0;   // payload: a number of the kind's
  Tensor second;        // payload: a tensor of the kind's (jvp: the tangent)
  SharedObject shared;  // payload: an object of a plugin's kind
  // The core's own.
  MICA_PRIVATE_STRUCT;
  int64_t place = 0;  // of a view: where it begins, in bytes from its base

  static void* operator new(size_t size);  // from the small-block pool
  static void operator delete(void* p) noexcept;
};

inline bool IsWrapper(const Tensor& t) { return t.defined() && t.keys().has(keys::kFrameEscape); }
inline Wrapper& WrapperOf(const Tensor& t) { return *static_cast<Wrapper*>(t.impl()->extra->extension); }
// Before the memory or the version of `t` is compared: a level between may have given the
// tensors behind it other memory (a write of a batch under vmap). What operators compute
// needs no such call, since it starts from the values.
inline void Settle(const Tensor& t) {
  if (__builtin_expect(!IsWrapper(t), 1)) return;
  if (const auto& settle = KindOf(WrapperOf(t).kind).settle) settle(t);
}
// The wrapper of `frame` behind `t`, or NULL: `t` is of an outer level.
inline Wrapper* Own(const Tensor& t, const MicaFrame& frame) {
  if (!IsWrapper(t)) return nullptr;
  Wrapper& w = WrapperOf(t);
  return w.tag == frame.tag ? &w : nullptr;
}

// A wrapper of `frame` around `value`, less its first `hidden` dimensions. With `base`, a
// wrapper of the same frame, it is a view of it (view_base is the base's root).
Tensor Wrap(Tensor value, const MicaFrame& frame, const Tensor& base = Tensor(), int hidden = 0);
// Makes a wrapper show another device than its value's (a fake tensor, whose value is on meta).
void ShowDevice(const Tensor& wrapper, Device device);
// Wrap, in the way of the frame's kind (Kind::lift).
inline Tensor Lift(Tensor value, const Frame& frame) {
  const auto& lift = KindOf(frame.kind).lift;
  return lift ? lift(std::move(value), frame) : Wrap(std::move(value), frame);
}
// A fresh tensor that no operator made, as one of all frames that are current.
Tensor AdoptInto(Tensor fresh, const Frame* innermost);
inline Tensor Adopt(Tensor fresh) {
  return __builtin_expect(!Current(), 1) ? std::move(fresh) : AdoptInto(std::move(fresh), Current());
}
// Another wrapper around the same value, without history and view base.
Tensor Alias(const Tensor& wrapper);
// After its value changed shape, strides, dtype or memory (resize_, t_).
void Refresh(const Tensor& wrapper);
// Kind::settle of kinds whose wrappers mirror their values and nothing else.
void Mirror(const Tensor& wrapper);

// What stands behind `t` in the parent of `frame`: its value, or `t` itself.
inline Tensor Unwrap(const Tensor& t, const Frame& frame) {
  Wrapper* w = t.defined() ? Own(t, frame) : nullptr;
  return w ? w->value : t;
}

// Whether its elements can be read: neither on the meta device, nor of a kind that lets nobody read, nor
// of a subclass that has operators of its own.
bool IsReadable(const Tensor& t);
// Raises where `t` hides dimensions, so that its memory is not what it shows, or where its
// kind lets nobody read: `what`, as in "item()", reads elements.
void CheckReadable(const Tensor& t, const char* what);
// The same; a tensor whose memory has the elements that `t` shows now: `t` itself but for kinds
// whose wrappers do not share their values' memory (Kind::read).
Tensor Readable(const Tensor& t, const char* what);
// What a wrapper of such a kind stands for, in its frame's parent; others themselves.
Tensor Behind(const Tensor& t);

// Raises: an operator writes `written`, which the frame's function did not make or get
// as an argument, with values that belong to the frame.
[[noreturn]] void ThrowCaptured(const Operator& op, const MicaFrame& frame, const Tensor& written);
// Raises that where `op` writes a tensor of an outer level and a tensor among `args` holds
// something of the frame. What operators write beside their results (running statistics)
// may be captured: it has no derivative.
void CheckWrites(const Operator& op, const Frame& frame, const MicaValue* args, int64_t n);
// Raises NotImplementedError: the operator has no rule for the frame's kind.
[[noreturn]] void ThrowNoRule(const Operator& op, const Frame& frame);

// Leaves the current frame, calls `op` with its wrappers among `args` replaced by their
// values, and wraps what it returns: fresh results become wrappers, results that share
// memory with a wrapper views of it (no views of operators without a gradient, as
// detach); what shares memory with a tensor of an outer level stays as it is. Written
// wrappers are refreshed. Raises ThrowCaptured where it must.
void CallInParent(const Operator& op, const MicaValue* args, int64_t n, MicaValue* results);
// Calls f(tensor, argument number) for each tensor among boxed arguments.
template <typename F>
void ForEachTensor(const MicaValue* args, int64_t n, F&& f) {
  for (int64_t i = 0; i < n; ++i) {
    if (args[i].tag == MICA_VALUE_TENSOR && args[i].u.tensor) f(Tensor::Ref(args[i].u.tensor), i);
    if (args[i].tag != MICA_VALUE_TENSORS) continue;
    const MicaTensorSpan list = args[i].u.tensors;
    for (int64_t j = 0; j < list.size; ++j)
      if (list.data[j]) f(Tensor::Ref(list.data[j]), i);
  }
}
// A copy of boxed arguments in which tensors are replaced; keeps the new ones alive.
class ReplacedArguments {
 public:
  // `f(tensor)` is what stands for a tensor.
  template <typename F>
  ReplacedArguments(const MicaValue* args, int64_t n, F&& f) : values_(args, args + n) {
    size_t listed = 0;
    for (int64_t i = 0; i < n; ++i)
      if (args[i].tag == MICA_VALUE_TENSORS) listed += static_cast<size_t>(args[i].u.tensors.size);
    lists_.reserve(listed);  // lists are spans into it
    for (MicaValue& v : values_) {
      if (v.tag == MICA_VALUE_TENSOR && v.u.tensor) {
        kept_.push_back(f(Tensor::Ref(v.u.tensor)));
        v.u.tensor = kept_.back().impl();
      } else if (v.tag == MICA_VALUE_TENSORS) {
        const size_t first = lists_.size();
        for (int64_t j = 0; j < v.u.tensors.size; ++j) {
          const Tensor& t = Tensor::Ref(v.u.tensors.data[j]);
          lists_.push_back(t.defined() ? f(t) : Tensor());
        }
        v.u.tensors.data = reinterpret_cast<MicaTensor* const*>(lists_.data() + first);
      }
    }
  }
  ReplacedArguments(const ReplacedArguments&) = delete;
  ReplacedArguments& operator=(const ReplacedArguments&) = delete;
  const MicaValue* data() const { return values_.data(); }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }

 private:
  absl::InlinedVector<MicaValue, 12> values_;
  absl::InlinedVector<Tensor, 6> kept_;
  std::vector<Tensor> lists_;
};

}  // namespace frames
}  // namespace mica
