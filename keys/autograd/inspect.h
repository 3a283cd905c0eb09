// Reading from outside what a node saved.
//
// Behind grad_fn._saved_* and mica.autograd.graph; nothing in backward uses it.
#pragma once

#include <string_view>
#include <vector>

#include "keys/autograd/saved_tensor.h"
#include "schema/value.h"

namespace mica::autograd {

std::vector<const char*> SavedNamesOf(Node& node);
bool HasSaved(Node& node, std::string_view name);
// Throws where the node saved nothing of that name, or it is freed.
Value SavedOf(Node& node, std::string_view name);
void HookSaved(Node& node, std::string_view name, int64_t index, std::shared_ptr<SavedTensorHooks> hooks);

}  // namespace mica::autograd
