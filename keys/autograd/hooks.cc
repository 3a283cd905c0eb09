// The lists of hooks of nodes.
#include "keys/autograd/hooks.h"

#include <algorithm>
#include <optional>

#include "keys/autograd/forward.h"
#include "keys/autograd/given.h"
#include "keys/autograd/meta.h"

namespace mica::autograd {
namespace {

// Those of a dual number are its value's.
using forward::Primal;

std::atomic<uint64_t> g_next_hook{1};
std::mutex g_hook_lists;

// Puts the handle by which hook `id` is taken out of a list of the node's NodeExtra into `handle`.
template <typename List>
void GiveHandle(MicaHook** handle, const Node& node, uint64_t id, List NodeExtra::*list) {
  if (!handle) return;
  *handle = new MicaHook{[extra = node.weak_extra(), id, list] {
    const std::shared_ptr<NodeExtra> e = extra.lock();
    if (!e) return;
    std::optional<typename List::value_type> gone;  // ends after the lock: its object is the user's
    std::lock_guard lock(g_hook_lists);
    List& hooks = (*e).*list;
    const auto found = std::find_if(hooks.begin(), hooks.end(), [&](const auto& h) { return h.id == id; });
    if (found == hooks.end()) return;
    gone = std::move(*found);
    hooks.erase(found);
  }};
}

// Adds to one of the lists of a node.
template <auto kList, typename Function>
MicaStatus AddToNode(const char* call, MicaNode* given, Function function, MicaHeld object,
                     MicaHook** handle) {
  Held held(object);
  return CatchAll([&] {
    CheckFunction(function, call);
    Node& node = Given(given, call);
    const uint64_t id = g_next_hook++;
    {
      std::lock_guard lock(g_hook_lists);
      (node.EnsureExtra().*kList).push_back({id, {function, std::move(held)}});
    }
    GiveHandle(handle, node, id, kList);
  });
}

}  // namespace

std::mutex& HookListsLock() { return g_hook_lists; }

MicaStatus AddTensorHook(MicaTensor* given, MicaTensorHook function, MicaHeld object, MicaHook** handle) {
  Held held(object);
  return CatchAll([&] {
    CheckFunction(function, "add_tensor_hook");
    const Tensor& t = Primal(Given(given, "add_tensor_hook"));
    MICA_CHECK(RequiresGrad(t), "A hook needs a tensor that requires grad.");
    const uint64_t id = g_next_hook++;
    const Edge edge = GradientEdge(t);
    {
      std::lock_guard lock(g_hook_lists);
      std::vector<NodeExtra::TensorPre>& hooks = edge.node->EnsureExtra().tensor_pre;
      const auto last = std::find_if(hooks.rbegin(), hooks.rend(),
                                     [&](const auto& h) { return h.output_nr == edge.input_nr; });
      hooks.insert(last == hooks.rend() ? hooks.end() : last.base(),
                   {edge.input_nr, id, {function, std::move(held)}});
    }
    GiveHandle(handle, *edge.node, id, &NodeExtra::tensor_pre);
  });
}

MicaStatus AddAccumulateHook(MicaTensor* given, MicaAccumulateHook function, MicaHeld object,
                             MicaHook** handle) {
  Held held(object);
  return CatchAll([&] {
    CheckFunction(function, "add_accumulate_hook");
    const Tensor& leaf = Primal(Given(given, "add_accumulate_hook"));
    MICA_CHECK(RequiresGrad(leaf) && IsLeaf(leaf),
               "post accumulate grad hooks cannot be registered on non-leaf tensors, nor on such as need no "
               "gradient: ",
               leaf.ToString(), ".");
    const uint64_t id = g_next_hook++;
    const NodeRef node = Accumulator(leaf);
    {
      std::lock_guard lock(g_hook_lists);
      node->EnsureExtra().accumulated.push_back({id, {function, std::move(held)}});
    }
    GiveHandle(handle, *node, id, &NodeExtra::accumulated);
  });
}

MicaStatus AddNodeHook(MicaNode* node, MicaNodeHook function, MicaHeld held, MicaHook** hook) {
  return AddToNode<&NodeExtra::pre>("add_node_hook", node, function, held, hook);
}
MicaStatus AddNodePostHook(MicaNode* node, MicaNodePostHook function, MicaHeld held, MicaHook** hook) {
  return AddToNode<&NodeExtra::post>("add_node_post_hook", node, function, held, hook);
}

void VisitHeldBy(Node& node, void* to, MicaVisitHeld visit) {
  node.VisitHeld(to, visit);
  NodeExtra* extra = node.extra();
  if (!extra) return;
  for (NodeExtra::TensorPre& h : extra->tensor_pre) h.hook.held.Visit(to, visit);
  for (NodeExtra::Pre& h : extra->pre) h.hook.held.Visit(to, visit);
  for (NodeExtra::Accumulated& h : extra->accumulated) h.hook.held.Visit(to, visit);
  for (NodeExtra::Post& h : extra->post) h.hook.held.Visit(to, visit);
  extra->data.Visit(to, visit);
}
void VisitHeldByTensor(const Tensor& t, void* to, MicaVisitHeld visit) {
  const Meta* meta = GetMeta(t);
  if (!meta) return;
  if (Node* leaf = meta->accumulator.load(std::memory_order_acquire)) VisitHeldBy(*leaf, to, visit);
  if (meta->grad_fn && meta->grad_fn->IsHeldOnce()) VisitHeldBy(*meta->grad_fn, to, visit);
}

}  // namespace mica::autograd
