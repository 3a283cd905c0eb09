// The Python object of a tensor: mica.Tensor.
//
// A PyTensor is a PyObject around one TensorImpl pointer. Exact mica.Tensor
// objects come from a free list and are not tracked by the garbage collector
// until they may hold Python objects; subclasses (nn.Parameter) behave as usual objects.
// Identity: an impl has at most one Python object, see Note [Python object of a
// tensor] in tensor/tensor.h. All functions need the GIL.
#pragma once

#include "bindings/python/src/module/object.h"
#include "tensor/tensor.h"

namespace mica::python {

struct PyTensor {
  PyObject_HEAD Tensor tensor;
  PyObject* dict;
  PyObject* weak_references;
};

extern PyTypeObject TensorType;
extern PyTypeObject TensorMetaType;

inline bool IsExactTensor(PyObject* o) { return Py_TYPE(o) == &TensorType; }
inline bool IsTensor(PyObject* o) {
  return Py_TYPE(o) == &TensorType || PyType_IsSubtype(Py_TYPE(o), &TensorType);
}
// The binding's own bit among tensor_flags: the tensor's object takes part in garbage collection, also
// a new one that it gets when the old one went.
inline constexpr uint64_t kCollected = uint64_t{1} << 56;
// Gives a tensor that may hold Python objects from now on to the garbage collector.
void Track(PyObject* tensor);
// The tensor in an object that IsTensor says is one.
inline const Tensor& Unwrap(PyObject* o) { return reinterpret_cast<PyTensor*>(o)->tensor; }
// The tensor in any object; TypeError of `what` it should be where it is none.
inline const Tensor& TensorIn(PyObject* o, const char* what) {
  MICA_CHECK_TYPE(IsTensor(o), what, " must be a Tensor, but it is of type (", TypeName(o), ").");
  return Unwrap(o);
}

// The Python object of `t`: the one it has, or a new exact mica.Tensor. An
// undefined tensor is None.
PyObject* Wrap(Tensor&& t);
inline PyObject* Wrap(const Tensor& t) { return Wrap(Tensor(t)); }
// A new object of `type`, a subclass of mica.Tensor, for a tensor without one.
PyObject* WrapAs(PyTypeObject* type, Tensor&& t);

void InitTensorType(PyObject* module);

// Slots that other files define.
extern PyNumberMethods kTensorNumberMethods;    // number_protocol.cc
extern PyMappingMethods kTensorMappingMethods;  // indexing.cc
extern PySequenceMethods kTensorSequenceMethods;
extern PyGetSetDef kTensorAttributes[];  // tensor_attributes.cc
extern PyMethodDef kTensorMethods[];     // tensor_methods.cc
PyObject* TensorRichCompare(PyObject* a, PyObject* b, int op);
PyObject* TensorIter(PyObject* self);
PyObject* TensorRepr(PyObject* self);

}  // namespace mica::python
