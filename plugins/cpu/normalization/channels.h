// Loops over the channels of a batch, for each instruction set, which the batch
// normalisation kernels share.
//
// Elements lie as (outer, channels, inner): inner is the space of an ordinary batch,
// and 1 where channels are adjacent (channels-last images, vectors). All loops run over
// the channels [begin, end) and index per-channel arrays by the channel's number. Sums
// are taken in the lane type over a few terms a lane and added up in double.
#ifndef MICA_PLUGINS_CPU_NORMALIZATION_CHANNELS_H_
#define MICA_PLUGINS_CPU_NORMALIZATION_CHANNELS_H_

#include <cstdint>

namespace mica::cpu {

struct ChannelLayout {
  int64_t outer, channels, inner;
  int64_t per_channel() const { return outer * inner; }
};

template <class T>
struct ChannelLoops {
  // sums[c] = sum of x
  void (*sum)(const ChannelLayout& l, int64_t begin, int64_t end, const T* x, double* sums);
  // sums[c] = sum of (x - center[c])^2
  void (*squares)(const ChannelLayout& l, int64_t begin, int64_t end, const T* x, const T* center,
                  double* sums);
  // sums[c] = sum of grad, products[c] = sum of grad * (x - center[c])
  void (*gradients)(const ChannelLayout& l, int64_t begin, int64_t end, const T* grad, const T* x,
                    const T* center, double* sums, double* products);
  // y = x * scale[c] + shift[c]
  void (*scale)(const ChannelLayout& l, int64_t begin, int64_t end, const T* x, const T* scale,
                const T* shift, T* y);
  // dx = grad * of_grad[c] + (x - center[c]) * of_x[c] + constant[c]
  void (*input)(const ChannelLayout& l, int64_t begin, int64_t end, const T* grad, const T* x,
                const T* center, const T* of_grad, const T* of_x, const T* constant, T* dx);
};

// Those of the best instruction set here; T is float or double.
template <class T>
const ChannelLoops<T>& BestChannelLoops();

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_NORMALIZATION_CHANNELS_H_
