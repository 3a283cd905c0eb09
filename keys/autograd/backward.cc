// From tensors to a GraphTask.
#include "mica/keys/autograd/backward.h"

#include "mica/keys/autograd/engine_ops.h"
#include "mica/keys/autograd/graph_task.h"
#include "mica/keys/autograd/meta.h"
#include "mica/keys/autograd/validate.h"
#include "mica/tensor/shape.h"

namespace mica::autograd {
namespace {

void AddRoots(GraphTask& task, TensorSpan tensors, TensorSpan grads) {
  MICA_CHECK(grads.empty() || grads.size() == tensors.size(), "The number of gradients (", grads.size(),
             ") differs from the number of outputs (", tensors.size(), ").");
  MICA_CHECK(!tensors.empty(), "Backward needs at least one output.");
  for (int64_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    MICA_CHECK_TYPE(t.defined(), "Output (", i, ") of backward is no tensor.");
    Edge edge = GradientEdge(t);
    MICA_CHECK(edge.node, "Output (", i, ") of backward, ", t.ToString(),
               ", does not require grad and has no grad_fn: nothing that made it was recorded.");
    Tensor grad = grads.empty() ? Tensor() : grads[i];
    if (grad.defined()) {
      ValidateRootGradient(t, static_cast<int>(i), grad);
    } else {
      MICA_CHECK(t.numel() == 1, "A gradient can be left out for an output of one element only, and output (",
                 i, ") has the shape ", ShapeText(t.sizes()),
                 "; give its gradient, or reduce it to one element first.");
      grad = ops::OnesLike(t);
    }
    task.AddRoot(std::move(edge), std::move(grad));
  }
}

Edge InputEdge(const Tensor& t, int64_t i) {
  MICA_CHECK_TYPE(t.defined(), "Input (", i, ") is no tensor.");
  MICA_CHECK(RequiresGrad(t), "Input (", i, "), ", t.ToString(), ", does not require grad.");
  return GradientEdge(t);
}

}  // namespace

void RetainGrad(const Tensor& t) {
  MICA_CHECK(RequiresGrad(t), "retain_grad needs a tensor that requires grad.");
  const NodeRef fn = GradFn(t);
  if (!fn) return;  // a leaf keeps its gradient anyway
  Meta& meta = EnsureMeta(t);
  if (meta.retained) return;
  meta.retained = std::make_shared<RetainedGrad>();
  fn->EnsureExtra().retain.push_back({meta.output_nr, meta.retained});
}

void Backward(TensorSpan tensors, TensorSpan grads, TensorSpan inputs, const BackwardOptions& options) {
  GraphTask task(options.retain_graph || options.create_graph, options.create_graph);
  AddRoots(task, tensors, grads);
  for (int64_t i = 0; i < inputs.size(); ++i) {
    const Edge edge = InputEdge(inputs[i], i);
    const bool leaf = edge.node->variable() != nullptr;
    if (!leaf) RetainGrad(inputs[i]);
    task.Capture(edge, leaf);
  }
  task.Run();
}

std::vector<Tensor> Gradients(TensorSpan outputs, TensorSpan inputs, TensorSpan grad_outputs,
                              const BackwardOptions& options) {
  GraphTask task(options.retain_graph || options.create_graph, options.create_graph);
  AddRoots(task, outputs, grad_outputs);
  MICA_CHECK(!inputs.empty(), "grad needs at least one input.");
  for (int64_t i = 0; i < inputs.size(); ++i) task.Capture(InputEdge(inputs[i], i), false);
  task.Run();
  std::vector<Tensor> result(static_cast<size_t>(inputs.size()));
  for (int64_t i = 0; i < inputs.size(); ++i) {
    Tensor grad = task.Captured(static_cast<int>(i));
    MICA_CHECK(grad.defined() || options.allow_unused || options.materialize_grads, "Input (", i, "), ",
               inputs[i].ToString(),
               ", was not used to compute the outputs; say allow_unused=True to get None for it.");
    if (!grad.defined() && options.materialize_grads)
      grad = ops::ZerosOf(inputs[i].sizes(), inputs[i].dtype(), inputs[i].device());
    result[static_cast<size_t>(i)] = std::move(grad);
  }
  return result;
}

}  // namespace mica::autograd
