// Pooling over regions: weighted means (roi_align, ps_roi_align, ps_roi_pool) by the axis
// weights of regions.h, and maxima (roi_pool). Forward runs over regions in parallel,
// backward over channels, so that no two threads add to one place and the sum has one order.
#include "plugins/vision/pooling.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "plugins/vision/call.h"
#include "plugins/vision/regions.h"

namespace mica::vision {
namespace {

// A region with its bins worked out.
struct Region {
  int64_t image;
  Axis rows, columns;
};

int64_t ImageOf(double index, int64_t images) {
  MICA_PLUGIN_CHECK(index >= 0 && index < static_cast<double>(images), MICA_ERROR_INDEX,
                    "The image (" + std::to_string(index) + ") of a region of `rois` is out of range for (" +
                        std::to_string(images) + ") images.");
  return static_cast<int64_t>(index);
}

template <class T>
std::vector<Region> RegionsOf(const Grid& grid, const T* rois, int64_t count, int64_t images) {
  std::vector<Region> out;
  out.reserve(static_cast<size_t>(count));
  for (const T* r = rois; r != rois + 5 * count; r += 5)
    out.push_back({ImageOf(r[0], images), BinsOf(grid, 0, r[2], r[4]), BinsOf(grid, 1, r[1], r[3])});
  return out;
}

// What distinguishes the operators that take means.
struct MeansOp {
  const char* name;
  bool by_bin;  // whether each bin reads a channel of its own
  bool samples, says_aligned;
  double least_count;  // 0: an empty bin is 0 / 0, as torchvision has it
};
constexpr MeansOp kRoiAlign{"roi_align", false, true, true, 1},
    kPsRoiAlign{"ps_roi_align", true, true, false, 0}, kPsRoiPool{"ps_roi_pool", true, false, false, 1};

// The channel of the images that a bin of an output channel reads.
int64_t Source(const MeansOp& op, int64_t channel, int64_t bins, int64_t bin) {
  return op.by_bin ? channel * bins + bin : channel;
}

double Divisor(const MeansOp& op, const Region& r, size_t row, size_t column) {
  return std::max(r.rows.count[row] * r.columns.count[column], op.least_count);
}

struct Sizes {
  int64_t images, channels, height, width;
  int64_t plane() const { return height * width; }
};

// out (regions, channels out, bins) from images of `in`.
template <class T>
void Means(const std::vector<Region>& regions, const T* images, const Sizes& in, const Grid& grid,
           const MeansOp& op, T* out) {
  const int64_t bins = grid.bins[0] * grid.bins[1], channels = op.by_bin ? in.channels / bins : in.channels;
  Parallel(static_cast<int64_t>(regions.size()) * channels, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Region& region = regions[static_cast<size_t>(i / channels)];
      T* to = out + i * bins;
      for (int64_t bin = 0; bin < bins; ++bin) {
        const auto row = static_cast<size_t>(bin / grid.bins[1]),
                   column = static_cast<size_t>(bin % grid.bins[1]);
        const Weights &rows = region.rows.bins[row], &columns = region.columns.bins[column];
        const T* plane =
            images + (region.image * in.channels + Source(op, i % channels, bins, bin)) * in.plane();
        double sum = 0;
        for (size_t y = 0; y < rows.of.size(); ++y) {
          const T* line = plane + (rows.first + static_cast<int64_t>(y)) * in.width + columns.first;
          double part = 0;
          for (size_t x = 0; x < columns.of.size(); ++x) part += columns.of[x] * static_cast<double>(line[x]);
          sum += rows.of[y] * part;
        }
        to[bin] = static_cast<T>(sum / Divisor(op, region, row, column));
      }
    }
  });
}

// Adds the gradient of every bin to the places that it read.
template <class T>
void SpreadMeans(const std::vector<Region>& regions, const T* grad, const Sizes& in, const Grid& grid,
                 const MeansOp& op, T* out) {
  const int64_t bins = grid.bins[0] * grid.bins[1], channels = op.by_bin ? in.channels / bins : in.channels;
  Parallel(channels, [&](int64_t begin, int64_t end) {
    for (size_t r = 0; r < regions.size(); ++r)
      for (int64_t channel = begin; channel < end; ++channel)
        for (int64_t bin = 0; bin < bins; ++bin) {
          const Region& region = regions[r];
          const auto row = static_cast<size_t>(bin / grid.bins[1]),
                     column = static_cast<size_t>(bin % grid.bins[1]);
          const Weights &rows = region.rows.bins[row], &columns = region.columns.bins[column];
          T* plane = out + (region.image * in.channels + Source(op, channel, bins, bin)) * in.plane();
          const double share =
              static_cast<double>(grad[(static_cast<int64_t>(r) * channels + channel) * bins + bin]) /
              Divisor(op, region, row, column);
          for (size_t y = 0; y < rows.of.size(); ++y) {
            T* line = plane + (rows.first + static_cast<int64_t>(y)) * in.width + columns.first;
            for (size_t x = 0; x < columns.of.size(); ++x)
              line[x] += static_cast<T>(share * rows.of[y] * columns.of[x]);
          }
        }
  });
}

// roi_pool's bins along one axis: whole pixels, the last pixel of the region included.
struct Span {
  int64_t begin, end;
};
Span PixelsOf(const Grid& grid, int axis, double from, double to, int64_t bin) {
  MICA_PLUGIN_CHECK(std::isfinite(from) && std::isfinite(to), MICA_ERROR_VALUE,
                    "A region of `rois` has a coordinate that is not finite.");
  const double start = std::round(from * grid.scale), end = std::round(to * grid.scale);
  const double size = std::max(end - start + 1, 1.0) / static_cast<double>(grid.bins[axis]);
  const auto extent = static_cast<double>(grid.extent[axis]);
  const double low = std::floor(static_cast<double>(bin) * size) + start;
  const double high = std::ceil(static_cast<double>(bin + 1) * size) + start;
  return {static_cast<int64_t>(std::clamp(low, 0.0, extent)),
          static_cast<int64_t>(std::clamp(high, 0.0, extent))};
}

template <class T>
void Maxima(const Grid& grid, const T* rois, int64_t count, const T* images, const Sizes& in, T* out,
            int32_t* places) {
  for (int64_t r = 0; r < count; ++r) {
    const T* roi = rois + 5 * r;
    const int64_t image = ImageOf(roi[0], in.images);
    for (int64_t row = 0; row < grid.bins[0]; ++row)
      for (int64_t column = 0; column < grid.bins[1]; ++column) {
        const Span ys = PixelsOf(grid, 0, roi[2], roi[4], row),
                   xs = PixelsOf(grid, 1, roi[1], roi[3], column);
        const bool empty = ys.end <= ys.begin || xs.end <= xs.begin;
        for (int64_t channel = 0; channel < in.channels; ++channel) {
          const T* plane = images + (image * in.channels + channel) * in.plane();
          T best = empty ? T{0} : -std::numeric_limits<T>::max();
          int64_t place = -1;
          for (int64_t y = ys.begin; y < ys.end; ++y)
            for (int64_t x = xs.begin; x < xs.end; ++x)
              if (plane[y * in.width + x] > best) best = plane[place = y * in.width + x];
          const int64_t at = ((r * in.channels + channel) * grid.bins[0] + row) * grid.bins[1] + column;
          out[at] = best;
          places[at] = static_cast<int32_t>(place);
        }
      }
  }
}

Grid GridOf(Binning binning, double scale, const MicaValue* bins, int64_t height, int64_t width,
            int64_t sampling_ratio) {
  const int64_t rows = bins[0].u.i, columns = bins[1].u.i;
  MICA_PLUGIN_CHECK(
      rows > 0 && columns > 0, MICA_ERROR_VALUE,
      "The pooled size (" + std::to_string(rows) + ", " + std::to_string(columns) + ") is not positive.");
  return {binning, scale, {rows, columns}, {height, width}, sampling_ratio};
}

void CheckRois(TensorRef other, const char* name, TensorRef rois) {
  CheckDims(other, 4, name, "that of images; expected four dimensions");
  CheckDims(rois, 2, "rois", "that of regions; expected (regions, 5)");
  MICA_PLUGIN_CHECK(
      rois.size(1) == 5, MICA_ERROR_RUNTIME,
      "Shape " + SizesOf(rois) + " of `rois` is not (regions, 5); expected rows (image, x1, y1, x2, y2).");
  MICA_PLUGIN_CHECK(other.dtype() == rois.dtype(), MICA_ERROR_RUNTIME,
                    std::string("The dtype of `rois` differs from that of `") + name + "`.");
}

Binning BinningOf(const MeansOp& op, const MicaValue* aligned) {
  if (!op.samples) return Binning::kPixels;
  return op.says_aligned && !aligned->u.i ? Binning::kLegacySamples : Binning::kAlignedSamples;
}

// (input, rois, scale, rows, columns, [sampling_ratio], [aligned])
template <const MeansOp& kOp>
void MeansForward(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  const TensorRef input(args[0].u.tensor), rois(args[1].u.tensor);
  CheckRois(input, "input", rois);
  const Grid grid = GridOf(BinningOf(kOp, args + 6), args[2].u.f, args + 3, input.size(2), input.size(3),
                           kOp.samples ? args[5].u.i : 0);
  const Sizes in{input.size(0), input.size(1), input.size(2), input.size(3)};
  const int64_t bins = grid.bins[0] * grid.bins[1];
  MICA_PLUGIN_CHECK(!kOp.by_bin || in.channels % bins == 0, MICA_ERROR_RUNTIME,
                    "The number of channels (" + std::to_string(in.channels) +
                        ") of `input` is no multiple of the bins (" + std::to_string(bins) + ").");
  const int64_t channels = kOp.by_bin ? in.channels / bins : in.channels;
  const int32_t compute = ComputeType(input, kOp.name);
  const OwnedTensor images = Dense(args[0].u.tensor, compute), boxes = Dense(args[1].u.tensor, compute);
  OwnedTensor out = New({rois.size(0), channels, grid.bins[0], grid.bins[1]}, compute);
  VisitReal(compute, [&](auto zero) {
    using T = decltype(zero);
    const auto regions = RegionsOf(grid, TensorRef(boxes.get()).data<T>(), rois.size(0), in.images);
    Means(regions, TensorRef(images.get()).data<T>(), in, grid, kOp, TensorRef(out.get()).data<T>());
  });
  Give(results, std::move(out), input.dtype());
  if (!kOp.by_bin) return;
  OwnedTensor read = New({rois.size(0), channels, grid.bins[0], grid.bins[1]}, MICA_I32);
  auto* channel = TensorRef(read.get()).data<int32_t>();
  for (int64_t i = 0; i < rois.size(0) * in.channels; ++i) channel[i] = static_cast<int32_t>(i % in.channels);
  Give(results + 1, std::move(read), MICA_I32);
}

// (grad, rois, [channel_mapping], scale, rows, columns, [sampling_ratio], images, channels, height,
// width); roi_align's sampling_ratio and aligned come last.
template <const MeansOp& kOp>
void MeansBackward(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  const TensorRef grad(args[0].u.tensor), rois(args[1].u.tensor);
  CheckRois(grad, "grad_output", rois);
  const MicaValue* rest = args + (kOp.by_bin ? 3 : 2);
  const MicaValue* sizes = rest + (kOp.by_bin && kOp.samples ? 4 : 3);
  const MicaValue* ratio = kOp.by_bin ? rest + 3 : sizes + 4;
  const Sizes in{sizes[0].u.i, sizes[1].u.i, sizes[2].u.i, sizes[3].u.i};
  const Grid grid = GridOf(BinningOf(kOp, sizes + 5), rest[0].u.f, rest + 1, in.height, in.width,
                           kOp.samples ? ratio->u.i : 0);
  const int64_t bins = grid.bins[0] * grid.bins[1];
  MICA_PLUGIN_CHECK(
      grad.size(0) == rois.size(0) && grad.size(1) * (kOp.by_bin ? bins : 1) == in.channels &&
          grad.size(2) == grid.bins[0] && grad.size(3) == grid.bins[1],
      MICA_ERROR_RUNTIME,
      "Shape " + SizesOf(grad) + " of `grad_output` does not fit the regions and the pooled size.");
  const int32_t compute = ComputeType(grad, kOp.name);
  const OwnedTensor dense = Dense(args[0].u.tensor, compute), boxes = Dense(args[1].u.tensor, compute);
  OwnedTensor out = New({in.images, in.channels, in.height, in.width}, compute);
  VisitReal(compute, [&](auto zero) {
    using T = decltype(zero);
    T* to = TensorRef(out.get()).data<T>();
    std::fill(to, to + TensorRef(out.get()).numel(), T{0});
    const auto regions = RegionsOf(grid, TensorRef(boxes.get()).data<T>(), rois.size(0), in.images);
    SpreadMeans(regions, TensorRef(dense.get()).data<T>(), in, grid, kOp, to);
  });
  Give(results, std::move(out), grad.dtype());
}

// (input, rois, scale, rows, columns)
void RoiPool(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  const TensorRef input(args[0].u.tensor), rois(args[1].u.tensor);
  CheckRois(input, "input", rois);
  const Sizes in{input.size(0), input.size(1), input.size(2), input.size(3)};
  MICA_PLUGIN_CHECK(in.plane() <= std::numeric_limits<int32_t>::max(), MICA_ERROR_VALUE,
                    "Shape " + SizesOf(input) + " of `input` has planes too large for int32 indices.");
  const Grid grid = GridOf(Binning::kPixels, args[2].u.f, args + 3, in.height, in.width, 0);
  const int32_t compute = ComputeType(input, "roi_pool");
  const OwnedTensor images = Dense(args[0].u.tensor, compute), boxes = Dense(args[1].u.tensor, compute);
  OwnedTensor out = New({rois.size(0), in.channels, grid.bins[0], grid.bins[1]}, compute);
  OwnedTensor places = New({rois.size(0), in.channels, grid.bins[0], grid.bins[1]}, MICA_I32);
  VisitReal(compute, [&](auto zero) {
    using T = decltype(zero);
    Maxima(grid, TensorRef(boxes.get()).data<T>(), rois.size(0), TensorRef(images.get()).data<T>(), in,
           TensorRef(out.get()).data<T>(), TensorRef(places.get()).data<int32_t>());
  });
  Give(results, std::move(out), input.dtype());
  Give(results + 1, std::move(places), MICA_I32);
}

// (grad, rois, argmax, scale, rows, columns, images, channels, height, width)
void RoiPoolBackward(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  const TensorRef grad(args[0].u.tensor), rois(args[1].u.tensor), argmax(args[2].u.tensor);
  CheckRois(grad, "grad_output", rois);
  const Sizes in{args[6].u.i, args[7].u.i, args[8].u.i, args[9].u.i};
  const int64_t bins = grad.size(2) * grad.size(3);
  MICA_PLUGIN_CHECK(
      argmax.numel() == grad.numel() && grad.size(0) == rois.size(0) && grad.size(1) == in.channels,
      MICA_ERROR_RUNTIME, "Shape " + SizesOf(grad) + " of `grad_output` does not fit `rois` and `argmax`.");
  const int32_t compute = ComputeType(grad, "roi_pool");
  const OwnedTensor dense = Dense(args[0].u.tensor, compute), boxes = Dense(args[1].u.tensor, compute),
                    places = Dense(args[2].u.tensor, MICA_I32);
  OwnedTensor out = New({in.images, in.channels, in.height, in.width}, compute);
  VisitReal(compute, [&](auto zero) {
    using T = decltype(zero);
    T* to = TensorRef(out.get()).data<T>();
    std::fill(to, to + TensorRef(out.get()).numel(), T{0});
    const T *from = TensorRef(dense.get()).data<T>(), *rows = TensorRef(boxes.get()).data<T>();
    const auto* place = TensorRef(places.get()).data<int32_t>();
    for (int64_t i = 0; i < grad.numel(); ++i) {
      if (place[i] < 0) continue;
      MICA_PLUGIN_CHECK(place[i] < in.plane(), MICA_ERROR_INDEX, "A place of `argmax` is out of its plane.");
      const int64_t channel = i / bins % in.channels,
                    image = ImageOf(rows[i / bins / in.channels * 5], in.images);
      to[(image * in.channels + channel) * in.plane() + place[i]] += from[i];
    }
  });
  Give(results, std::move(out), grad.dtype());
}

}  // namespace

void RegisterPooling(const plugin::Registrar& registrar) {
  plugin::Registrar r(registrar);
  r.Boxed<&MeansForward<kRoiAlign>>("torchvision::roi_align");
  r.Boxed<&MeansBackward<kRoiAlign>>("torchvision::_roi_align_backward");
  r.Boxed<&MeansForward<kPsRoiAlign>>("torchvision::ps_roi_align");
  r.Boxed<&MeansBackward<kPsRoiAlign>>("torchvision::_ps_roi_align_backward");
  r.Boxed<&MeansForward<kPsRoiPool>>("torchvision::ps_roi_pool");
  r.Boxed<&MeansBackward<kPsRoiPool>>("torchvision::_ps_roi_pool_backward");
  r.Boxed<&RoiPool>("torchvision::roi_pool");
  r.Boxed<&RoiPoolBackward>("torchvision::_roi_pool_backward");
}

}  // namespace mica::vision
