// Opaque tensors: elements in a layout of a plugin's own, behind a face like any other's.
//
// A plugin's kernel gives one (MicaHost.tensor_opaque) where the layout saves it work, and takes such where
// its record says so. Everybody else meets a tensor in memory: the layer Opaque, or
// Tensor::data(), has the payload's `reorder` write it, once.
#pragma once

#include "tensor/tensor.h"

namespace mica {

// Throws a kValue Error where the payload's type cannot write its elements.
Tensor MakeOpaque(IntSpan sizes, DType dtype, Device device, MicaObject* payload);
// A new reference to what MakeOpaque was given. NULL, and the tensor is in memory, where that is of another
// type, or no longer is, or never was, all that the tensor shows.
MicaObject* PayloadOf(const Tensor& t, const MicaObjectType* type);
// Puts the opaque tensors among a call's arguments into memory.
void MakeMemoryOf(const MicaValue* args, int64_t n);

}  // namespace mica
