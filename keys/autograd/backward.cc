// From tensors to a GraphTask.
#include "keys/autograd/backward.h"

#include "dispatcher/calls/owned_results.h"
#include "keys/autograd/engine_ops.h"
#include "keys/autograd/graph_task.h"
#include "keys/autograd/meta.h"
#include "keys/autograd/validate.h"
#include "tensor/shape.h"

namespace mica::autograd {
namespace {

// Of a complex output there is no one gradient to begin with.
void CheckRealRoot(DType dtype, int64_t i) {
  MICA_CHECK(!IsComplex(dtype), "grad can be implicitly created only for real scalar outputs, and output (",
             i, ") is of the dtype (", Name(dtype), "); give its gradient.");
}

// An output given as an edge: its gradient has the shape that the node's forward made.
Tensor GradOfEdge(const Edge& edge, int64_t i, const Tensor& grad) {
  const OutputInfo& info = edge.node->output(static_cast<int>(edge.input_nr));
  if (grad.defined()) {
    MICA_CHECK(grad.sizes() == info.sizes(), "The gradient of output (", i, ") has the shape ",
               ShapeText(grad.sizes()), ", and the output, an edge of ", edge.node->name(), ", the shape ",
               ShapeText(info.sizes()), ".");
    return grad;
  }
  MICA_CHECK(info.numel() == 1, "grad can be implicitly created only for scalar outputs, and output (", i,
             "), an edge of ", edge.node->name(), ", has the shape ", ShapeText(info.sizes()),
             "; give its gradient, or reduce it to one element first.");
  CheckRealRoot(info.dtype, i);
  return ops::OnesLike(ops::ZerosOf(info.sizes(), info.dtype, info.device));
}

Tensor GradOfTensor(const Tensor& t, int64_t i, Tensor grad) {
  if (grad.defined()) {
    ValidateRootGradient(t, static_cast<int>(i), grad);
    return grad;
  }
  MICA_CHECK(t.numel() == 1, "grad can be implicitly created only for scalar outputs, and output (", i,
             ") has the shape ", ShapeText(t.sizes()),
             "; give its gradient, or reduce it to one element first.");
  CheckRealRoot(t.dtype(), i);
  return ops::OnesLike(t);
}

void AddRoots(GraphTask& task, const GradientPoints& outputs, TensorSpan grads) {
  const auto count = static_cast<int64_t>(outputs.size());
  MICA_CHECK(grads.empty() || grads.size() == count, "The number of gradients (", grads.size(),
             ") differs from the number of outputs (", count, ").");
  MICA_CHECK(count != 0, "Backward needs at least one output.");
  for (int64_t i = 0; i < count; ++i) {
    const GradientPoint& point = outputs[static_cast<size_t>(i)];
    const Tensor& t = point.tensor;
    Tensor grad = grads.empty() ? Tensor() : grads[i];
    if (point.edge.node) {
      task.AddRoot(point.edge, GradOfEdge(point.edge, i, grad));
      continue;
    }
    MICA_CHECK_TYPE(t.defined(), "Output (", i, ") of backward is no tensor.");
    Edge edge = GradientEdge(t);
    MICA_CHECK(edge.node, "element ", i,
               " of tensors does not require grad and does not have a grad_fn: nothing that made this output "
               "of backward, ",
               t.ToString(), ", was recorded.");
    grad = GradOfTensor(t, i, std::move(grad));
    task.AddRoot(std::move(edge), std::move(grad));
  }
}

Edge InputEdge(const GradientPoint& point, size_t i) {
  if (point.edge.node) return point.edge;
  const Tensor& t = point.tensor;
  MICA_CHECK_TYPE(t.defined(), "Input (", i, ") is no tensor.");
  MICA_CHECK(RequiresGrad(t), "One of the differentiated Tensors does not require grad: input (", i, "), ",
             t.ToString(), ".");
  return GradientEdge(t);
}

GraphTask TaskOf(uint64_t flags) {
  const bool create_graph = (flags & MICA_BACKWARD_CREATE_GRAPH) != 0;
  return GraphTask(create_graph || (flags & MICA_BACKWARD_RETAIN_GRAPH) != 0, create_graph);
}

std::string TextOf(const GradientPoint& point) {
  return point.edge.node ? absl::StrCat("an edge of ", point.edge.node->name()) : point.tensor.ToString();
}

}  // namespace

void RetainGrad(const Tensor& t) {
  MICA_CHECK(RequiresGrad(t), "retain_grad needs a tensor that requires grad.");
  const NodeRef fn = GradFn(t);
  if (!fn) return;  // a leaf keeps its gradient anyway
  Meta& meta = EnsureMeta(t);
  if (meta.retained) return;
  meta.retained = std::make_shared<RetainedGrad>();
  meta.retained->grad = std::move(meta.grad);  // one that was assigned
  fn->EnsureExtra().retain.push_back({meta.output_nr, meta.retained});
}

void Backward(const GradientPoints& outputs, TensorSpan grads, const GradientPoints& inputs, uint64_t flags) {
  GraphTask task = TaskOf(flags);
  AddRoots(task, outputs, grads);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Edge edge = InputEdge(inputs[i], i);
    const bool leaf = edge.node->variable() != nullptr;
    // An edge in the middle of the graph stands for no tensor whose .grad could take the gradient.
    if (!leaf && inputs[i].tensor.defined()) RetainGrad(inputs[i].tensor);
    task.Capture(edge, true);  // as in torch, its node runs, and with it the hooks
  }
  task.Run();
}

std::vector<Tensor> Gradients(const GradientPoints& outputs, const GradientPoints& inputs,
                              TensorSpan grad_outputs, uint64_t flags) {
  GraphTask task = TaskOf(flags);
  AddRoots(task, outputs, grad_outputs);
  MICA_CHECK(!inputs.empty(), "grad requires non-empty inputs.");
  std::vector<Edge> edges;
  for (size_t i = 0; i < inputs.size(); ++i) {
    edges.push_back(InputEdge(inputs[i], i));
    task.Capture(edges.back(), false);
  }
  task.Run();
  std::vector<Tensor> result(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor grad = task.TakeCaptured(static_cast<int>(i));
    OwnResults(grad);
    // A gradient that is the same everywhere is one number, which a write of a part would change everywhere.
    if (grad.defined() && HasInternalOverlap(grad.sizes(), grad.strides()) != InternalOverlap::kNo)
      grad = ops::Clone(grad);
    const bool materialize = (flags & MICA_BACKWARD_MATERIALIZE_GRADS) != 0;
    MICA_CHECK(grad.defined() || materialize || (flags & MICA_BACKWARD_ALLOW_UNUSED) != 0,
               "The differentiated tensor, input (", i, "), ", TextOf(inputs[i]),
               ", appears to not have been used in the graph. Set allow_unused=True if this is the desired "
               "behavior, to get None for it.");
    if (!grad.defined() && materialize) {
      const OutputInfo& info = edges[i].node->output(static_cast<int>(edges[i].input_nr));
      grad = ops::ZerosOf(info.sizes(), info.dtype, info.device);
      if (flags & MICA_BACKWARD_CREATE_GRAPH) SetRequiresGrad(grad, true);
    }
    result[i] = std::move(grad);
  }
  return result;
}

}  // namespace mica::autograd
