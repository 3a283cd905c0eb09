// Copy on write of what is saved: hooks under which a saved tensor may be written.
//
// What a node saves while they stand is kept as an alias. Before an in-place write to
// its memory on the same thread, while they still stand, the alias becomes a copy; so
// only what is written costs memory. Behind graph.allow_mutation_on_saved_tensors.
#pragma once

#include <functional>
#include <vector>

#include "tensor/tensor.h"

namespace mica::autograd {

// Lists what is still saved so, or of it the copies alone.
using SavedLister = std::function<std::vector<Tensor>(bool copies)>;

// On this thread; they nest, with each other and with other hooks.
SavedLister PushCopyOnWrite();
void PopCopyOnWrite();

}  // namespace mica::autograd
