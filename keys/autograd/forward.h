// Forward mode: the frame kind "jvp", whose wrappers are dual numbers, a value and its
// tangent. An undefined tangent is zero.
//
// Generated kernels (build/generated/mica/forward_<i>.cc) are registered at "jvp" and
// written with Level:
//   Tensor mul_Tensor(KeySet, const Tensor& self, const Tensor& other) {
//     Level level("mul.Tensor");           // the parent frame is current from here on
//     const Dual d0 = level.Open(self), d1 = level.Open(other);
//     if (!level.any()) return level.Close(ops::mul(d0.value, d1.value));
//     Tensor result = ops::mul(d0.value, d1.value);
//     Tensor tangent;
//     if (d0.tangent.defined()) Add(tangent, ops::mul(d0.tangent, d1.value));
//     if (d1.tangent.defined()) Add(tangent, ops::mul(d0.value, d1.tangent));
//     return level.Close(std::move(result), std::move(tangent));
//   }
// and an in-place form:
//     const Dual d0 = level.OpenWritten(self), d1 = ...;
//     const Tensor self_before = level.Kept(d0.value);
//     ... the tangent, from self_before and the others ...
//     ops::mul_(d0.value, d1.value);
//     level.Write(self, std::move(tangent));
// A kernel that needs no old value in its tangent may compute it after the write. Nothing
// of this is needed for: views (class view), composites, operators without a gradient,
// out= forms, and operators with a reverse formula alone; forward.cc has rules for these.
//
// Always holds: a tangent has its value's sizes, dtype and device. Where the wrapper has
// views it has its strides too, and the tangent of a view is the same view of the base's
// tangent, of the same memory.
#pragma once

#include <vector>

#include "dispatcher/frames/frames.h"
#include "dispatcher/registration/registration.h"

namespace mica::autograd::forward {

struct Dual {
  Tensor value;
  Tensor tangent;  // undefined: zero
};

// The number of the kind "jvp".
int JvpKind();
void BringJvpKind(Scope& scope);

// The wrapper of `frame` (a jvp frame) for the value and its tangent, which may be
// undefined.
Tensor MakeDual(Tensor value, Tensor tangent, const frames::Frame& frame);
// The tangent of a jvp wrapper, taken from its base's where that got one since: Note
// [Tangents of views] in forward.cc. Call it outside of the wrapper's frame.
Tensor TangentOf(const Tensor& wrapper);
// The wrapper, after its tangent was taken away if it is a dual number.
Tensor WithoutTangent(Tensor wrapper);
// The same as TangentOf before a view of `wrapper` is made: of such strides that the same view of it
// can be made.
Tensor PrepareView(const Tensor& wrapper);
// The same for a view that as_strided made of `wrapper`, which may reach places of the storage
// beyond it: those have the tangent zero.
void ReachTangent(const Tensor& wrapper, const Tensor& view);
// `view` was made of a wrapper that PrepareView got, and `tangent` by the same operator of
// what it gave.
void SetViewTangent(const Tensor& view, Tensor tangent);

class Level {
 public:
  explicit Level(const char* op) : op_(op) {}

  // An undefined tensor, and one that is no wrapper of the frame, opens to itself.
  Dual Open(const Tensor& t);
  std::vector<Dual> Open(TensorSpan list);
  // The same for a tensor that the operator writes.
  Dual OpenWritten(const Tensor& t);
  // The value for formulas that are evaluated before it is written: a copy where an outer
  // level may record them, and so save it. After all tensors are opened.
  Tensor Kept(const Tensor& value) const;
  // Whether any opened tensor has a tangent.
  bool any() const { return any_; }
  const frames::Frame& frame() const { return left_.frame(); }

  // The result as a tensor of the frame. A tangent of another dtype or shape that
  // broadcasts is brought to the result's; one of a result that has no derivative
  // (integers) is dropped. Results that share memory with an opened tensor become views.
  Tensor Close(Tensor result, Tensor tangent = Tensor());
  std::vector<Tensor> Close(std::vector<Tensor> results, std::vector<Tensor> tangents);
  // After `self`, opened by OpenWritten, was written: its tangent is `tangent` now.
  void Write(const Tensor& self, Tensor tangent);

 private:
  // Whether the tangent is one of those that were opened; says so to its owners.
  bool IsOpened(const Tensor& tangent);

  frames::LeaveFrame left_;
  const char* op_;
  bool any_ = false;
  bool recorded_ = false;  // by an outer level
  std::vector<Tensor> opened_;
};

// Whether an outer level may record what is computed with `t` (outside of the jvp frame).
inline bool IsRecordedOutside(const Tensor& t) {
  return t.defined() && (frames::IsWrapper(t) || IsRecorded(t));
}
// The value of a dual number, which may be one of an outer frame; other tensors as they are. What of it
// is differentiated backward was recorded there, outside of the frame.
const Tensor& Primal(const Tensor& t);
// Whether it is a dual number of its own level whose tangent may be other than zero; of any level.
bool MovesHere(const Tensor& t);
bool HasTangent(const Tensor& t);
// total += term, where an undefined total is zero and an undefined term too.
void Add(Tensor& total, const Tensor& term);
// Zeros like `value`, for a formula that cannot do without a tangent.
Tensor Zeros(const Tensor& value);

// Kernels that are not generated, the fallback, the kind. After Autograd's kernels are
// registered in the scope, and before generated forward rules.
void RegisterForwardMode(Scope& scope);

}  // namespace mica::autograd::forward
