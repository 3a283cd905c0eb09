// Composites of activations and losses.
#include "mica/kernels/composite/composite_helpers.h"
#include "mica/ops/_gelu.h"
#include "mica/ops/_gelu_backward.h"
#include "mica/ops/_gelu_tanh.h"
#include "mica/ops/_gelu_tanh_backward.h"
#include "mica/ops/abs.h"
#include "mica/ops/add.h"
#include "mica/ops/clamp_min.h"
#include "mica/ops/div.h"
#include "mica/ops/elu.h"
#include "mica/ops/eq.h"
#include "mica/ops/exp.h"
#include "mica/ops/gt.h"
#include "mica/ops/hardtanh.h"
#include "mica/ops/index_select.h"
#include "mica/ops/log.h"
#include "mica/ops/log1p.h"
#include "mica/ops/log_sigmoid.h"
#include "mica/ops/log_softmax.h"
#include "mica/ops/logical_not.h"
#include "mica/ops/lt.h"
#include "mica/ops/masked_fill.h"
#include "mica/ops/movedim.h"
#include "mica/ops/mul.h"
#include "mica/ops/narrow.h"
#include "mica/ops/neg.h"
#include "mica/ops/nll_loss_forward.h"
#include "mica/ops/nll_loss_nd.h"
#include "mica/ops/reshape.h"
#include "mica/ops/rsub.h"
#include "mica/ops/sigmoid.h"
#include "mica/ops/square.h"
#include "mica/ops/sub.h"
#include "mica/ops/sum.h"
#include "mica/ops/tanh.h"
#include "mica/ops/where.h"
#include "mica/ops/xlogy.h"

namespace mica::composite {

Tensor relu6(const Tensor& self) { return ops::hardtanh(self, Scalar(0.0), Scalar(6.0)); }
Tensor gelu(const Tensor& self, std::string_view approximate) {
  MICA_CHECK(approximate == "none" || approximate == "tanh", "Approximation (", std::string(approximate),
             ") of gelu is unknown; expected none or tanh.");
  return approximate == "none" ? ops::_gelu(self) : ops::_gelu_tanh(self);
}
Tensor gelu_backward(const Tensor& grad_output, const Tensor& self, std::string_view approximate) {
  return approximate == "none" ? ops::_gelu_backward(grad_output, self)
                               : ops::_gelu_tanh_backward(grad_output, self);
}
// Second derivatives, of operators that can be differentiated on and on.
Tensor _gelu_tanh_second(const Tensor& self) {
  const Tensor square = ops::square(self);
  const Tensor t = ops::tanh(ops::mul(
      ops::mul(self, ops::add(ops::mul(square, Scalar(0.044715)), Scalar(1.0))), Scalar(0.7978845608028654)));
  const Tensor u =
      ops::mul(ops::add(ops::mul(square, Scalar(0.134145)), Scalar(1.0)), Scalar(0.7978845608028654));
  const Tensor bend = ops::sub(ops::mul(self, Scalar(0.21406444881780073)),
                               ops::mul(ops::mul(t, ops::square(u)), Scalar(2.0)));
  return ops::mul(ops::rsub(ops::square(t), Scalar(1.0)),
                  ops::add(u, ops::mul(ops::mul(self, bend), Scalar(0.5))));
}
Tensor _silu_second(const Tensor& self) {
  const Tensor s = ops::sigmoid(self), rest = ops::rsub(s, Scalar(1.0));
  const Tensor bend = ops::mul(self, ops::rsub(ops::mul(s, Scalar(2.0)), Scalar(1.0)));
  return ops::mul(ops::mul(s, rest), ops::add(bend, Scalar(2.0)));
}
Tensor selu(const Tensor& self) {
  return ops::elu(self, Scalar(1.6732632423543772848), Scalar(1.0507009873554804934), Scalar(1.0));
}
Tensor celu(const Tensor& self, const Scalar& alpha) {
  MICA_CHECK(alpha.ToDouble() != 0, "Argument `alpha` of celu is 0; expected another number.");
  return ops::elu(self, alpha, Scalar(1.0), Scalar(1.0 / alpha.ToDouble()));
}
Tensor softsign(const Tensor& self) { return ops::div(self, ops::add(ops::abs(self), Scalar(1.0))); }
Tensor tanhshrink(const Tensor& self) { return ops::sub(self, ops::tanh(self)); }
Tensor glu(const Tensor& self, int64_t dim) {
  MICA_CHECK(self.ndim() > 0, "A 0-d tensor has no halves; expected at least one dimension.");
  const int64_t size = self.size(dim);
  MICA_CHECK(size % 2 == 0, "Size (", size, ") of dimension (", dim, ") is odd; glu needs two halves.");
  return ops::mul(ops::narrow(self, dim, 0, size / 2),
                  ops::sigmoid(ops::narrow(self, dim, size / 2, size / 2)));
}
Tensor prelu(const Tensor& self, const Tensor& weight) {
  Tensor slope = weight;
  if (weight.numel() != 1) {
    MICA_CHECK(self.ndim() >= 2 && weight.ndim() == 1 && weight.numel() == self.sizes()[1],
               "Number of slopes (", weight.numel(),
               ") is neither 1 nor the number of channels of `self` with shape ", ShapeText(self.sizes()),
               ".");
    Dims sizes(static_cast<size_t>(self.ndim()), 1);
    sizes[1] = weight.numel();
    slope = ops::reshape(weight, sizes);
  }
  return ops::where(ops::gt(self, Scalar(0.0)), self, ops::mul(self, slope));
}

Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return ReduceLoss(ops::square(ops::sub(self, target)), reduction);
}
Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return ReduceLoss(ops::abs(ops::sub(self, target)), reduction);
}
Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  MICA_CHECK(beta >= 0, "Argument `beta` (", beta, ") is negative; expected 0 or more.");
  if (beta == 0) return l1_loss(self, target, reduction);
  const Tensor z = ops::abs(ops::sub(self, target));
  const Tensor near = ops::mul(ops::square(z), Scalar(0.5 / beta)), far = ops::sub(z, Scalar(0.5 * beta));
  return ReduceLoss(ops::where(ops::lt(z, Scalar(beta)), near, far), reduction);
}
Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  MICA_CHECK(delta > 0, "Argument `delta` (", delta, ") is not positive.");
  const Tensor z = ops::abs(ops::sub(self, target));
  const Tensor near = ops::mul(ops::square(z), Scalar(0.5)),
               far = ops::mul(ops::sub(z, Scalar(0.5 * delta)), Scalar(delta));
  return ReduceLoss(ops::where(ops::lt(z, Scalar(delta)), near, far), reduction);
}

Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight,
                            int64_t reduction) {
  const Tensor yes = ops::clamp_min(ops::log(self), Scalar(-100.0));
  const Tensor no = ops::clamp_min(ops::log1p(ops::neg(self)), Scalar(-100.0));
  Tensor loss = ops::neg(ops::add(ops::mul(target, yes), ops::mul(ops::rsub(target, Scalar(1.0)), no)));
  if (weight.defined()) loss = ops::mul(loss, weight);
  return ReduceLoss(loss, reduction);
}
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target, const Tensor& weight,
                                        const Tensor& pos_weight, int64_t reduction) {
  // (1 - t) x + w log(1 + exp(-x)), with w = 1 + (p - 1) t
  const Tensor soft = ops::neg(ops::log_sigmoid(self));
  const Tensor scaled =
      pos_weight.defined()
          ? ops::mul(ops::add(ops::mul(ops::sub(pos_weight, Scalar(1.0)), target), Scalar(1.0)), soft)
          : soft;
  Tensor loss = ops::add(ops::mul(ops::rsub(target, Scalar(1.0)), self), scaled);
  if (weight.defined()) loss = ops::mul(loss, weight);
  return ReduceLoss(loss, reduction);
}
Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  const Tensor loss = log_target ? ops::mul(ops::exp(target), ops::sub(target, self))
                                 : ops::sub(ops::xlogy(target, target), ops::mul(target, self));
  return ReduceLoss(loss, reduction);
}

Tensor nll_loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                int64_t ignore_index) {
  return std::get<0>(ops::nll_loss_forward(self, target, weight, reduction, ignore_index));
}
Tensor nll_loss_nd(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                   int64_t ignore_index) {
  MICA_CHECK_VALUE(self.ndim() >= 1, "`self` has no dimension; expected at least one of classes.");
  if (self.ndim() <= 2) return nll_loss(self, target, weight, reduction, ignore_index);
  MICA_CHECK_VALUE(target.ndim() == self.ndim() - 1, "Number of dimensions (", target.ndim(),
                   ") of `target` is not one less than that (", self.ndim(), ") of `self`.");
  for (int64_t d = 0; d < target.ndim(); ++d)
    MICA_CHECK(target.sizes()[d] == self.sizes()[d == 0 ? 0 : d + 1], "Shape ", ShapeText(target.sizes()),
               " of `target` does not fit shape ", ShapeText(self.sizes()), " of `self`.");
  const Tensor rows = ops::reshape(ops::movedim(self, 1, -1), {-1, self.sizes()[1]});
  const Tensor loss = nll_loss(rows, ops::reshape(target, {-1}), weight, reduction, ignore_index);
  return reduction == 0 ? ops::reshape(loss, target.sizes()) : loss;
}

namespace {
Tensor ByClass(const Tensor& weight, int64_t class_dim, int64_t ndim) {
  Dims sizes(static_cast<size_t>(ndim), 1);
  sizes[static_cast<size_t>(class_dim)] = weight.numel();
  return ops::reshape(weight, sizes);
}

Tensor WithProbabilities(const Tensor& logs, const Tensor& target, const Tensor& weight, int64_t reduction,
                         double smoothing, int64_t class_dim) {
  const auto classes = static_cast<double>(logs.sizes()[class_dim]);
  const Tensor t =
      smoothing > 0 ? ops::add(ops::mul(target, Scalar(1 - smoothing)), Scalar(smoothing / classes)) : target;
  Tensor product = ops::mul(logs, t);
  if (weight.defined()) product = ops::mul(product, ByClass(weight, class_dim, logs.ndim()));
  const Tensor loss = ops::neg(ops::sum(product, IntSpan(&class_dim, 1), false));
  if (reduction != 1) return ReduceLoss(loss, reduction);
  return ops::div(ops::sum(loss),
                  Scalar(static_cast<double>(std::max<int64_t>(1, logs.numel() / logs.sizes()[class_dim]))));
}

Tensor Smoothed(const Tensor& logs, const Tensor& target, const Tensor& weight, int64_t reduction,
                int64_t ignore_index, int64_t class_dim) {
  Tensor each = weight.defined() ? ops::mul(logs, ByClass(weight, class_dim, logs.ndim())) : logs;
  each = ops::neg(ops::sum(each, IntSpan(&class_dim, 1), false));
  const Tensor ignored = ops::eq(target, Scalar(ignore_index));
  each = ops::masked_fill(each, ignored, Scalar(0.0));
  if (reduction != 1) return ReduceLoss(each, reduction);
  const Tensor kept = Cast(ops::logical_not(ignored), logs.dtype());
  if (!weight.defined()) return ops::div(ops::sum(each), ops::sum(kept));
  const Tensor safe = ops::masked_fill(target, ignored, Scalar(0));
  const Tensor weights = ops::reshape(ops::index_select(weight, 0, ops::reshape(safe, {-1})), target.sizes());
  return ops::div(ops::sum(each), ops::sum(ops::mul(weights, kept)));
}
}  // namespace

Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                          int64_t ignore_index, double label_smoothing) {
  MICA_CHECK(label_smoothing >= 0 && label_smoothing <= 1, "Label smoothing (", label_smoothing,
             ") is not between 0 and 1.");
  MICA_CHECK(self.ndim() >= 1, "`self` has no dimension; expected at least one of classes.");
  const int64_t class_dim = self.ndim() == 1 ? 0 : 1;
  const Tensor logs = ops::log_softmax(self, class_dim, std::nullopt);
  if (target.sizes() == self.sizes()) {
    MICA_CHECK(IsFloating(target.dtype()), "Dtype (", Name(target.dtype()),
               ") of `target` with the shape of `self` holds no class probabilities; expected a float.");
    MICA_CHECK(ignore_index < 0, "Argument `ignore_index` (", ignore_index,
               ") has no meaning for class probabilities.");
    return WithProbabilities(logs, target, weight, reduction, label_smoothing, class_dim);
  }
  const Tensor loss = ops::nll_loss_nd(logs, target, weight, reduction, ignore_index);
  if (label_smoothing == 0) return loss;
  const Tensor smooth = Smoothed(logs, target, weight, reduction, ignore_index, class_dim);
  const double share = label_smoothing / static_cast<double>(self.sizes()[class_dim]);
  return ops::add(ops::mul(loss, Scalar(1 - label_smoothing)), ops::mul(smooth, Scalar(share)));
}

}  // namespace mica::composite
