// Keeping and giving back saved tensors.
#include "mica/keys/autograd/saved_tensor.h"

#include <vector>

#include "mica/dispatcher/thread_state.h"
#include "mica/dispatcher/write_log.h"
#include "mica/keys/autograd/engine_ops.h"
#include "mica/keys/autograd/meta.h"

namespace mica::autograd {
namespace {

using HooksStack = std::vector<std::shared_ptr<SavedTensorHooks>>;
thread_local constinit HooksStack* t_hooks __attribute__((tls_model("initial-exec"))) = nullptr;

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
  if (!t_hooks) t_hooks = new HooksStack();
  t_hooks->push_back(std::move(hooks));
}

void PopSavedTensorHooks() {
  MICA_CHECK(t_hooks && !t_hooks->empty(), "No saved-tensor hooks stand on this thread to be taken away.");
  t_hooks->pop_back();
  if (!t_hooks->empty()) return;
  delete t_hooks;
  t_hooks = nullptr;
}

void SavedTensor::Keep(const Tensor& t, bool is_output, uint32_t output_nr) {
  defined_ = t.defined();
  if (!defined_) return;
  MICA_CHECK(!t.is_inference(),
             "A tensor that was made in inference mode cannot be saved for backward. Clone it outside "
             "inference mode to get a "
             "normal tensor, or use no_grad instead of inference mode.");
  version_ = t.version();
  t.impl()->storage->Watch();
  output_nr_ = output_nr;
  is_output_ = is_output && IsDifferentiable(t.dtype());
  requires_grad_ = is_output_ || RequiresGrad(t);
  if (__builtin_expect(t_hooks != nullptr, 0)) {
    packed_ = std::make_unique<Packed>();
    packed_->hooks = t_hooks->back();
    const Tensor given = is_output ? DetachedAlias(t) : t;
    packed_->value = packed_->hooks->pack(given);
    if (!is_output_) tensor_ = requires_grad_ ? t : Tensor();  // the history to give back
    return;
  }
  tensor_ = is_output_ ? DetachedAlias(t) : t;
}

void SavedTensor::Reset() {
  SpinLock lock(lock_);
  tensor_.reset();
  packed_.reset();
}

void SavedTensor::ThrowReleased(const Node* owner) const {
  MICA_THROW(kRuntime, "The tensors that ", owner ? owner->name() : std::string("a node"),
             " saved are freed: backward ran through this graph before. Say retain_graph=True in the first "
             "call to run it a "
             "second time.");
}

void SavedTensor::ThrowWritten(const Node* owner, uint32_t version) const {
  const char* write = FindWrite(tensor_, version);
  const char* first = FindWrite(tensor_, version_ + 1);
  std::string by;
  if (first) by = absl::StrCat(" The write that made version (", version_ + 1, ") was ", first, ".");
  if (write && version != version_ + 1)
    absl::StrAppend(&by, " The last write, to version (", version, "), was ", write, ".");
  MICA_THROW(kRuntime, "A tensor that ", owner ? owner->name() : std::string("a node"),
             " saved for backward, ", tensor_.ToString(), ", was written in place: it has the version (",
             version, "), and the version (", version_, ") was saved.", by,
             " Write to a clone, or use the operator that is not in-place.");
}

Tensor SavedTensor::Unpack(Node* owner) const {
  if (!defined_) return Tensor();
  if (__builtin_expect(packed_ != nullptr, 0)) {
    Tensor t;
    {
      const IncludeAutograd on;  // the hook is the user's code, which may record
      t = packed_->hooks->unpack(packed_->value);
    }
    MICA_CHECK(t.defined(), "The unpack hook of a saved tensor returned no tensor.");
    if (requires_grad_ && !t.requires_grad() && CurrentThread().grad_enabled) {
      t = DetachedAlias(t);
      if (is_output_) {
        SetGradFn(t, NodeRef::Borrow(owner), output_nr_);
      } else if (Edge e = GradientEdge(tensor_); e.node) {
        SetGradFn(t, std::move(e.node), e.input_nr);
      }
    }
    return t;
  }
  Tensor t;
  {
    SpinLock lock(lock_);
    t = tensor_;
  }
  if (__builtin_expect(!t.defined(), 0)) ThrowReleased(owner);
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
