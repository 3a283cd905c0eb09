// Batch normalisation and its gradient: two passes for the statistics and one to
// normalise, over the channels that a thread has, so that a channel of ordinary size
// is read from memory once.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>

#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/normalization/channels.h"
#include "plugins/cpu/normalization/normalization.h"
#include "plugins/cpu/normalization/vectors.h"

namespace mica::cpu {
namespace {

using plugin::OwnedTensor;
using plugin::TensorRef;

// Elements that make a second thread worth waking.
constexpr int64_t kGrain = 16384;

ChannelLayout LayoutOf(const TensorRef& t, bool channels_last) {
  ChannelLayout l{t.size(0), t.size(1), 1};
  for (int32_t d = 2; d < t.ndim(); ++d) l.inner *= t.size(d);
  if (channels_last) l = {l.outer * l.inner, l.channels, 1};
  return l;
}

// A batch as the loops take it: its own memory where channels are adjacent and the
// dtype fits, a row-major copy otherwise.
struct BatchInput {
  const void* data;
  std::optional<DenseInput> dense;
  BatchInput(const MicaTensor* tensor, bool channels_last, int32_t dtype, int32_t threads) {
    if (channels_last)
      data = TensorRef(tensor).data<void>();
    else
      data = dense.emplace(tensor, dtype, threads).data<void>();
  }
};

// The format of a result or gradient is that of the input.
int32_t FormatOf(const TensorRef& t) {
  if (!t.channels_last() || t.contiguous()) return MICA_CONTIGUOUS;
  return t.ndim() == 4 ? MICA_CHANNELS_LAST : MICA_CHANNELS_LAST_3D;
}

bool AdjacentChannels(const TensorRef& t, int32_t dtype) {
  return FormatOf(t) != MICA_CONTIGUOUS && t.dtype() == dtype;
}

void CheckBatch(const TensorRef& input) {
  MICA_PLUGIN_CHECK(input.ndim() >= 2, MICA_ERROR_RUNTIME,
                    "Number of dimensions (" + std::to_string(input.ndim()) +
                        ") of `input` is below 2; expected batch, channels and space.");
}

// As torch: statistics have the dtype of the input, or float32 where a half-typed input
// meets float32 parameters.
int32_t StatisticsDtype(const TensorRef& input, std::initializer_list<const MicaTensor*> parameters) {
  for (const MicaTensor* p : parameters)
    if (p && TensorRef(p).dtype() == MICA_F32) return MICA_F32;
  return input.dtype();
}

struct Statistics {
  std::vector<double> mean, deviation;  // deviation: 1 / sqrt(variance + eps)
};

template <class T>
void Forward(const T* x, T* y, const ChannelLayout& l, const std::vector<double>& weight,
             const std::vector<double>& bias, Statistics& s, bool training, double eps,
             std::vector<double>& variance, int32_t threads) {
  const ChannelLoops<T>& loops = BestChannelLoops<T>();
  const auto count = static_cast<double>(l.per_channel());
  std::vector<T> center(weight.size()), scale(weight.size()), shift(weight.size());
  ParallelFor(l.channels, std::max<int64_t>(1, kGrain / (l.per_channel() + 1)), 1, threads,
              [&](int64_t begin, int64_t end) {
                if (training) {
                  loops.sum(l, begin, end, x, s.mean.data());
                  for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c)
                    center[c] = static_cast<T>(s.mean[c] /= count);
                  loops.squares(l, begin, end, x, center.data(), variance.data());
                  for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c)
                    variance[c] /= count;
                }
                for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c) {
                  s.deviation[c] = 1 / std::sqrt(variance[c] + eps);
                  scale[c] = static_cast<T>(weight[c] * s.deviation[c]);
                  shift[c] = static_cast<T>(bias[c] - s.mean[c] * weight[c] * s.deviation[c]);
                }
                loops.scale(l, begin, end, x, scale.data(), shift.data(), y);
              });
}

struct Gradients {
  std::vector<double> weight, bias;
};

// With x' = (x - mean) * deviation: the gradients of weight and bias are the sums of
// grad * x' and of grad, and that of x is
// weight * deviation * (grad - mean(grad) - x' * mean(grad * x')), where the means
// stay out when the statistics were given.
template <class T>
void Backward(const T* grad, const T* x, T* dx, const ChannelLayout& l, const std::vector<double>& weight,
              const Statistics& s, bool training, Gradients& g, int32_t threads) {
  const ChannelLoops<T>& loops = BestChannelLoops<T>();
  const auto count = static_cast<double>(l.per_channel());
  std::vector<T> center(weight.size()), of_grad(weight.size()), of_x(weight.size()), constant(weight.size());
  ParallelFor(l.channels, std::max<int64_t>(1, kGrain / (l.per_channel() + 1)), 1, threads,
              [&](int64_t begin, int64_t end) {
                for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c)
                  center[c] = static_cast<T>(s.mean[c]);
                loops.gradients(l, begin, end, grad, x, center.data(), g.bias.data(), g.weight.data());
                for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c) {
                  g.weight[c] *= s.deviation[c];
                  const double scale = weight[c] * s.deviation[c];
                  const double slope = training ? -scale * g.weight[c] / count * s.deviation[c] : 0;
                  of_grad[c] = static_cast<T>(scale);
                  of_x[c] = static_cast<T>(slope);
                  constant[c] = static_cast<T>(training ? -scale * g.bias[c] / count : 0);
                }
                if (dx)
                  loops.input(l, begin, end, grad, x, center.data(), of_grad.data(), of_x.data(),
                              constant.data(), dx);
              });
}

void UpdateRunning(MicaTensor* running, const std::vector<double>& now, double momentum, double factor) {
  if (!running) return;
  std::vector<double> values = LoadVector(running, static_cast<int64_t>(now.size()), 0, "running statistics");
  for (size_t c = 0; c < values.size(); ++c)
    values[c] = (1 - momentum) * values[c] + momentum * factor * now[c];
  StoreVector(values, running);
}

}  // namespace

void NativeBatchNorm(const MicaCall* call, MicaTensor* input, MicaTensor* weight, MicaTensor* bias,
                     MicaTensor* running_mean, MicaTensor* running_var, int32_t training, double momentum,
                     double eps, MicaValue* results) {
  const TensorRef in(input);
  CheckBatch(in);
  const int32_t dtype = NormalizationDtype(in), threads = ThreadsOf(call);
  const bool last = AdjacentChannels(in, dtype);
  const ChannelLayout l = LayoutOf(in, last);
  MICA_PLUGIN_CHECK(
      training || (running_mean && running_var), MICA_ERROR_RUNTIME,
      "Batch normalisation outside training needs `running_mean` and `running_var`, and one is None.");
  const std::vector<double> w = LoadVector(weight, l.channels, 1, "weight"),
                            b = LoadVector(bias, l.channels, 0, "bias");
  std::vector<double> variance(w.size());
  Statistics s{std::vector<double>(w.size()), std::vector<double>(w.size())};
  if (!training) {
    s.mean = LoadVector(running_mean, l.channels, 0, "running_mean");
    variance = LoadVector(running_var, l.channels, 1, "running_var");
  }
  OwnedTensor out = OwnedTensor::Empty(in.sizes(), in.ndim(), in.dtype(), MicaDevice{0, 0}, FormatOf(in));
  if (in.numel() > 0) {
    const BatchInput x(input, last, dtype, threads);
    std::optional<DenseOutput> dense;
    void* y =
        last ? TensorRef(out.get()).data<void>() : dense.emplace(out.get(), dtype, threads).data<void>();
    const auto run = [&](auto unit) {
      using T = decltype(unit);
      Forward(static_cast<const T*>(x.data), static_cast<T*>(y), l, w, b, s, training != 0, eps, variance,
              threads);
    };
    if (dtype == MICA_F32)
      run(float{});
    else
      run(double{});
    if (dense) dense->Finish();
  }
  if (training && l.per_channel() > 0) {
    const auto count = static_cast<double>(l.per_channel());
    UpdateRunning(running_mean, s.mean, momentum, 1);
    UpdateRunning(running_var, variance, momentum, count / (count - 1));
  }
  if (!training) s = {};
  GiveResult(&results[0], std::move(out));
  const int32_t kept =
      dtype == MICA_F64 ? dtype : StatisticsDtype(in, {weight, bias, running_mean, running_var});
  GiveResult(&results[1], NewVector(s.mean, kept));
  GiveResult(&results[2], NewVector(s.deviation, kept));
}

void NativeBatchNormBackward(const MicaCall* call, MicaTensor* grad_out, MicaTensor* input,
                             MicaTensor* weight, MicaTensor* running_mean, MicaTensor* running_var,
                             MicaTensor* save_mean, MicaTensor* save_invstd, int32_t train, double eps,
                             MicaBoolSpan output_mask, MicaValue* results) {
  const TensorRef in(input), grad(grad_out);
  CheckBatch(in);
  MICA_PLUGIN_CHECK(grad.ndim() == in.ndim() && std::equal(in.sizes(), in.sizes() + in.ndim(), grad.sizes()),
                    MICA_ERROR_RUNTIME, "The shape of `grad_out` differs from that of `input`.");
  const int32_t dtype = NormalizationDtype(in), threads = ThreadsOf(call);
  const bool last = AdjacentChannels(in, dtype) && AdjacentChannels(grad, dtype);
  const ChannelLayout l = LayoutOf(in, last);
  const std::vector<double> w = LoadVector(weight, l.channels, 1, "weight");
  Statistics s;
  if (train) {
    s = {LoadVector(save_mean, l.channels, 0, "save_mean"),
         LoadVector(save_invstd, l.channels, 1, "save_invstd")};
  } else {
    s = {LoadVector(running_mean, l.channels, 0, "running_mean"),
         LoadVector(running_var, l.channels, 1, "running_var")};
    for (double& v : s.deviation) v = 1 / std::sqrt(v + eps);
  }
  Gradients g{std::vector<double>(w.size()), std::vector<double>(w.size())};
  OwnedTensor out;
  if (output_mask.data[0])
    out = OwnedTensor::Empty(in.sizes(), in.ndim(), in.dtype(), MicaDevice{0, 0}, FormatOf(in));
  if (in.numel() > 0) {
    const BatchInput x(input, last, dtype, threads), dy(grad_out, last, dtype, threads);
    std::optional<DenseOutput> dense;
    void* dx = nullptr;
    if (out.get())
      dx = last ? TensorRef(out.get()).data<void>() : dense.emplace(out.get(), dtype, threads).data<void>();
    const auto run = [&](auto unit) {
      using T = decltype(unit);
      Backward(static_cast<const T*>(dy.data), static_cast<const T*>(x.data), static_cast<T*>(dx), l, w, s,
               train != 0, g, threads);
    };
    if (dtype == MICA_F32)
      run(float{});
    else
      run(double{});
    if (dense) dense->Finish();
  }
  const int32_t of_weight = weight ? TensorRef(weight).dtype() : dtype;
  GiveResult(&results[0], std::move(out));
  GiveResult(&results[1], output_mask.data[1] ? NewVector(g.weight, of_weight) : OwnedTensor());
  GiveResult(&results[2], output_mask.data[2] ? NewVector(g.bias, of_weight) : OwnedTensor());
}

}  // namespace mica::cpu
