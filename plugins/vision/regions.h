// Regions of images and their bins, as weights along each axis.
//
// Sampling and averaging are separable: a bin's value is the sum over rows y and columns x
// of rows[y] * columns[x] * image(y, x), divided by a count. So the bins of a region
// along one axis are a few adjacent weights each, whatever the number of samples,
// and one loop serves roi_align, ps_roi_align and ps_roi_pool, both ways.
#ifndef MICA_PLUGINS_VISION_REGIONS_H_
#define MICA_PLUGINS_VISION_REGIONS_H_

#include <cstdint>
#include <vector>

namespace mica::vision {

// How a region becomes bins.
enum class Binning {
  kLegacySamples,   // roi_align with aligned=False: regions of at least one pixel
  kAlignedSamples,  // roi_align with aligned=True and ps_roi_align: moved by half a pixel
  kPixels,          // ps_roi_pool: whole pixels
};

// What is the same for all regions of a call.
struct Grid {
  Binning binning;
  double scale;
  int64_t bins[2], extent[2];  // height, width
  int64_t sampling_ratio;
};

// Weights of the places first, first + 1, .. of one axis.
struct Weights {
  int64_t first = 0;
  std::vector<double> of;
};

// One axis of a region: the weights of each bin, and the count that a bin's sum is divided by.
struct Axis {
  std::vector<Weights> bins;
  std::vector<double> count;
};

// The bins between two box coordinates; axis 0 is y. Throws where a coordinate is not finite.
Axis BinsOf(const Grid& grid, int axis, double from, double to);

}  // namespace mica::vision

#endif  // MICA_PLUGINS_VISION_REGIONS_H_
