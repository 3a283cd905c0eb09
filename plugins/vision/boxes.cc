// nms: boxes in the order of their scores; each that is kept drops those later ones whose
// intersection over union with it exceeds the threshold. Equal scores keep their order.
#include "plugins/vision/boxes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "plugins/vision/call.h"

namespace mica::vision {
namespace {

// The arithmetic is T's, as torchvision's is, so that a box at the threshold falls the same way.
template <class T>
std::vector<int64_t> Kept(const T* boxes, const T* scores, int64_t count, double threshold) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::isnan(scores[a]) ? !std::isnan(scores[b]) : scores[a] > scores[b];
  });
  std::vector<T> areas(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const T* b = boxes + 4 * i;
    areas[static_cast<size_t>(i)] = (b[2] - b[0]) * (b[3] - b[1]);
  }
  std::vector<char> dropped(static_cast<size_t>(count));
  std::vector<int64_t> kept;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto first = static_cast<size_t>(order[i]);
    if (dropped[first]) continue;
    kept.push_back(order[i]);
    const T* a = boxes + 4 * order[i];
    for (size_t j = i + 1; j < order.size(); ++j) {
      const auto second = static_cast<size_t>(order[j]);
      if (dropped[second]) continue;
      const T* b = boxes + 4 * order[j];
      const T width = std::max(T{0}, std::min(a[2], b[2]) - std::max(a[0], b[0]));
      const T height = std::max(T{0}, std::min(a[3], b[3]) - std::max(a[1], b[1]));
      const T shared = width * height;
      if (shared / (areas[first] + areas[second] - shared) > threshold) dropped[second] = 1;
    }
  }
  return kept;
}

void Nms(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  const TensorRef boxes(args[0].u.tensor), scores(args[1].u.tensor);
  CheckDims(boxes, 2, "dets", "that of boxes; expected (boxes, 4)");
  CheckDims(scores, 1, "scores", "that of scores; expected (boxes)");
  MICA_PLUGIN_CHECK(boxes.size(1) == 4, MICA_ERROR_RUNTIME,
                    "Shape " + SizesOf(boxes) + " of `dets` is not that of boxes; expected (boxes, 4).");
  MICA_PLUGIN_CHECK(boxes.size(0) == scores.size(0), MICA_ERROR_RUNTIME,
                    "The number of scores (" + std::to_string(scores.size(0)) +
                        ") differs from that of `dets` (" + std::to_string(boxes.size(0)) + ").");
  MICA_PLUGIN_CHECK(boxes.dtype() == scores.dtype(), MICA_ERROR_RUNTIME,
                    "torchvision::nms needs `dets` and `scores` of one dtype.");
  const int32_t compute = ComputeType(boxes, "nms");
  const OwnedTensor dense = Dense(args[0].u.tensor, compute), rank = Dense(args[1].u.tensor, compute);
  VisitReal(compute, [&](auto zero) {
    using T = decltype(zero);
    const std::vector<int64_t> kept =
        Kept(TensorRef(dense.get()).data<T>(), TensorRef(rank.get()).data<T>(), boxes.size(0), args[2].u.f);
    OwnedTensor out = New({static_cast<int64_t>(kept.size())}, MICA_I64);
    if (!kept.empty())
      std::memcpy(TensorRef(out.get()).data<void>(), kept.data(), kept.size() * sizeof(int64_t));
    Give(results, std::move(out), MICA_I64);
  });
}

}  // namespace

void RegisterBoxes(const plugin::Registrar& registrar) {
  plugin::Registrar(registrar).Boxed<&Nms>("torchvision::nms");
}

}  // namespace mica::vision
