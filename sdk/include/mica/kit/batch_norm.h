// native_batch_norm and its gradient in three kernels each, for devices that are wide: sums over pieces of
// the channels, what follows of them for each channel, and one pass that applies it.
//
// Takes inputs that lie densely, channels last or not. What these decline (other devices, layouts and dtypes,
// no elements) runs as the operators' decompositions. Statistics of half types are float32, also where those
// that are kept for the gradient are not. Sums are made in the same order every time.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <mica/kit/dense.h>
#include <mica/kit/normalization.h>

namespace mica {
namespace kit {
namespace batch_norm {

using normalization::DataOf;
using normalization::DtypeOrNone;
using normalization::Give;
using normalization::Rows;
using normalization::RunGroups;
using plugin::NotImplemented;
using plugin::OwnedTensor;
using plugin::TensorRef;

constexpr int64_t kMembers = 256;  // of a group
constexpr int64_t kAhead = 4;      // chunks that a work-item reads at once, AHEAD of the text
constexpr int64_t kFew = 8;        // FEW of the text
// Groups that sums and what is applied are split into: some waves of them on a large device.
constexpr int64_t kSumGroups = 1024, kApplyGroups = 4096;

// The channels of an input, and how groups share them (batch_norm.cl).
struct Channels {
  const Device& device;
  int32_t dtype, lane;
  int32_t format;  // of results
  bool planes, small;
  int64_t count, chunks = 1, total = 1;  // channels, chunks of a run and of a channel
  int chunk = 1, columns = 1;
  int64_t blocks = 1;

  Channels(const MicaCall* call, const MicaTensor* input) : device(DeviceOf(call)), dtype(DtypeOf(input)) {
    const TensorRef t(input);
    const bool is_known = t.contiguous() || t.channels_last();
    if (!device.is_wide || device.access_bytes == 0 || dtype < MICA_F16 || dtype > MICA_F64 || t.ndim() < 2 ||
        t.numel() == 0 || !is_known)
      throw NotImplemented();
    CheckDtype(device, dtype);
    lane = LaneDtype(dtype);
    format = t.contiguous() ? MICA_CONTIGUOUS : t.ndim() == 4 ? MICA_CHANNELS_LAST : MICA_CHANNELS_LAST_3D;
    count = t.size(1);
    small = t.numel() < (int64_t{1} << 30);
    const int64_t runs = t.size(0), area = t.numel() / (runs * count);
    planes = format == MICA_CONTIGUOUS && area > 1;
    const int most = std::max(1, device.access_bytes / BytesOf(dtype));
    while (chunk < most && (planes ? area : count) % (2 * chunk) == 0) chunk *= 2;
    chunks = planes ? area / chunk : 1;
    total = planes ? runs * chunks : runs * area;
    if (planes) {
      columns = kMembers;
      while (columns > 1 && kMembers / columns < total) columns /= 2;
    } else {
      while (columns < 32 && columns * chunk < count) columns *= 2;
    }
    const int64_t of_group = columns * OfItem();
    blocks = (count + of_group - 1) / of_group;
  }

  int OfItem() const { return planes ? 1 : chunk; }
  int64_t OfChunk() const { return planes ? chunk : 1; }

  // Chunks of a piece where there are about `groups` groups, and at least some for each work-item.
  int64_t Size(int64_t groups) const {
    const int64_t least = 2 * kAhead * (kMembers / columns);
    const int64_t pieces = std::max<int64_t>(1, std::min(groups / blocks, total / least));
    return (total + pieces - 1) / pieces;
  }
  int64_t Pieces(int64_t size) const { return (total + size - 1) / size; }
  void AddShape(Launch& launch, int64_t size) const {
    for (const int64_t value : {count, chunks, total, size, blocks}) launch.Index(value, small);
  }
  void Number(Launch& launch, double value) const {
    lane == MICA_F64 ? launch.Value(value) : launch.Value(static_cast<float>(value));
  }
  void RunPieces(Launch& launch, int64_t size) const { RunGroups(launch, blocks * Pieces(size), kMembers); }
  void RunFew(Launch& launch) const { RunGroups(launch, (count + kFew - 1) / kFew, kMembers); }

  // Declines a tensor that is not one number for each channel.
  void Expect(const MicaTensor* tensor) const {
    if (!tensor) return;
    const TensorRef t(tensor);
    if (t.dtype() < MICA_F16 || t.dtype() > lane || !t.contiguous() || t.numel() != count)
      throw NotImplemented();
  }
  Key KeyOf(const char* kind, bool training) const {
    Key key("batch_norm");
    key.Add(kind).Add(dtype).Add(planes).Add(chunk).Add(columns).Add(small).Add(training);
    return key;
  }
  std::string Text(bool training, const std::string& defines, const char* kernels) const {
    return LanesText(device, {lane, 1}, small) + Rows::Number("CHUNK", chunk) +
           Rows::Number("COLUMNS", columns) + Rows::Number("PLANES", planes) +
           Rows::Number("MEMBERS", static_cast<int>(kMembers)) + Rows::Number("TRAINING", training) +
           Rows::Element("INPUT", dtype) + defines + kReduceText + kBatchNormText + kernels;
  }
  OwnedTensor Vector(const MicaCall* call, int32_t of, int64_t length) const {
    return OwnedTensor::Empty(&length, 1, of, PlaceOf(call));
  }
};

// The arguments of native_batch_norm.
struct Batch {
  const MicaTensor *input, *weight, *bias, *mean, *var;  // mean and var: the running ones
  bool training;
  double momentum, eps;
};

struct Forward {
  const MicaCall* call;
  const Channels& channels;
  const Batch& batch;
  int32_t kept;  // the dtype of the statistics that are given back

  const Kernel& Find(const char* entry) const {
    // Outside training the running statistics are what is applied; in training, floats of the workspace.
    const int32_t lane = channels.lane, mean = DtypeOrNone(batch.mean), var = DtypeOrNone(batch.var);
    Key key = channels.KeyOf("forward", batch.training);
    key.Add(DtypeOrNone(batch.weight)).Add(DtypeOrNone(batch.bias)).Add(mean).Add(var).Add(kept);
    return FindKernel(channels.device, key, entry, call->name, [&] {
      const auto running = [&](const char* name, int32_t of) {
        return Rows::Element(name, of < 0 ? lane : of);
      };
      const std::string defines =
          Rows::Element("WEIGHT", DtypeOrNone(batch.weight)) +
          Rows::Element("BIAS", DtypeOrNone(batch.bias)) + Rows::Element("KEPT", kept) +
          running("RUNNING_MEAN", mean) + running("RUNNING_VAR", var) +
          running("MEAN", batch.training ? lane : mean) + running("VAR", batch.training ? lane : var) +
          (mean >= 0 ? Define("UPDATES_MEAN", "1") : "") + (var >= 0 ? Define("UPDATES_VAR", "1") : "");
      return channels.Text(batch.training, defines, kBatchNormForwardText);
    });
  }

  // Means and 1 / deviations as lanes into `statistics`, and as they are kept.
  void FindStatistics(char* statistics, const MicaTensor* kept_mean, const MicaTensor* kept_rstd) const {
    const int64_t size = channels.Size(kSumGroups), pieces = channels.Pieces(size);
    const Workspace partial(call, 2 * pieces * channels.count * BytesOf(channels.lane));
    {
      Launch launch(call, Find("statistics"));
      launch.Pointer(DataOf(batch.input));
      channels.AddShape(launch, size);
      launch.Pointer(partial.data());
      channels.RunPieces(launch, size);
    }
    Launch launch(call, Find("join_statistics"));
    launch.Pointer(partial.data());
    for (const int64_t value : {channels.count, channels.total, size, pieces})
      launch.Index(value, channels.small);
    channels.Number(launch, batch.eps);
    channels.Number(launch, batch.momentum);
    launch.Pointer(statistics).Pointer(statistics + channels.count * BytesOf(channels.lane));
    for (const MicaTensor* made : {kept_mean, kept_rstd, batch.mean, batch.var}) launch.Pointer(DataOf(made));
    channels.RunFew(launch);
  }

  void Normalize(const void* mean, const void* deviation, const MicaTensor* out) const {
    const int64_t size = channels.Size(kApplyGroups);
    Launch launch(call, Find("normalize"));
    launch.Pointer(DataOf(batch.input)).Pointer(mean).Pointer(deviation);
    launch.Pointer(DataOf(batch.weight)).Pointer(DataOf(batch.bias));
    channels.Number(launch, batch.eps);
    channels.AddShape(launch, size);
    launch.Pointer(DataOf(out));
    channels.RunPieces(launch, size);
  }
};

inline void NativeBatchNorm(const MicaCall* call, MicaTensor* input, MicaTensor* weight, MicaTensor* bias,
                            MicaTensor* running_mean, MicaTensor* running_var, int32_t training,
                            double momentum, double eps, MicaValue* results) {
  const Channels channels(call, input);
  int32_t kept = channels.dtype;
  for (const MicaTensor* given : {weight, bias, running_mean, running_var}) {
    channels.Expect(given);
    if (given && DtypeOf(given) != channels.dtype) kept = channels.lane;
  }
  if (!training && !(running_mean && running_var)) throw NotImplemented();
  const Batch batch{input, weight, bias, running_mean, running_var, training != 0, momentum, eps};
  const Forward forward{call, channels, batch, kept};
  const TensorRef x(input);
  OwnedTensor out = OwnedTensor::Empty(x.sizes(), x.ndim(), channels.dtype, PlaceOf(call), channels.format);
  const int64_t length = training ? channels.count : 0;
  OwnedTensor mean = channels.Vector(call, kept, length), rstd = channels.Vector(call, kept, length);
  if (training) {
    const int64_t bytes = channels.count * BytesOf(channels.lane);
    const Workspace statistics(call, 2 * bytes);
    char* const data = static_cast<char*>(statistics.data());
    forward.FindStatistics(data, mean.get(), rstd.get());
    forward.Normalize(data, data + bytes, out.get());
  } else {
    forward.Normalize(DataOf(running_mean), DataOf(running_var), out.get());
  }
  Give(&results[0], std::move(out));
  Give(&results[1], std::move(mean));
  Give(&results[2], std::move(rstd));
}

// What the gradient is made of; mean and deviation are those that were kept, or the running ones.
struct Backward {
  const MicaCall* call;
  const Channels& channels;
  const void* gradient;
  const MicaTensor *input, *weight, *mean, *deviation;
  bool training;
  double eps;
  int32_t parameter;  // the dtype of the parameters' gradients

  const Kernel& Find(const char* entry, bool wants_weight = false, bool wants_bias = false) const {
    // Statistics that were rounded when they were kept are found again.
    const bool rough = training && (DtypeOf(mean) != channels.lane || DtypeOf(deviation) != channels.lane);
    Key key = channels.KeyOf("backward", training);
    key.Add(DtypeOrNone(weight)).Add(DtypeOf(mean)).Add(DtypeOf(deviation)).Add(parameter);
    key.Add(wants_weight).Add(wants_bias);
    return FindKernel(channels.device, key, entry, call->name, [&] {
      const std::string defines =
          Rows::Element("WEIGHT", DtypeOrNone(weight)) + Rows::Element("MEAN", DtypeOf(mean)) +
          Rows::Element("VAR", DtypeOf(deviation)) + Rows::Element("PARAMETER", parameter) +
          Rows::Number("ROUGH", rough) + (wants_weight ? Define("WANTS_WEIGHT", "1") : "") +
          (wants_bias ? Define("WANTS_BIAS", "1") : "");
      return channels.Text(training, defines, kBatchNormBackwardText);
    });
  }

  // The parameters' gradients, where they are not NULL, and the coefficients of the input's.
  void AddUp(const MicaTensor* of_weight, const MicaTensor* of_bias, const void* coefficients) const {
    constexpr int64_t kMostSums = 4;
    const int64_t size = channels.Size(kSumGroups), pieces = channels.Pieces(size);
    const Workspace partial(call, kMostSums * pieces * channels.count * BytesOf(channels.lane));
    const bool wants_weight = of_weight != nullptr, wants_bias = of_bias != nullptr;
    {
      Launch launch(call, Find("gradient_sums", wants_weight, wants_bias));
      launch.Pointer(gradient).Pointer(DataOf(input)).Pointer(DataOf(mean));
      channels.AddShape(launch, size);
      launch.Pointer(partial.data());
      channels.RunPieces(launch, size);
    }
    Launch launch(call, Find("join_sums", wants_weight, wants_bias));
    launch.Pointer(partial.data());
    for (const int64_t value : {channels.count, channels.total, pieces}) launch.Index(value, channels.small);
    launch.Pointer(DataOf(mean)).Pointer(DataOf(deviation)).Pointer(DataOf(weight));
    channels.Number(launch, eps);
    launch.Pointer(DataOf(of_weight)).Pointer(DataOf(of_bias)).Pointer(coefficients);
    channels.RunFew(launch);
  }

  void Apply(const void* coefficients, const MicaTensor* out) const {
    const int64_t size = channels.Size(kApplyGroups);
    Launch launch(call, Find("input_gradient"));
    launch.Pointer(gradient).Pointer(DataOf(input)).Pointer(coefficients);
    channels.AddShape(launch, size);
    launch.Pointer(DataOf(out));
    channels.RunPieces(launch, size);
  }
};

inline void NativeBatchNormBackward(const MicaCall* call, MicaTensor* grad_out, MicaTensor* input,
                                    MicaTensor* weight, MicaTensor* running_mean, MicaTensor* running_var,
                                    MicaTensor* save_mean, MicaTensor* save_invstd, int32_t train, double eps,
                                    MicaBoolSpan output_mask, MicaValue* results) {
  const Channels channels(call, input);
  const TensorRef x(input), g(grad_out);
  const MicaTensor* mean = train ? save_mean : running_mean;
  const MicaTensor* deviation = train ? save_invstd : running_var;
  if (!mean || !deviation || g.dtype() != channels.dtype || g.ndim() != x.ndim() ||
      !std::equal(x.sizes(), x.sizes() + x.ndim(), g.sizes()))
    throw NotImplemented();
  for (const MicaTensor* given : {static_cast<const MicaTensor*>(weight), mean, deviation})
    channels.Expect(given);
  // A gradient of another order, or that was expanded, as that of a sum.
  const Dense gradient(call, grad_out, ImageStrides(g, g.ndim() - 2, channels.format != MICA_CONTIGUOUS));
  gradient.Read();
  const int32_t parameter = weight ? DtypeOf(weight) : channels.dtype;
  const Backward backward{call, channels,  gradient.data(), input, weight,
                          mean, deviation, train != 0,      eps,   parameter};
  OwnedTensor made[3];
  if (output_mask.data[0])
    made[0] = OwnedTensor::Empty(x.sizes(), x.ndim(), channels.dtype, PlaceOf(call), channels.format);
  for (int i : {1, 2})
    if (output_mask.data[i]) made[i] = channels.Vector(call, parameter, channels.count);
  const Workspace coefficients(call, 4 * channels.count * BytesOf(channels.lane));
  backward.AddUp(made[1].get(), made[2].get(), coefficients.data());
  if (made[0].get()) backward.Apply(coefficients.data(), made[0].get());
  for (int i = 0; i < 3; ++i) Give(&results[i], std::move(made[i]));
}

inline void RegisterBatchNorm(plugin::Registrar& registrar) {
  registrar.Kernel<&NativeBatchNorm>("native_batch_norm");
  registrar.Kernel<&NativeBatchNormBackward>("native_batch_norm_backward");
}

}  // namespace batch_norm
}  // namespace kit
}  // namespace mica
