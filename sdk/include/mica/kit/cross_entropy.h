// _cross_entropy_of_logits and its gradient in one pass each, for devices that are wide.
//
// The log-probabilities are never written: forward leaves each row's greatest element and the
// logarithm of its sum (apart: their sum would round), from which backward makes them again. Half types
// compute in float32. What these decline (other devices, layouts and dtypes, shapes that do not fit) runs as
// the operators' decompositions, which also tell what is wrong.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include <mica/kit/loss.h>
#include <mica/kit/normalization.h>

namespace mica {
namespace kit {
namespace loss {

using normalization::DataOf;
using plugin::OwnedTensor;

constexpr int kLanesAtOnce = 16;   // elements that a member has on their way at a time
constexpr int64_t kTeam = 256;     // members of a row's team where rows fill the device
constexpr int64_t kAdders = 1024;  // items that add up the rows

// Rows of logits, and the classes and weights that belong to them.
struct Logits {
  normalization::Rows rows;
  const MicaTensor *target, *weight;

  Logits(const MicaCall* call, const MicaTensor* self, const MicaTensor* target_, const MicaTensor* weight_)
      : rows(call, self, {self->dl.shape + std::max(0, self->dl.ndim - 1), 1}, 1, true),
        target(target_),
        weight(weight_) {
    const TensorRef classes(target);
    if (self->dl.ndim != 2 || classes.ndim() != 1 || classes.size(0) != rows.count ||
        rows.length >= (1 << 30))
      throw plugin::NotImplemented();
    CheckTypes(TensorRef(self), classes, weight);
    if (weight && (TensorRef(weight).ndim() != 1 || TensorRef(weight).size(0) != rows.length))
      throw plugin::NotImplemented();
    if (rows.team > kTeam && rows.count * kTeam >= normalization::kItems) rows.team = kTeam;
    rows.group = std::max(128, rows.team);
    rows.parts = 0;
    rows.fold = 1;
    while (rows.fold * rows.fold < rows.team) rows.fold *= 2;
  }
  // One text has all three kernels.
  const Kernel& Find(const MicaCall* call, const char* entry) const {
    return FindKernel(rows.device, rows.KeyOf("cross_entropy"), entry, call->name, [&] {
      return rows.Text(normalization::Rows::Number("AT_ONCE", std::max(1, kLanesAtOnce / rows.chunk)) +
                           normalization::Rows::Number("ADDERS", kAdders),
                       kCrossEntropyText);
    });
  }
  void AddTo(Launch& launch) const {
    launch.Pointer(DataOf(target)).Value<int64_t>(StrideOf(TensorRef(target)));
    launch.Pointer(DataOf(weight)).Value<int64_t>(weight ? StrideOf(TensorRef(weight)) : 0);
    normalization::AddIndices(launch, rows, {rows.count, rows.length, rows.stride});
  }
};

inline void CrossEntropyOfLogits(const MicaCall* call, MicaTensor* self, MicaTensor* target,
                                 MicaTensor* weight, int64_t reduction, int64_t ignore_index,
                                 MicaValue* results) {
  const Logits logits(call, self, target, weight);
  const normalization::Rows& rows = logits.rows;
  const bool reduces = reduction != 0;
  OwnedTensor out = OwnedTensor::Empty(&rows.count, reduces ? 0 : 1, rows.dtype, PlaceOf(call));
  OwnedTensor total = OwnedTensor::Empty(nullptr, 0, rows.lane, PlaceOf(call));
  const int64_t sizes[] = {2, rows.count};
  OwnedTensor normalizers = OwnedTensor::Empty(sizes, 2, rows.lane, PlaceOf(call));
  std::optional<Workspace> losses;
  if (reduces) losses.emplace(call, 2 * rows.count * BytesOf(rows.lane));
  const Raise raise(call, ClassOutOfBounds(rows.length));
  {
    Launch launch(call, logits.Find(call, "cross_entropy"));
    launch.Pointer(DataOf(self));
    logits.AddTo(launch);
    launch.Value(static_cast<int32_t>(reduction)).Value<int64_t>(ignore_index);
    for (const OwnedTensor* made : {&out, &total, &normalizers}) launch.Pointer(DataOf(made->get()));
    launch.Pointer(losses ? losses->data() : nullptr).Pointer(raise.word());
    normalization::RunGroups(launch, rows.Groups(), rows.group);
  }
  if (reduces) {
    Launch launch(call, logits.Find(call, "add_rows"));
    launch.Pointer(losses->data());
    normalization::AddIndices(launch, rows, {rows.count});
    launch.Value(static_cast<int32_t>(reduction)).Pointer(DataOf(out.get())).Pointer(DataOf(total.get()));
    normalization::RunGroups(launch, 1, kAdders);
  }
  raise.Check();
  normalization::Give(&results[0], std::move(out));
  normalization::Give(&results[1], std::move(total));
  normalization::Give(&results[2], std::move(normalizers));
}

inline MicaTensor* CrossEntropyOfLogitsBackward(const MicaCall* call, MicaTensor* grad_output,
                                                MicaTensor* self, MicaTensor* target, MicaTensor* weight,
                                                int64_t reduction, int64_t ignore_index,
                                                MicaTensor* total_weight, MicaTensor* normalizers) {
  const Logits logits(call, self, target, weight);
  const normalization::Rows& rows = logits.rows;
  const TensorRef grad(grad_output);
  if (grad.dtype() != rows.dtype || grad.numel() != (reduction == 0 ? rows.count : 1) ||
      DtypeOf(total_weight) != rows.lane || DtypeOf(normalizers) != rows.lane)
    throw plugin::NotImplemented();
  rows.Expect(total_weight, 1);
  rows.Expect(normalizers, 2 * rows.count);
  OwnedTensor out = normalization::Like(call, self);
  Launch launch(call, logits.Find(call, "cross_entropy_backward"));
  launch.Pointer(DataOf(grad_output)).Value<int64_t>(StrideOf(grad)).Pointer(DataOf(self));
  logits.AddTo(launch);
  launch.Value(static_cast<int32_t>(reduction)).Value<int64_t>(ignore_index);
  launch.Pointer(DataOf(total_weight)).Pointer(DataOf(normalizers)).Pointer(DataOf(out.get()));
  normalization::RunGroups(launch, rows.Groups(), rows.group);
  return out.release();
}

inline void RegisterCrossEntropy(plugin::Registrar& registrar) {
  registrar.Kernel<&CrossEntropyOfLogits>("_cross_entropy_of_logits");
  registrar.Kernel<&CrossEntropyOfLogitsBackward>("_cross_entropy_of_logits_backward");
}

}  // namespace loss
}  // namespace kit
}  // namespace mica
