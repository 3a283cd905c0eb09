// One direction of a recurrent layer made of operators that transforms and autograd know, and
// its gradient as a recorded computation: what the second gradient and projections run.
// Each result is in fresh memory; recurrent.cc is the fast way, for all else.
#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/layers/autograd_table.h"
#include "kernels/composite/recurrent.h"
#include "mica/ops/add.h"
#include "mica/ops/addcmul.h"
#include "mica/ops/alias.h"
#include "mica/ops/lerp.h"
#include "mica/ops/linear.h"
#include "mica/ops/mul.h"
#include "mica/ops/relu.h"
#include "mica/ops/sigmoid.h"
#include "mica/ops/tanh.h"

namespace mica::composite::recurrent {

std::tuple<Tensor, Tensor, Tensor> LayerOfParts(const Layer& l) {
  const std::vector<Step> steps = StepsOf(l.batch_sizes, l.reverse);
  State h(l.h0, steps[0].count), c(l.mode == kLstm ? l.c0 : l.h0, steps[0].count);
  std::vector<Tensor> outputs;
  for (const Step& step : steps) {
    const Tensor before = h.Take(step.count), mine = Rows(l.gates, step.first, step.count);
    const Tensor sums = ops::linear(before, l.weight, l.mode == kGru ? l.bias : Tensor());
    if (l.mode == kGru) {
      const std::vector<Tensor> x = Gates(mine, 3), u = Gates(sums, 3);
      const Tensor fresh = ops::tanh(ops::addcmul(x[2], ops::sigmoid(ops::add(x[0], u[0])), u[2]));
      h.now = ops::lerp(fresh, before, ops::sigmoid(ops::add(x[1], u[1])));
    } else if (l.mode == kLstm) {
      const std::vector<Tensor> a = Gates(ops::add(mine, sums), 4);
      const Tensor kept = ops::mul(ops::sigmoid(a[1]), c.Take(step.count));
      c.now = ops::addcmul(kept, ops::sigmoid(a[0]), ops::tanh(a[2]));
      h.now = ops::mul(ops::sigmoid(a[3]), ops::tanh(c.now));
      if (l.projection.defined()) h.now = ops::linear(h.now, l.projection);
    } else {
      h.now = l.mode == kTanh ? ops::tanh(ops::add(mine, sums)) : ops::relu(ops::add(mine, sums));
    }
    outputs.push_back(h.now);
  }
  if (l.reverse) std::reverse(outputs.begin(), outputs.end());
  return {ops::cat(outputs, 0), h.Last(), l.mode == kLstm ? c.Last() : Tensor()};
}

namespace {

bool RequiresGrad(const MicaAutograd& autograd, const Tensor& t) {
  return t.defined() && AbiReturn<bool>::Unpack(autograd.requires_grad(t.impl()));
}

// The gradients of `wanted`, undefined where there is none, as a recorded computation.
std::vector<Tensor> Gradients(const MicaAutograd& autograd, const std::vector<Tensor>& results,
                              const std::vector<Tensor>& wanted, const std::vector<Tensor>& grads) {
  std::vector<MicaGradientPoint> from, to;
  for (const Tensor& t : results) from.push_back({t.impl(), {}});
  for (const Tensor& t : wanted) to.push_back({t.impl(), {}});
  std::vector<Tensor> found(wanted.size());
  ThrowIfError(
      autograd.gradients({from.data(), static_cast<int64_t>(from.size())},
                         {to.data(), static_cast<int64_t>(to.size())}, AbiType<TensorSpan>::To(grads),
                         MICA_BACKWARD_RETAIN_GRAPH | MICA_BACKWARD_CREATE_GRAPH | MICA_BACKWARD_ALLOW_UNUSED,
                         reinterpret_cast<MicaTensor**>(found.data())));
  return found;
}

}  // namespace

bool IsRecorded(std::initializer_list<const Tensor*> tensors) {
  const MicaAutograd* autograd = CurrentThread().grad_enabled ? LoadedAutogradTable() : nullptr;
  if (!autograd || t_state.exclude.has(keys::kAutograd)) return false;
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const Tensor* t) { return RequiresGrad(*autograd, *t); });
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> GradientOfParts(Layer layer, const Tensor& grad_output,
                                                                   const Tensor& grad_h,
                                                                   const Tensor& grad_c) {
  const MicaAutograd& autograd = AutogradTable();
  // Aliases, so that a gradient is that of one input alone, though h0 may follow from `gates`.
  Tensor* const inputs[] = {&layer.gates, &layer.weight, &layer.bias, &layer.h0, &layer.c0};
  std::vector<Tensor> wanted, results, grads;
  for (Tensor* input : inputs) {
    if (!RequiresGrad(autograd, *input)) continue;
    *input = ops::alias(*input);
    wanted.push_back(*input);
  }
  const auto [output, h, c] = LayerOfParts(layer);
  for (const auto& [result, grad] : {std::pair(output, grad_output), {h, grad_h}, {c, grad_c}}) {
    if (!grad.defined() || !RequiresGrad(autograd, result)) continue;
    results.push_back(result);
    grads.push_back(grad);
  }
  std::vector<Tensor> found(wanted.size());
  if (!results.empty() && !wanted.empty()) found = Gradients(autograd, results, wanted, grads);
  Tensor gradients[5];
  size_t next = 0;
  for (int k = 0; k < 5; ++k)
    if (inputs[k]->defined() && next < wanted.size() && inputs[k]->impl() == wanted[next].impl())
      gradients[k] = found[next++];
  return {gradients[0], gradients[1], gradients[2], gradients[3], gradients[4]};
}

}  // namespace mica::composite::recurrent
