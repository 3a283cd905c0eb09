// Sizes as Python sees them. Outside of transforms they are ints; in a trace with symbolic
// sizes (mica.fx) they are SymInts, Python objects that know where they come from and what
// they are in this run: their hint. Operators take the hint; the trace finds the SymInt
// behind it again.
#pragma once

#include "bindings/python/src/module/object.h"
#include "bindings/python/src/tensor/metadata_objects.h"
#include "dispatcher/calls/thread_state.h"
#include "tensor/tensor.h"

namespace mica::python {

extern PyTypeObject* g_symbolic_type;  // NULL until mica.fx made one

inline bool IsSymbolic(PyObject* o) { return g_symbolic_type && PyObject_TypeCheck(o, g_symbolic_type); }
Ref HintOf(PyObject* symbolic);

// In the frames that are current; `dim` may be negative.
PyObject* ShapeInFrames(const Tensor& t);
PyObject* SizeInFrames(const Tensor& t, int64_t dim);
PyObject* NumelInFrames(const Tensor& t);

// What stands for `t` where gradients are asked of it: in a trace, of what the function captured.
Tensor ResidentInTrace(const Tensor& t);
inline Tensor Resident(const Tensor& t) {
  return __builtin_expect(!t_state.frame, 1) || !t.defined() ? t : ResidentInTrace(t);
}

inline PyObject* ShapeOf(const Tensor& t) {
  return __builtin_expect(!t_state.frame, 1) ? FromSizes(t.sizes()) : ShapeInFrames(t);
}
inline PyObject* SizeOf(const Tensor& t, int64_t dim) {
  return !t_state.frame ? PyLong_FromLongLong(t.size(dim)) : SizeInFrames(t, dim);
}
inline PyObject* NumelOf(const Tensor& t) {
  return !t_state.frame ? PyLong_FromLongLong(t.numel()) : NumelInFrames(t);
}

}  // namespace mica::python
