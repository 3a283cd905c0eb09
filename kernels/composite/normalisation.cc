// Composites of normalisation, dropout and attention.
//
// The native_*_backward composites compute mean and deviation from the input
// again, so that a second gradient sees how they depend on it; a backend's kernel
// takes the saved ones.
#include <cmath>

#include "mica/kernels/composite/composite_helpers.h"
#include "mica/ops/_norm2.h"
#include "mica/ops/_var_mean.h"
#include "mica/ops/add.h"
#include "mica/ops/batch_norm.h"
#include "mica/ops/bernoulli_.h"
#include "mica/ops/clamp_min.h"
#include "mica/ops/clone.h"
#include "mica/ops/detach.h"
#include "mica/ops/div.h"
#include "mica/ops/dropout.h"
#include "mica/ops/empty.h"
#include "mica/ops/empty_like.h"
#include "mica/ops/expand.h"
#include "mica/ops/layer_norm.h"
#include "mica/ops/lerp.h"
#include "mica/ops/logical_not.h"
#include "mica/ops/masked_fill.h"
#include "mica/ops/matmul.h"
#include "mica/ops/mean.h"
#include "mica/ops/mul.h"
#include "mica/ops/native_batch_norm.h"
#include "mica/ops/native_layer_norm.h"
#include "mica/ops/norm.h"
#include "mica/ops/ones.h"
#include "mica/ops/ones_like.h"
#include "mica/ops/reciprocal.h"
#include "mica/ops/repeat.h"
#include "mica/ops/reshape.h"
#include "mica/ops/rsqrt.h"
#include "mica/ops/softmax.h"
#include "mica/ops/square.h"
#include "mica/ops/sub.h"
#include "mica/ops/sum.h"
#include "mica/ops/transpose.h"
#include "mica/ops/tril.h"

namespace mica::composite {
namespace {

Dims TrailingDims(const Tensor& input, IntSpan normalized_shape) {
  const int64_t k = normalized_shape.size(), n = input.ndim();
  MICA_CHECK(k >= 1, "List `normalized_shape` is empty; expected at least one size.");
  MICA_CHECK(n >= k && input.sizes().subspan(n - k, k) == normalized_shape, "Shape ",
             ShapeText(input.sizes()), " of `input` does not end in `normalized_shape` ",
             ShapeText(normalized_shape), ".");
  Dims dims;
  for (int64_t d = n - k; d < n; ++d) dims.push_back(d);
  return dims;
}

Dims AllButChannels(int64_t ndim) {
  Dims dims;
  for (int64_t d = 0; d < ndim; ++d)
    if (d != 1) dims.push_back(d);
  return dims;
}

struct Statistics {
  Tensor mean, rstd;  // with size 1 in the reduced dimensions
};
Statistics StatisticsOf(const Tensor& x, const Dims& dims, double eps) {
  const auto [var, mean] = ops::_var_mean(x, dims, 0.0, true);
  return {mean, ops::rsqrt(ops::add(var, Scalar(eps)))};
}

void CheckStatistics(const Tensor& running_mean, const Tensor& running_var, bool training) {
  MICA_CHECK(training || (running_mean.defined() && running_var.defined()),
             "Running statistics are not given; expected `running_mean` and `running_var` outside training.");
}

Tensor PerChannel(const Tensor& t, int64_t ndim) {
  Dims sizes(static_cast<size_t>(ndim), 1);
  sizes[1] = t.numel();
  return ops::reshape(t, sizes);
}

// What both gradients share: x is normalised to `hat` over `dims`.
Tensor NormalisedInputGrad(const Tensor& g, const Tensor& hat, const Tensor& rstd, const Dims& dims) {
  const Tensor mean_g = ops::mean(g, dims, true), mean_gh = ops::mean(ops::mul(g, hat), dims, true);
  return ops::mul(ops::sub(ops::sub(g, mean_g), ops::mul(hat, mean_gh)), rstd);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input, IntSpan normalized_shape,
                                                     const Tensor& weight, const Tensor& bias, double eps) {
  const Dims dims = TrailingDims(input, normalized_shape);
  const Tensor x = Cast(input, StatisticsDType(input.dtype()));
  const Statistics s = StatisticsOf(x, dims, eps);
  Tensor y = ops::mul(ops::sub(x, s.mean), s.rstd);
  if (weight.defined()) y = ops::mul(y, weight);
  if (bias.defined()) y = ops::add(y, bias);
  return {Cast(y, input.dtype()), s.mean, s.rstd};
}

std::tuple<Tensor, Tensor, Tensor> native_layer_norm_backward(const Tensor& grad_out, const Tensor& input,
                                                              IntSpan normalized_shape, const Tensor&,
                                                              const Tensor& rstd, const Tensor& weight,
                                                              const Tensor&, BoolSpan output_mask) {
  const Dims dims = TrailingDims(input, normalized_shape);
  const DType wide = StatisticsDType(input.dtype());
  const Tensor x = Cast(input, wide), g = Cast(grad_out, wide);
  // eps is not an argument: it follows from the saved deviation.
  const auto [var, mean] = ops::_var_mean(x, dims, 0.0, true);
  const Tensor eps = ops::detach(ops::sub(ops::reciprocal(ops::square(Cast(rstd, wide))), var));
  const Tensor deviation = ops::rsqrt(ops::add(var, eps));
  const Tensor hat = ops::mul(ops::sub(x, mean), deviation);
  Dims rows;
  for (int64_t d = 0; d < input.ndim() - normalized_shape.size(); ++d) rows.push_back(d);
  const auto over_rows = [&](const Tensor& t) { return rows.empty() ? t : ops::sum(t, rows, false); };
  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) {
    const Tensor scaled = weight.defined() ? ops::mul(g, weight) : g;
    grad_input = Cast(NormalisedInputGrad(scaled, hat, deviation, dims), input.dtype());
  }
  if (output_mask[1] && weight.defined()) grad_weight = Cast(over_rows(ops::mul(g, hat)), weight.dtype());
  if (output_mask[2]) grad_bias = Cast(over_rows(g), weight.defined() ? weight.dtype() : input.dtype());
  return {grad_input, grad_weight, grad_bias};
}

Tensor layer_norm(const Tensor& input, IntSpan normalized_shape, const Tensor& weight, const Tensor& bias,
                  double eps, bool) {
  return std::get<0>(ops::native_layer_norm(input, normalized_shape, weight, bias, eps));
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const Tensor& weight,
                                                     const Tensor& bias, const Tensor& running_mean,
                                                     const Tensor& running_var, bool training,
                                                     double momentum, double eps) {
  const int64_t n = input.ndim();
  MICA_CHECK(n >= 2, "Number of dimensions (", n, ") of `input` is below 2; expected batch and channels.");
  const Dims dims = AllButChannels(n);
  const Tensor x = Cast(input, StatisticsDType(input.dtype()));
  Tensor mean, rstd;
  if (training) {
    const auto [var, batch_mean] = ops::_var_mean(x, dims, 0.0, true);
    mean = batch_mean;
    rstd = ops::rsqrt(ops::add(var, Scalar(eps)));
    const double count = static_cast<double>(CountOver(input.sizes(), dims));
    if (running_mean.defined())
      ops::lerp_(running_mean, Cast(ops::reshape(ops::detach(mean), {-1}), running_mean.dtype()),
                 Scalar(momentum));
    if (running_var.defined()) {
      const Tensor unbiased = ops::mul(ops::reshape(ops::detach(var), {-1}), Scalar(count / (count - 1)));
      ops::lerp_(running_var, Cast(unbiased, running_var.dtype()), Scalar(momentum));
    }
  } else {
    CheckStatistics(running_mean, running_var, training);
    mean = PerChannel(running_mean, n);
    rstd = ops::rsqrt(ops::add(PerChannel(running_var, n), Scalar(eps)));
  }
  Tensor y = ops::mul(ops::sub(x, mean), rstd);
  if (weight.defined()) y = ops::mul(y, PerChannel(weight, n));
  if (bias.defined()) y = ops::add(y, PerChannel(bias, n));
  const Tensor nothing = ops::empty({0}, x.dtype(), std::nullopt, input.device());
  return {Cast(y, input.dtype()), training ? ops::reshape(mean, {-1}) : nothing,
          training ? ops::reshape(rstd, {-1}) : nothing};
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm_backward(
    const Tensor& grad_out, const Tensor& input, const Tensor& weight, const Tensor& running_mean,
    const Tensor& running_var, const Tensor&, const Tensor&, bool train, double eps, BoolSpan output_mask) {
  const int64_t n = input.ndim();
  MICA_CHECK(n >= 2, "Number of dimensions (", n, ") of `input` is below 2; expected batch and channels.");
  CheckStatistics(running_mean, running_var, train);
  const Dims dims = AllButChannels(n);
  const DType wide = StatisticsDType(input.dtype());
  const Tensor x = Cast(input, wide), g = Cast(grad_out, wide);
  const Statistics s = train ? StatisticsOf(x, dims, eps)
                             : Statistics{PerChannel(running_mean, n),
                                          ops::rsqrt(ops::add(PerChannel(running_var, n), Scalar(eps)))};
  const Tensor hat = ops::mul(ops::sub(x, s.mean), s.rstd);
  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) {
    const Tensor scaled = weight.defined() ? ops::mul(g, PerChannel(weight, n)) : g;
    grad_input = Cast(train ? NormalisedInputGrad(scaled, hat, s.rstd, dims) : ops::mul(scaled, s.rstd),
                      input.dtype());
  }
  const DType of_weight = weight.defined() ? weight.dtype() : input.dtype();
  if (output_mask[1]) grad_weight = Cast(ops::sum(ops::mul(g, hat), dims, false), of_weight);
  if (output_mask[2]) grad_bias = Cast(ops::sum(g, dims, false), of_weight);
  return {grad_input, grad_weight, grad_bias};
}

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, bool training, double momentum, double eps, bool) {
  MICA_CHECK(input.ndim() >= 2, "Number of dimensions (", input.ndim(),
             ") of `input` is below 2; expected batch and channels.");
  const int64_t channels = input.sizes()[1];
  for (const Tensor* t : {&weight, &bias, &running_mean, &running_var})
    MICA_CHECK(!t->defined() || t->numel() == channels, "Number of elements (", t->defined() ? t->numel() : 0,
               ") of an argument of batch_norm is not the number of channels (", channels, ").");
  return std::get<0>(
      ops::native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
}

Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                     double momentum, double eps, bool cudnn_enabled) {
  MICA_CHECK_IMPLEMENTED(!running_mean.defined() && !running_var.defined() && use_input_stats,
                         "Operator instance_norm with running statistics is not implemented.");
  MICA_CHECK(input.ndim() >= 3, "Number of dimensions (", input.ndim(), ") of `input` is below 3.");
  const int64_t batch = input.sizes()[0], channels = input.sizes()[1];
  Dims sizes = ToDims(input.sizes());
  sizes[0] = 1;
  sizes[1] = batch * channels;
  const auto tiled = [&](const Tensor& t) { return t.defined() ? ops::repeat(t, {batch}) : Tensor(); };
  const Tensor y = ops::batch_norm(ops::reshape(input, sizes), tiled(weight), tiled(bias), Tensor(), Tensor(),
                                   true, momentum, eps, cudnn_enabled);
  return ops::reshape(y, input.sizes());
}

Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                  double eps, bool) {
  MICA_CHECK(input.ndim() >= 2, "Number of dimensions (", input.ndim(),
             ") of `input` is below 2; expected batch and channels.");
  const int64_t batch = input.sizes()[0], channels = input.sizes()[1];
  MICA_CHECK(num_groups > 0 && channels % num_groups == 0, "Number of channels (", channels,
             ") is no multiple of the number of groups (", num_groups, ").");
  const Tensor groups = ops::reshape(input, {batch * num_groups, -1});
  Tensor y = ops::reshape(ops::layer_norm(groups, {groups.sizes()[1]}, Tensor(), Tensor(), eps, true),
                          input.sizes());
  if (weight.defined()) y = ops::mul(y, PerChannel(weight, input.ndim()));
  return bias.defined() ? ops::add(y, PerChannel(bias, input.ndim())) : y;
}

Tensor rms_norm(const Tensor& input, IntSpan normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  const Dims dims = TrailingDims(input, normalized_shape);
  const DType wide = StatisticsDType(input.dtype());
  const Tensor x = Cast(input, wide);
  const double least = eps.value_or(wide == DType::kF64 || wide == DType::kC128 ? 0x1p-52 : 0x1p-23);
  Tensor y = ops::mul(x, ops::rsqrt(ops::add(ops::mean(ops::square(x), dims, true), Scalar(least))));
  if (weight.defined()) y = ops::mul(y, weight);
  return Cast(y, input.dtype());
}

namespace {
void CheckProbability(double p) {
  MICA_CHECK(p >= 0 && p <= 1, "Probability `p` (", p, ") of dropout is not between 0 and 1.");
}
Tensor Dropped(const Tensor& input, double p, IntSpan noise_sizes) {
  if (p == 1) return ops::mul(input, ZerosLike(input, noise_sizes));
  const Tensor noise = ops::empty(noise_sizes, input.dtype(), std::nullopt, input.device());
  ops::op::bernoulli__float::call(noise, 1 - p, nullptr);
  return ops::mul(input, ops::div_(noise, Scalar(1 - p)));
}
}  // namespace

Tensor dropout(const Tensor& input, double p, bool train) {
  CheckProbability(p);
  if (p == 0 || !train || input.numel() == 0) return input;
  return Dropped(input, p, input.sizes());
}
Tensor feature_dropout(const Tensor& input, double p, bool train) {
  CheckProbability(p);
  if (p == 0 || !train || input.numel() == 0) return input;
  MICA_CHECK(input.ndim() >= 2, "Number of dimensions (", input.ndim(),
             ") of `input` is below 2; expected batch and channels.");
  Dims sizes(static_cast<size_t>(input.ndim()), 1);
  sizes[0] = input.sizes()[0];
  sizes[1] = input.sizes()[1];
  return Dropped(input, p, sizes);
}
std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, std::optional<bool> train) {
  CheckProbability(p);
  if (input.numel() == 0) return {input, ops::empty_like(input, DType::kBool)};
  if (train && !*train) return {ops::clone(input), ops::ones_like(input, DType::kBool)};
  const Tensor mask = ops::empty_like(input, DType::kBool);
  ops::op::bernoulli__float::call(mask, 1 - p, nullptr);
  const double scale = p == 1 ? 0.0 : 1 / (1 - p);
  return {ops::mul(ops::mul(input, mask), Scalar(scale)), mask};
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  const IntSpan dims(&dim, 1);
  const Dims shape = BroadcastShapes(x1.sizes(), x2.sizes(), "x1", "x2");
  const Tensor a = ops::expand(x1, shape), b = ops::expand(x2, shape);
  const Tensor length_a = ops::clamp_min(ops::_norm2(a, dims, true), Scalar(eps)),
               length_b = ops::clamp_min(ops::_norm2(b, dims, true), Scalar(eps));
  return ops::sum(ops::mul(ops::div(a, length_a), ops::div(b, length_b)), dims, false);
}
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  return ops::norm(ops::add(ops::sub(x1, x2), Scalar(eps)), std::optional<Scalar>(Scalar(p)), IntSpan({-1}),
                   keepdim);
}
Tensor normalize(const Tensor& self, double p, int64_t dim, double eps) {
  const Tensor length = ops::norm(self, std::optional<Scalar>(Scalar(p)), IntSpan(&dim, 1), true);
  return ops::div(self, ops::clamp_min(length, Scalar(eps)));
}

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
  MICA_CHECK_IMPLEMENTED(!enable_gqa,
                         "Operator scaled_dot_product_attention with grouped queries is not implemented.");
  MICA_CHECK(!(is_causal && attn_mask.defined()),
             "Both `attn_mask` and `is_causal` are given; expected one of the two.");
  const double factor = scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(-1))));
  Tensor scores = ops::matmul(ops::mul(query, Scalar(factor)), ops::transpose(key, -2, -1));
  Tensor mask = attn_mask;
  if (is_causal)
    mask =
        ops::tril(ops::ones({query.size(-2), key.size(-2)}, DType::kBool, std::nullopt, query.device()), 0);
  if (mask.defined())
    scores = mask.dtype() == DType::kBool
                 ? ops::masked_fill(scores, ops::logical_not(mask), Scalar(-INFINITY))
                 : ops::add(scores, mask);
  return ops::matmul(ops::dropout(ops::softmax(scores, -1), dropout_p, true), value);
}

}  // namespace mica::composite
