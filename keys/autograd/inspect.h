// Reading a node from outside: what its forward's results looked like, what it saved.
//
// Behind grad_fn._saved_* and mica.autograd.graph; nothing in backward uses it.
#pragma once

#include <string_view>
#include <vector>

#include "keys/autograd/node.h"

namespace mica::autograd {

std::vector<GraphValue> ResultsOf(const Node& node);
std::vector<std::string> SavedNamesOf(Node& node);
bool HasSaved(Node& node, std::string_view name);
// Throws where the node saved nothing of that name, or it is freed.
Value SavedOf(Node& node, std::string_view name);
void HookSaved(Node& node, std::string_view name, int64_t index, std::shared_ptr<SavedTensorHooks> hooks);

}  // namespace mica::autograd
