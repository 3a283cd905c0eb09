// Hooks, as callers add and remove them, and what is held for them, as a garbage collector sees it:
// functions of the table (<mica/autograd.h>).
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "keys/autograd/node.h"

struct MicaHook {
  std::function<void()> remove;
};

namespace mica::autograd {

// Held while a list of hooks is changed or copied: a backward of another thread may run its node meanwhile.
// Nothing of the user's runs under it.
std::mutex& HookListsLock();
// What a caller of hooks goes through: a hook may take itself away, or add others.
template <typename Hook>
std::vector<Hook> CopyOf(const std::vector<Hook>& hooks) {
  std::lock_guard lock(HookListsLock());
  return hooks;
}

MicaStatus AddTensorHook(MicaTensor* t, MicaTensorHook function, MicaHeld held, MicaHook** hook);
MicaStatus AddAccumulateHook(MicaTensor* leaf, MicaAccumulateHook function, MicaHeld held, MicaHook** hook);
MicaStatus AddNodeHook(MicaNode* node, MicaNodeHook function, MicaHeld held, MicaHook** hook);
MicaStatus AddNodePostHook(MicaNode* node, MicaNodePostHook function, MicaHeld held, MicaHook** hook);

// What is held for a node's hooks, its custom function and its data; for a tensor, that of its accumulator,
// and of its node if it alone holds that.
void VisitHeldBy(Node& node, void* to, MicaVisitHeld visit);
void VisitHeldByTensor(const Tensor& t, void* to, MicaVisitHeld visit);

}  // namespace mica::autograd
