// The transforms of winograd.h, for each instruction set. Channels are the lanes: a
// tile is pixels of `channels` adjacent floats, a transformed tile 36 vectors of them,
// `plane` floats apart. Channels come in multiples of 8.
#ifndef MICA_PLUGINS_CPU_CONVOLUTION_WINOGRAD_TRANSFORMS_H_
#define MICA_PLUGINS_CPU_CONVOLUTION_WINOGRAD_TRANSFORMS_H_

#include <cstdint>

namespace mica::cpu {

inline constexpr int64_t kWinogradPlanes = 36;

struct WinogradTransforms {
  // 6 x 6 pixels, rows `row` floats apart, to 36 vectors.
  void (*input)(const float* tile, int64_t row, int64_t channels, float* planes, int64_t plane);
  // 4 x 4 pixels of a gradient to 36 vectors.
  void (*gradient)(const float* tile, int64_t row, int64_t channels, float* planes, int64_t plane);
  // 9 vectors of a kernel, `channels` apart, to 36 vectors.
  void (*kernel)(const float* weights, int64_t channels, float* planes, int64_t plane);
  // 36 vectors to 4 x 4 results plus bias (may be NULL), as (row, channel, column).
  void (*output)(const float* planes, int64_t plane, int64_t channels, const float* bias, float* tile);
  // 36 vectors to the 9 of a kernel's gradient, `channels` apart.
  void (*weight)(const float* planes, int64_t plane, int64_t channels, float* weights);
};

const WinogradTransforms& BestWinogradTransforms();

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_CONVOLUTION_WINOGRAD_TRANSFORMS_H_
