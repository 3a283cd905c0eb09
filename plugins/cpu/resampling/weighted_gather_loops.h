// The loops of weighted_gather.cc over a block of places, for each instruction set.
#ifndef MICA_PLUGINS_CPU_RESAMPLING_WEIGHTED_GATHER_LOOPS_H_
#define MICA_PLUGINS_CPU_RESAMPLING_WEIGHTED_GATHER_LOOPS_H_

#include <cstdint>

namespace mica::cpu {

template <class T>
struct GatherLoops {
  // y[i] = sum over k of w[k * stride + i] * x[at[k * stride + i]]; -1 is no element.
  void (*gather)(const T* x, const int32_t* at, const T* w, int64_t taps, int64_t stride, T* y, int64_t n);
  // w[i] += g[i] * x[at[i]]
  void (*weights)(const T* x, const int32_t* at, const T* g, T* w, int64_t n);
};

const GatherLoops<float>& GatherLoopsOf(float);
const GatherLoops<double>& GatherLoopsOf(double);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_RESAMPLING_WEIGHTED_GATHER_LOOPS_H_
