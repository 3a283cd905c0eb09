// `x.data`, and its replacement: the same memory as a tensor of its own, whose writes x's history does not
// see.
//
// The alias has a storage of its own over the memory, and so a version counter of its own: writing
// it between forward and backward is the program's business, as torch's programs expect. A storage
// made here holds the one that owns the memory, which can therefore not grow meanwhile.
#pragma once

#include "tensor/tensor.h"

namespace mica::autograd {

// The alias; a wrapper's or a subclass's shares its version with `t`.
Tensor DataAlias(const Tensor& t);

// `t.data = data`: the tensor keeps its identity, its requires_grad, its history and its grad;
// everything else becomes that of `data`. A view leaves its base.
void SetData(const Tensor& t, const Tensor& data);

// The storage that owns the memory of a storage that DataAlias() made; any other itself.
StorageImpl* OwnerOf(StorageImpl* storage);

}  // namespace mica::autograd
