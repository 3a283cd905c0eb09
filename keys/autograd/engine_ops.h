// The operators that the engine itself needs, as plain functions: so that only
// one file includes generated headers, and the rest of the engine compiles fast.
//
// Each dispatches as a user's call would, and so is recorded when a backward is
// itself differentiated.
#pragma once

#include "dispatcher/calls/thread_state.h"
#include "tensor/tensor.h"

namespace mica::autograd {

// Takes Autograd back into calls within code that runs below it.
class IncludeAutograd {
 public:
  IncludeAutograd() : saved_(t_state.exclude) { t_state.exclude = saved_ - KeySet::Of(keys::kAutograd); }
  ~IncludeAutograd() { t_state.exclude = saved_; }
  IncludeAutograd(const IncludeAutograd&) = delete;
  IncludeAutograd& operator=(const IncludeAutograd&) = delete;

 private:
  KeySet saved_;
};

// Whether a mode or a subclass of Python sees what happens to `t`.
inline bool IsSeen(const Tensor& t) {
  const KeySet keys = (t.keys() | t_state.include) - t_state.exclude;
  return keys.has(keys::kDispatchMode) || keys.has(keys::kPythonSubclass);
}

namespace ops {

Tensor Add(const Tensor& a, const Tensor& b);
void AddInPlace(const Tensor& a, const Tensor& b);
Tensor Clone(const Tensor& t);
Tensor Detach(const Tensor& t);
// A copy with the strides of `layout` where its shape is the same, contiguous where those overlap or
// leave gaps.
Tensor CloneLike(const Tensor& t, const Tensor& layout);
void CopyInto(const Tensor& to, const Tensor& from);
void Zero(const Tensor& t);
Tensor ZerosOf(IntSpan sizes, DType dtype, Device device);
Tensor OnesLike(const Tensor& t);
// Uninitialised, of the dtype and device of `like`.
Tensor EmptyStrided(IntSpan sizes, IntSpan strides, const Tensor& like);
Tensor AsStrided(const Tensor& t, IntSpan sizes, IntSpan strides, int64_t offset);
Tensor Expand(const Tensor& t, IntSpan sizes);
Tensor ConjView(const Tensor& t);
Tensor NegView(const Tensor& t);
Tensor ViewAsReal(const Tensor& t);
Tensor ViewAsComplex(const Tensor& t);
Tensor Real(const Tensor& t);
Tensor ToDType(const Tensor& t, DType dtype);
Tensor ToDevice(const Tensor& t, Device device);
// Sums the dimensions that broadcasting added, and gives `t` these sizes.
Tensor SumToSize(const Tensor& t, IntSpan sizes);
bool HasNan(const Tensor& t);
// Whether every element is 0, behind all wrappers of frames; true of what has no values.
bool IsZero(const Tensor& t);
Tensor Arange(int64_t size, Device device);                                    // int64
Tensor IndexAdd(const Tensor& to, const Tensor& index, const Tensor& values);  // along dimension 0
Tensor Flatten(const Tensor& t);
Tensor Div(const Tensor& a, const Tensor& b);

}  // namespace ops
}  // namespace mica::autograd
