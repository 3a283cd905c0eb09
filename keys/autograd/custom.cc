// Custom functions' nodes and the history of what their forward returned.
#include "keys/autograd/custom.h"

#include <algorithm>

#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/frames/frames.h"
#include "keys/autograd/engine_ops.h"
#include "keys/autograd/kernel.h"

namespace mica::autograd {
namespace {

bool Contains(TensorSpan list, const Tensor& t) {
  return std::any_of(list.begin(), list.end(), [&](const Tensor& x) { return x.is_same(t); });
}

void MarkOfFunction(const Tensor& view) {
  view.impl()->extra->view_creation = static_cast<uint8_t>(ViewCreation::kCustomFunction);
}

Tensor AliasBelow(const Tensor& t) {
  if (frames::IsWrapper(t)) return frames::Alias(t);
  const BelowAutograd below;
  return MakeView(t, t.sizes(), t.strides(), t.storage_offset() * t.itemsize());
}

}  // namespace

void CustomNode::Apply(const Tensor* grads, Tensor* out) {
  std::vector<Tensor> list(grads, grads + num_outputs());
  if (materialize_grads_) {
    for (int i = 0; i < num_outputs(); ++i) list[static_cast<size_t>(i)] = GradOrZeros(*this, grads, i);
  }
  static_assert(sizeof(Tensor) == sizeof(MicaTensor*));
  ThrowIfError(function_.backward(object_.get(), AbiType<TensorSpan>::To(list),
                                  reinterpret_cast<MicaTensor**>(out), num_next()));
}

void CustomNode::Destroy() {
  if (!function_.keep || function_.keep(object_.get(), this) == 0) Node::Destroy();
}

void CustomNode::SetInputs(TensorSpan inputs) {
  inputs_.emplace();
  for (const Tensor& t : inputs) inputs_->push_back(t.impl());
}

void CustomNode::CheckFinish(TensorSpan inputs) {
  MICA_CHECK(inputs_, "The call of ", name_, " is finished; custom_finish ends each once.");
  MICA_CHECK_VALUE(static_cast<size_t>(inputs.size()) == inputs_->size(), "custom_finish was given (",
                   inputs.size(), ") inputs of ", name_, ", whose custom_node was given (", inputs_->size(),
                   "); expected the same ones.");
  for (int64_t i = 0; i < inputs.size(); ++i)
    MICA_CHECK_VALUE(inputs[i].impl() == (*inputs_)[static_cast<size_t>(i)], "Input (", i, ") of ", name_,
                     " is another one at custom_finish than at custom_node; expected the same tensors.");
  inputs_.reset();
}

NodeRef MakeCustomNode(const MicaCustomFunction& function, CustomObject object, std::string name,
                       TensorSpan inputs) {
  if (!Recording(inputs)) return NodeRef();
  Ref<CustomNode> node = MakeNode<CustomNode>(function, std::move(object), std::move(name));
  Link(*node, {}, inputs);
  node->SetInputs(inputs);
  return node;
}

std::vector<Tensor> FinishCustom(Node* made, const CustomOutputs& call) {
  auto* node = dynamic_cast<CustomNode*>(made);
  MICA_CHECK_TYPE(node || !made, "The node of a custom function's call is a ", made->name(),
                  ", which was not made for one (custom_node).");
  if (node) {
    node->CheckFinish(call.inputs);
    node->set_materialize_grads(call.materialize_grads);
  }
  std::vector<Tensor> results(call.outputs.begin(), call.outputs.end());
  for (const Tensor& d : call.dirty) {
    MICA_CHECK(Contains(call.outputs, d), "A tensor that the custom function marked dirty, ", d.ToString(),
               ", is not among its outputs.");
  }
  for (size_t i = 0; i < results.size(); ++i) {
    Tensor& t = results[i];
    if (!t.defined()) {
      if (node) node->AddOutput(Tensor());
      continue;
    }
    // One tensor returned twice stays one; its gradient goes to the first of the two.
    const auto same = std::find_if(call.outputs.begin(), call.outputs.begin() + i,
                                   [&](const Tensor& x) { return x.defined() && x.is_same(t); });
    if (same != call.outputs.begin() + i) {
      if (node) node->AddOutput(t);
      t = results[static_cast<size_t>(same - call.outputs.begin())];
      continue;
    }
    const bool is_input = Contains(call.inputs, t);
    const bool is_dirty = Contains(call.dirty, t);
    const bool differentiable = node && IsDifferentiable(t.dtype()) && !Contains(call.non_differentiable, t);
    if (!differentiable) {
      if (is_input && RequiresGrad(t)) t = DetachedAlias(t);
      if (!node && !is_input && !is_dirty && t.is_view() && CurrentThread().grad_enabled) MarkOfFunction(t);
      if (node) node->AddOutput(t);  // backward takes zeros for it
    } else if (is_dirty) {
      MICA_CHECK(!IsDifferentiableView(t) || results.size() == 1,
                 "If your Function modifies inplace an input that "
                 "is a view of another Tensor, it cannot return more than one Tensor; ",
                 node->name(), " returns (", results.size(), "). Clone the input, or return one Tensor.");
      CheckInplace(t, node->name());
      const auto edge = std::find_if(call.inputs.begin(), call.inputs.end(),
                                     [&](const Tensor& x) { return x.defined() && x.is_same(t); });
      RebaseHistory(t, *node, edge == call.inputs.end() ? 0 : static_cast<int>(edge - call.inputs.begin()));
    } else {
      if (is_input) t = AliasBelow(t);
      if (t.is_view()) MarkOfFunction(t);
      SetHistory(t, *node);
    }
  }
  return results;
}

}  // namespace mica::autograd
