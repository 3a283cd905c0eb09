// Operators on images: the batch joins the images' own, or stands for it.
#include "keys/batched/batched.h"
#include "keys/batched/ops.h"

namespace mica::batched {
namespace {

// Dimension 0 of (B, N, C, ...) joins 2: (N, B * C, ...).
Tensor IntoChannels(const Tensor& t) {
  CheckNotEmpty(t.sizes()[0]);
  const Tensor moved = ops::movedim(t, 0, 1);
  Dims sizes = {moved.sizes()[0], moved.sizes()[1] * moved.sizes()[2]};
  sizes.insert(sizes.end(), moved.sizes().begin() + 3, moved.sizes().end());
  return ops::reshape(moved, sizes);
}

// (N, B * C, ...) back to (B, N, C, ...).
Tensor OutOfChannels(const Tensor& t, int64_t size) {
  Dims sizes = {t.sizes()[0], size, t.sizes()[1] / size};
  sizes.insert(sizes.end(), t.sizes().begin() + 2, t.sizes().end());
  return ops::movedim(ops::reshape(t, sizes), 1, 0);
}

Dims IntsAt(const Call& call, std::string_view name) {
  const MicaIntSpan ints = call[call.Find(name)].u.ints;
  return Dims(ints.data, ints.data + ints.size);
}

void ScaleGroups(Call& call) {
  const int64_t groups = call.Find("groups");
  call.SetInt(groups, call[groups].u.i * call.batch());
}

// Rank of an operator's images with their own batch: 4 where the kernel has two sizes.
int64_t ImageRank(const Op& op) { return op.name().find("3d") != std::string_view::npos ? 5 : 4; }

}  // namespace

bool Images(Call& call) {
  const int64_t rank = call.PartAt(0).rank, size = call.batch();
  const bool columns = call.op().name() == "mica::col2im";
  const int64_t with_batch = columns ? 3 : ImageRank(call.op());
  if (rank != with_batch && rank != with_batch - 1) return false;
  const bool fold = rank == with_batch;
  for (int64_t i = 0; i < call.size(); ++i) {
    if (!call.IsTensor(i)) continue;
    const Tensor whole = WithBatch(call.PartAt(i), size);
    call.Set(i, fold ? Fold(whole) : whole);
  }
  return call.Run([&](Tensor t) { return fold ? Unfold(t, size) : t; });
}

// Of images that always have a batch of their own. Sizes among the arguments count it.
bool Folded(Call& call) {
  const int64_t size = call.batch(), sizes_at = call.Find("sizes");
  for (int64_t i = 0; i < call.size(); ++i) {
    for (const Part& p : call.PartsAt(i))
      if (p.batched) return false;
    if (call.IsTensor(i)) call.Set(i, Fold(WithBatch(call.PartAt(i), size)));
  }
  if (sizes_at >= 0) {
    Dims sizes = IntsAt(call, "sizes");
    sizes[0] *= size;
    call.SetInts(sizes_at, std::move(sizes));
  }
  return call.Run([&](Tensor t) { return Unfold(t, size); });
}

bool Convolution(Call& call) {
  const Part input = call.PartAt(0), weight = call.PartAt(1), bias = call.PartAt(2);
  const int64_t size = call.batch();
  if (!weight.batched && !bias.batched) {
    call.Set(0, Fold(input.value));
    return call.Run([&](Tensor t) { return Unfold(t, size); });
  }
  call.Set(0, IntoChannels(WithBatch(input, size)));
  call.Set(1, Fold(WithBatch(weight, size)));
  if (bias.value.defined()) call.Set(2, Fold(WithBatch(bias, size)));
  ScaleGroups(call);
  return call.Run([&](Tensor t) { return OutOfChannels(t, size); });
}

bool ConvolutionBackwardInput(Call& call) {
  const Part grad = call.PartAt(0), weight = call.PartAt(1);
  const int64_t size = call.batch(), at = call.Find("input_sizes");
  Dims sizes = IntsAt(call, "input_sizes");
  if (!weight.batched) {
    sizes[0] *= size;
    call.Set(0, Fold(grad.value));
    call.SetInts(at, std::move(sizes));
    return call.Run([&](Tensor t) { return Unfold(t, size); });
  }
  sizes[1] *= size;
  call.Set(0, IntoChannels(WithBatch(grad, size)));
  call.Set(1, Fold(weight.value));
  call.SetInts(at, std::move(sizes));
  ScaleGroups(call);
  return call.Run([&](Tensor t) { return OutOfChannels(t, size); });
}

bool ConvolutionBackwardWeight(Call& call) {
  const int64_t size = call.batch();
  Dims sizes = IntsAt(call, "weight_sizes");
  sizes[0] *= size;
  call.Set(0, IntoChannels(WithBatch(call.PartAt(0), size)));
  call.Set(1, IntoChannels(WithBatch(call.PartAt(1), size)));
  call.SetInts(call.Find("weight_sizes"), std::move(sizes));
  ScaleGroups(call);
  return call.Run([&](Tensor t) { return Unfold(t, size); });
}

}  // namespace mica::batched
