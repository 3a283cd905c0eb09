// What generated kernels and nodes are written with
// (build/generated/mica/autograd_<i>.cc, codegen/emit/autograd.cc).
//
// A kernel looks so:
//   if (!Recording(self, other)) return <redispatch below>;
//   auto backward = MakeNode<MulBackward0>();
//   Link(*backward, {&self, &other});
//   ... save what the formulas of inputs with an edge need ...
//   { BelowAutograd below; result = <redispatch below>; }
//   SetHistory(result, *backward);
#pragma once

#include <initializer_list>
#include <vector>

#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/registration/registration.h"
#include "keys/autograd/engine_ops.h"
#include "keys/autograd/meta.h"
#include "keys/autograd/saved_values.h"

namespace mica::autograd {

inline KeySet Below(KeySet keys) { return keys & KeySet::Below(keys::kAutograd); }

// The operator's kernel itself, and what it calls, is not recorded.
class BelowAutograd : public ExcludeGuard {
 public:
  BelowAutograd() : ExcludeGuard(KeySet::Of(keys::kAutograd)) {}
};

inline bool WantsGrad(const Tensor& t) { return t.defined() && RequiresGrad(t); }
inline bool WantsGrad(TensorSpan list) {
  for (const Tensor& t : list)
    if (WantsGrad(t)) return true;
  return false;
}
// Whether this call makes a node: grad mode is on and an input requires grad.
template <typename... T>
bool Recording(const T&... inputs) {
  return CurrentThread().grad_enabled && (WantsGrad(inputs) || ...);
}

// The edges of `node`: one for each input, in order; then one for each of `list`.
void Link(Node& node, std::initializer_list<const Tensor*> inputs);
void Link(Node& node, std::initializer_list<const Tensor*> inputs, TensorSpan list);
// Whether one of the edges first..first+count-1 exists.
inline bool HasEdge(const Node& node, int i) { return node.next(i).node.get() != nullptr; }
bool HasEdges(const Node& node, int first);
bool WantsAny(const Node& node, int first);

// The gradient of output i, zeros where none arrived.
Tensor GradOrZeros(const Node& node, const Tensor* grads, int i);
// Zeros for input i, whose gradient is zero.
Tensor ZerosFor(const Node& node, int i);
// Moves a list of gradients to out[first...].
void PutList(std::vector<Tensor> list, Node& node, int first, Tensor* out);

// A view that was not recorded: it keeps no history, also where its base has one.
void KeepUnrecorded(const Tensor& view);

}  // namespace mica::autograd
