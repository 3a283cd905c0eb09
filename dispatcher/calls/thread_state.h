// What one thread carries between calls: included and excluded keys, grad mode,
// inference mode, the current frame. It lives in libmica alone.
#pragma once

#include <cstdint>

#include "tensor/device.h"
#include "tensor/key_set.h"
#include "tensor/private_struct.h"
#include "tensor/tensor.h"

namespace mica {

struct ThreadState {
  // What layers may read (MicaThread in <mica/layers.h>; dispatcher/layers/faces.cc holds the two together).
  KeySet include;
  KeySet exclude;
  void* frame = nullptr;
  bool grad_enabled = true;
  bool inference_mode = false;
  // The core's own.
  MICA_PRIVATE_STRUCT;
  Device default_device;
};

// Initial-exec: libmica is loaded with the process or once by Python, and the
// block is small, so that the static TLS reserve suffices.
extern __attribute__((tls_model("initial-exec"))) thread_local constinit ThreadState t_state;
inline ThreadState& CurrentThread() { return t_state; }

// Whether the layer Autograd records what an operator does with `t`.
inline bool IsRecorded(const Tensor& t) {
  if (!t_state.grad_enabled || t_state.exclude.has(keys::kAutograd)) return false;
  return t.requires_grad() ||
         (t.is_view() && t.impl()->extra->view_base->has_flag(tensor_flags::kRequiresGrad));
}

// Each guard restores what it found, on every path.
class IncludeGuard {
 public:
  explicit IncludeGuard(KeySet keys) : saved_(t_state.include) { t_state.include = saved_ | keys; }
  ~IncludeGuard() { t_state.include = saved_; }
  IncludeGuard(const IncludeGuard&) = delete;
  IncludeGuard& operator=(const IncludeGuard&) = delete;

 private:
  KeySet saved_;
};

class ExcludeGuard {
 public:
  explicit ExcludeGuard(KeySet keys) : saved_(t_state.exclude) { t_state.exclude = saved_ | keys; }
  ~ExcludeGuard() { t_state.exclude = saved_; }
  ExcludeGuard(const ExcludeGuard&) = delete;
  ExcludeGuard& operator=(const ExcludeGuard&) = delete;

 private:
  KeySet saved_;
};

class GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled) : saved_(t_state.grad_enabled) { t_state.grad_enabled = enabled; }
  ~GradModeGuard() { t_state.grad_enabled = saved_; }
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool saved_;
};

// Inference mode: results have no version counter and no autograd history.
class InferenceModeGuard {
 public:
  explicit InferenceModeGuard(bool enabled) : saved_(t_state) {
    t_state.inference_mode = enabled;
    SetInferenceMode(enabled);
    t_state.grad_enabled = enabled ? false : saved_.grad_enabled;
  }
  ~InferenceModeGuard() {
    t_state.inference_mode = saved_.inference_mode;
    t_state.grad_enabled = saved_.grad_enabled;
    SetInferenceMode(saved_.inference_mode);
  }
  InferenceModeGuard(const InferenceModeGuard&) = delete;
  InferenceModeGuard& operator=(const InferenceModeGuard&) = delete;

 private:
  ThreadState saved_;
};

}  // namespace mica
