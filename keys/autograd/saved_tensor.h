// SavedTensor: a tensor that a node keeps for its backward.
//
// It remembers the version and refuses a tensor that was written since, naming
// the operator that saved it and, where known, the write. An input is kept as it
// is. An output of the node itself is kept as an alias without history, which
// gets its grad_fn back when it is unpacked, so that node and tensor do not hold
// each other. Saving an inference tensor is an error. With saved-tensor hooks on
// the thread, what `pack` returned is kept instead, and of the tensor no more than
// where its gradient goes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "keys/autograd/node.h"

namespace mica::autograd {

// `pack` when a tensor is saved, under no_grad; `unpack` when it is used.
struct SavedTensorHooks {
  std::function<std::shared_ptr<void>(const Tensor&)> pack;
  std::function<Tensor(const std::shared_ptr<void>&)> unpack;
};

class SavedTensor {
 public:
  SavedTensor() = default;
  ~SavedTensor() = default;
  SavedTensor(const SavedTensor&) = delete;
  SavedTensor& operator=(const SavedTensor&) = delete;

  // An undefined tensor is kept as such.
  void Save(const Tensor& t) { Keep(t, false, 0); }
  // Output `output_nr` of the owner; one that is written in place: after the write.
  void SaveOutput(const Tensor& t, uint32_t output_nr = 0) { Keep(t, true, output_nr); }
  // The tensor as it was; throws if it was written or released.
  Tensor Unpack(Node* owner) const;
  void Reset();
  // Packs what is saved here from now on; once.
  void Hook(std::shared_ptr<SavedTensorHooks> hooks, Node* owner);

 private:
  struct Packed {
    std::shared_ptr<SavedTensorHooks> hooks;
    std::shared_ptr<void> value;
    Edge edge;                   // of a tensor that is no output of the node: its history, to give back
    bool moves_outside = false;  // it has a history or a tangent of an outer level, which the hooks must keep
  };
  void Pack(std::shared_ptr<SavedTensorHooks> hooks, const Tensor& t);
  Tensor UnpackHooked(Node* owner) const;
  void Keep(const Tensor& t, bool is_output, uint32_t output_nr);
  [[noreturn]] void ThrowReleased(const Node* owner) const;
  [[noreturn]] void ThrowWritten(const Node* owner, uint32_t version) const;

  Tensor tensor_;
  std::unique_ptr<Packed> packed_;
  uint32_t version_ = 0;
  uint32_t output_nr_ = 0;
  bool is_output_ = false;
  bool defined_ = false;
  bool requires_grad_ = false;
  mutable std::atomic<bool> lock_{false};  // Unpack on one thread, Reset on another
};

// The hooks of this thread, innermost last.
void PushSavedTensorHooks(std::shared_ptr<SavedTensorHooks> hooks);
void PopSavedTensorHooks();
std::optional<std::string> ForbidSavedTensorHooks(std::optional<std::string> message);
// A backward pass leaves the hooks as it found them, whatever the hooks and functions that it runs push or
// pop.
class SavedTensorHooksGuard {
 public:
  SavedTensorHooksGuard();
  ~SavedTensorHooksGuard();
  SavedTensorHooksGuard(const SavedTensorHooksGuard&) = delete;
  SavedTensorHooksGuard& operator=(const SavedTensorHooksGuard&) = delete;

 private:
  struct Stack;
  std::unique_ptr<Stack> before_;  // NULL: there were none
};

}  // namespace mica::autograd
