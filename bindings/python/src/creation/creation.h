// Tensors from Python data: numbers, nested sequences, NumPy arrays, buffers.
#pragma once

#include <optional>

#include "bindings/python/src/module/object.h"
#include "tensor/tensor.h"

namespace mica::python {

// A fresh tensor of `data`. Without a dtype it is inferred as torch does: bool,
// int64, the default float dtype or its complex one for Python numbers; that of
// the array for NumPy's. Throws ValueError for ragged sequences, TypeError for
// other objects.
Tensor TensorFromData(PyObject* data, std::optional<DType> dtype, Device device, bool pin);
// A tensor that shares the memory of an object with the buffer protocol. Warns of a
// read-only one unless the tensor is not `kept`, but copied.
Tensor TensorFromBuffer(PyObject* object, bool kept = true);
// `t` in another dtype and on another device; itself if it is so already.
Tensor ConvertTensor(const Tensor& t, std::optional<DType> dtype, std::optional<Device> device);

void InitBufferType(PyObject* module);
extern PyMethodDef kCreationFunctions[];
extern PyMethodDef kDlpackFunctions[];

}  // namespace mica::python
