// Axis weights of bins; samples follow torchvision's rules at the border: a sample further than
// one pixel outside counts as 0, a nearer one is moved to the edge.
#include "plugins/vision/regions.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <mica/plugin.h>

namespace mica::vision {
namespace {

void Add(Weights* w, int64_t place, double weight) {
  if (w->of.empty()) w->first = place;
  if (place < w->first) {  // of a region whose end lies before its start
    w->of.insert(w->of.begin(), static_cast<size_t>(w->first - place), 0.0);
    w->first = place;
  }
  const auto i = static_cast<size_t>(place - w->first);
  if (i >= w->of.size()) w->of.resize(i + 1);
  w->of[i] += weight;
}

// One bilinear sample at `at`, which lies in [-1, extent].
void Sample(Weights* w, double at, int64_t extent) {
  at = std::max(at, 0.0);
  auto low = static_cast<int64_t>(at);
  if (low >= extent - 1) return Add(w, extent - 1, 1);
  const double high = at - static_cast<double>(low);
  Add(w, low, 1 - high);
  Add(w, low + 1, high);
}

// `samples` samples, evenly, in each bin of `size` from `start` on.
Axis Samples(const Grid& grid, int axis, double start, double size) {
  const int64_t count = grid.bins[axis], extent = grid.extent[axis];
  const double bin = size / static_cast<double>(count);
  const double samples =
      grid.sampling_ratio > 0 ? static_cast<double>(grid.sampling_ratio) : std::max(std::ceil(bin), 0.0);
  Axis out;
  out.bins.resize(static_cast<size_t>(count));
  out.count.assign(static_cast<size_t>(count), samples);
  const double step = bin / samples;
  for (int64_t b = 0; b < count && samples > 0; ++b) {
    const double first = start + static_cast<double>(b) * bin;
    // Of a huge region only the samples inside of [-1, extent] are visited; one more at each end.
    double low = 0, high = samples - 1;
    if (step > 0) {
      low = std::max(low, std::floor((-1 - first) / step) - 2);
      high = std::min(high, std::ceil((static_cast<double>(extent) - first) / step) + 1);
    }
    for (double i = low; i <= high; ++i) {
      const double at = first + (i + 0.5) * step;
      if (at >= -1 && at <= static_cast<double>(extent))
        Sample(&out.bins[static_cast<size_t>(b)], at, extent);
    }
  }
  return out;
}

// Whole pixels: each bin from the floor of its begin to the ceiling of its end. As in torchvision,
// the last row and column of the image belong to no bin.
Axis Pixels(const Grid& grid, int axis, double start, double size) {
  const int64_t count = grid.bins[axis];
  const double last = std::max(static_cast<double>(grid.extent[axis] - 1), 0.0);
  const double bin = size / static_cast<double>(count);
  Axis out;
  for (int64_t b = 0; b < count; ++b) {
    const double begin = std::clamp(std::floor(static_cast<double>(b) * bin) + start, 0.0, last);
    const double end = std::clamp(std::ceil(static_cast<double>(b + 1) * bin) + start, 0.0, last);
    Weights w;
    w.first = static_cast<int64_t>(begin);
    w.of.assign(static_cast<size_t>(std::max(end - begin, 0.0)), 1.0);
    out.count.push_back(static_cast<double>(w.of.size()));
    out.bins.push_back(std::move(w));
  }
  return out;
}

}  // namespace

Axis BinsOf(const Grid& grid, int axis, double from, double to) {
  MICA_PLUGIN_CHECK(std::isfinite(from) && std::isfinite(to), MICA_ERROR_VALUE,
                    "A region of `rois` has the coordinates (" + std::to_string(from) + ", " +
                        std::to_string(to) + "); expected finite numbers.");
  if (grid.binning == Binning::kPixels) {
    const double start = std::round(from * grid.scale), end = std::round(to * grid.scale);
    return Pixels(grid, axis, start, std::max(end - start, 1.0));
  }
  const double offset = grid.binning == Binning::kAlignedSamples ? 0.5 : 0.0;
  const double start = from * grid.scale - offset, size = to * grid.scale - offset - start;
  return Samples(grid, axis, start, grid.binning == Binning::kLegacySamples ? std::max(size, 1.0) : size);
}

}  // namespace mica::vision
