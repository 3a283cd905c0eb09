// One kernel, compiled into bench/abi.cc and into the plugin neg.cc, so that a call
// through the border can be held to the same call within the tree.
#pragma once

#include <mica/abi.h>

// Float32, contiguous, of the same size.
inline void NegateFloats(const MicaTensor* self, MicaTensor* out) {
  int64_t n = 1;
  for (int32_t i = 0; i < self->dl.ndim; ++i) n *= self->dl.shape[i];
  const float* from = static_cast<const float*>(self->dl.data);
  float* to = static_cast<float*>(out->dl.data);
  for (int64_t i = 0; i < n; ++i) to[i] = -from[i];
}
