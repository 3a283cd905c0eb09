// What the pooling kernels share: planes and the windows over them.
//
// A tensor of (batch,) channels, height, width is a row of planes, adjacent in memory
// once DenseInput and DenseOutput have made them so; kernels run over planes in
// parallel and over windows inside one.
#ifndef MICA_PLUGINS_CPU_POOLING_WINDOWS_H_
#define MICA_PLUGINS_CPU_POOLING_WINDOWS_H_

#include <cstdint>
#include <vector>

#include "mica/plugin.h"

namespace mica::cpu {

// The part [begin, end) of one dimension that a window covers, `step` apart, and its
// length with the padding that it reaches into.
struct Window {
  int64_t begin, end, with_padding;
};

// Windows over a dimension of size `in`; padding is never read.
std::vector<Window> PoolWindows(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding,
                                int64_t dilation);
// Windows that divide the dimension into `out` parts, as even as they come.
std::vector<Window> AdaptiveWindows(int64_t in, int64_t out);

// Element d of an int[2] that may hold one number for both, or none.
inline int64_t At(MicaIntSpan span, int32_t d, int64_t otherwise) {
  return span.size == 0 ? otherwise : span.size == 1 ? span.data[0] : span.data[d];
}

struct Planes {
  int64_t count, height, width;
  explicit Planes(const plugin::TensorRef& t) : count(1), height(t.size(-2)), width(t.size(-1)) {
    for (int32_t d = 0; d < t.ndim() - 2; ++d) count *= t.size(d);
  }
  int64_t area() const { return height * width; }
};

// The dtype that pooling computes `t` in: float32 for half types; throws
// NotImplemented for what is not floating.
int32_t PoolingDtype(const plugin::TensorRef& t);

// Planes that make a second thread worth waking, when each costs `work` steps.
inline int64_t PlaneGrain(int64_t work) { return work >= 16384 ? 1 : 16384 / (work + 1) + 1; }

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_POOLING_WINDOWS_H_
