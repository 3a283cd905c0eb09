// Keeping and giving back saved tensors.
#include "keys/autograd/saved_tensor.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "dispatcher/calls/thread_state.h"
#include "dispatcher/calls/write_log.h"
#include "dispatcher/frames/frames.h"
#include "keys/autograd/engine_ops.h"
#include "keys/autograd/forward.h"
#include "keys/autograd/meta.h"

namespace mica::autograd {
namespace {

// Hooks act on what their own level of transforms saves, and the levels around it. The
// graph of a level that is entered inside of them begins and ends there.
struct PushedHooks {
  std::shared_ptr<SavedTensorHooks> hooks;
  std::vector<uint64_t> levels;  // tags of the frames that were current where they were pushed

  bool ActHere() const {
    const frames::Frame* level = frames::Current();
    return !level || std::find(levels.begin(), levels.end(), level->tag) != levels.end();
  }
};
struct ThreadHooks {
  std::vector<PushedHooks> stack;  // innermost last
  std::optional<std::string> forbidden;
  bool unused() const { return stack.empty() && !forbidden; }
};
// NULL while there is nothing to say: what saving a tensor asks.
thread_local constinit ThreadHooks* t_hooks __attribute__((tls_model("initial-exec"))) = nullptr;

ThreadHooks& Hooks() {
  if (!t_hooks) t_hooks = new ThreadHooks();
  return *t_hooks;
}

void DropIfUnused() {
  if (!t_hooks || !t_hooks->unused()) return;
  delete t_hooks;
  t_hooks = nullptr;
}

// Hooks are the user's code: what they call may record, and casts as autocast says.
class UserCode {
 public:
  UserCode() : saved_(t_state.exclude) {
    t_state.exclude = saved_ - (KeySet::Of(keys::kAutograd) | KeySet::Of(keys::kAutocast));
  }
  ~UserCode() { t_state.exclude = saved_; }
  UserCode(const UserCode&) = delete;
  UserCode& operator=(const UserCode&) = delete;

 private:
  KeySet saved_;
};

// Whether a level around that of `t` differentiates what stands behind `t`.
bool MovesOutside(const Tensor& t) {
  for (Tensor behind = t; frames::IsWrapper(behind);) {
    if (!behind.is_same(t) && forward::MovesHere(behind)) return true;
    behind = frames::WrapperOf(behind).value;
    if (RequiresGrad(behind)) return true;
  }
  return false;
}

class SpinLock {
 public:
  explicit SpinLock(std::atomic<bool>& flag) : flag_(flag) {
    while (flag_.exchange(true, std::memory_order_acquire)) {
    }
  }
  ~SpinLock() { flag_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool>& flag_;
};

}  // namespace

void PushSavedTensorHooks(std::shared_ptr<SavedTensorHooks> hooks) {
  if (t_hooks && t_hooks->forbidden) MICA_THROW(kRuntime, *t_hooks->forbidden);
  PushedHooks pushed{std::move(hooks), {}};
  for (const frames::Frame* f = frames::Current(); f; f = f->parent) pushed.levels.push_back(f->tag);
  Hooks().stack.push_back(std::move(pushed));
}

void PopSavedTensorHooks() {
  MICA_CHECK(t_hooks && !t_hooks->stack.empty(),
             "No saved-tensor hooks stand on this thread to be taken away.");
  const PushedHooks last = std::move(t_hooks->stack.back());  // goes when the stack is whole
  t_hooks->stack.pop_back();
  DropIfUnused();
}

struct SavedTensorHooksGuard::Stack {
  std::vector<PushedHooks> pushed;
};

SavedTensorHooksGuard::SavedTensorHooksGuard() {
  if (t_hooks && !t_hooks->stack.empty()) [[unlikely]]
    before_ = std::make_unique<Stack>(Stack{t_hooks->stack});
}

SavedTensorHooksGuard::~SavedTensorHooksGuard() {
  if (!t_hooks && !before_) [[likely]]
    return;
  std::vector<PushedHooks>
      left;  // goes last: hooks are the user's objects, whose end may push and pop others
  if (before_) left = std::move(before_->pushed);
  Hooks().stack.swap(left);
  DropIfUnused();
}

std::optional<std::string> ForbidSavedTensorHooks(std::optional<std::string> message) {
  if (message && t_hooks && !t_hooks->stack.empty()) MICA_THROW(kRuntime, *message);
  std::swap(Hooks().forbidden, message);
  DropIfUnused();
  return message;
}

void SavedTensor::Keep(const Tensor& t, bool is_output, uint32_t output_nr) {
  defined_ = t.defined();
  if (!defined_) return;
  MICA_CHECK(!t.is_inference(),
             "Inference tensors cannot be saved for backward. Clone the tensor outside inference mode to get "
             "a normal tensor, or use no_grad instead of inference mode.");
  frames::Settle(t);
  version_ = t.version();
  t.impl()->storage->Watch();
  output_nr_ = output_nr;
  is_output_ = is_output && IsDifferentiable(t.dtype());
  requires_grad_ = is_output_ || RequiresGrad(t);
  if (__builtin_expect(t_hooks && !t_hooks->stack.empty(), 0)) {
    const PushedHooks& innermost = t_hooks->stack.back();
    if (innermost.ActHere()) return Pack(innermost.hooks, t);
  }
  tensor_ = is_output_ ? DetachedAlias(t) : t;
}

void SavedTensor::Pack(std::shared_ptr<SavedTensorHooks> hooks, const Tensor& t) {
  auto packed = std::make_unique<Packed>();
  packed->hooks = std::move(hooks);
  {
    const UserCode hook;
    // What it computes is no part of this level's graph; of outer levels' graphs it is.
    const bool inside = frames::Current() && frames::KindOf(frames::Current()->kind).own_autograd;
    const GradModeGuard no_grad(inside && CurrentThread().grad_enabled);
    const ExcludeGuard unrecorded(inside ? KeySet::Of(keys::kAutograd) : KeySet());
    packed->value = packed->hooks->pack(is_output_ ? DetachedAlias(t) : t);
  }
  MICA_CHECK(t.version() == version_,
             "A saved tensor pack hook is modifying its input in place. It must write to a clone of ",
             t.ToString(), ", since others use this tensor.");
  if (requires_grad_ && !is_output_) packed->edge = GradientEdge(t);
  packed->moves_outside = MovesOutside(t);
  packed_ = std::move(packed);
}

void SavedTensor::Hook(std::shared_ptr<SavedTensorHooks> hooks, Node* owner) {
  MICA_CHECK(defined_,
             "Calling register_hooks on a saved tensor with value None is forbidden: ", owner->name(),
             " did not save it, since no gradient needs it.");
  MICA_CHECK(!packed_,
             "Calling register_hooks on a saved tensor whose hooks have already been set is forbidden: a "
             "saved tensor of ",
             owner->name(), " can have one pair.");
  const Tensor t = Unpack(nullptr);
  Pack(std::move(hooks), t);
  tensor_.reset();
}

void SavedTensor::Reset() {
  SpinLock lock(lock_);
  tensor_.reset();
  packed_.reset();
}

void SavedTensor::ThrowReleased(const Node* owner) const {
  MICA_THROW(kRuntime,
             "Trying to backward through the graph a second time (or directly access saved tensors after "
             "they have already been freed): the tensors that ",
             owner ? owner->name() : std::string("a node"),
             " saved are freed by the first backward. Specify retain_graph=True in the first call to run "
             "backward a second time.");
}

void SavedTensor::ThrowWritten(const Node* owner, uint32_t version) const {
  const char* write = FindWrite(tensor_, version);
  const char* first = FindWrite(tensor_, version_ + 1);
  std::string by;
  if (first) by = absl::StrCat(" The write that made version (", version_ + 1, ") was ", first, ".");
  if (write && version != version_ + 1)
    absl::StrAppend(&by, " The last write, to version (", version, "), was ", write, ".");
  MICA_THROW(
      kRuntime,
      "one of the variables needed for gradient computation has been modified by an inplace operation: ",
      tensor_.ToString(), ", which ", owner ? owner->name() : std::string("a node"),
      " saved for backward, is at version ", version, "; expected version ", version_, " instead.", by,
      " Write to a clone, or use the operator that is not in-place.");
}

Tensor SavedTensor::UnpackHooked(Node* owner) const {
  Tensor t;
  {
    const UserCode hook;
    t = packed_->hooks->unpack(packed_->value);
  }
  MICA_CHECK(t.defined(), "The unpack hook of a saved tensor returned no tensor.");
  MICA_CHECK_IMPLEMENTED(
      !packed_->moves_outside || MovesOutside(t),
      "Saved-tensor hooks inside of a transform (mica.func) gave back a tensor without the "
      "derivative that an outer transform or backward takes of the saved one; its gradient "
      "would be lost. Let the hooks keep it (no detach()), or set them around the transforms.");
  if (!requires_grad_ || t.requires_grad() || !CurrentThread().grad_enabled) return t;
  t = DetachedAlias(t);
  if (is_output_) {
    if (owner) SetGradFn(t, NodeRef::Borrow(owner), output_nr_);
  } else if (packed_->edge.node) {
    SetGradFn(t, packed_->edge.node, packed_->edge.input_nr);
  }
  return t;
}

Tensor SavedTensor::Unpack(Node* owner) const {
  if (!defined_) return Tensor();
  if (__builtin_expect(packed_ != nullptr, 0)) return UnpackHooked(owner);
  Tensor t;
  {
    SpinLock lock(lock_);
    t = tensor_;
  }
  if (__builtin_expect(!t.defined(), 0)) ThrowReleased(owner);
  frames::Settle(t);
  if (const uint32_t version = t.version(); __builtin_expect(version != version_, 0))
    ThrowWritten(owner, version);
  // Gets its history back where somebody may record.
  if (is_output_ && owner && CurrentThread().grad_enabled) {
    t = DetachedAlias(t);
    SetGradFn(t, NodeRef::Borrow(owner), output_nr_);
  }
  return t;
}

}  // namespace mica::autograd
