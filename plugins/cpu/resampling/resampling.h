// The linear maps of interpolation on the CPU.
//
// _resample maps each spatial dimension by a table of places and weights, one pass a
// dimension; _weighted_gather reads any places of a plane. Both have their transposes
// here, which are their gradients. An index of -1 stands for no element.
#ifndef MICA_PLUGINS_CPU_RESAMPLING_RESAMPLING_H_
#define MICA_PLUGINS_CPU_RESAMPLING_RESAMPLING_H_

#include <mica/plugin.h>

namespace mica::cpu {

void RegisterResampling(plugin::Registrar& registrar);

// One pass over `outer` blocks of [in, inner] elements that makes ones of [out, inner].
// Places have been checked; `weights` is NULL where all are 1; `whole`: no place is -1.
// `counts` is how many taps each place has, if they lie side by side; else NULL.
struct ResamplePass {
  int64_t outer, in, out, inner, taps;
  bool whole;
  const int64_t* places;
  const void* weights;
  const int64_t* counts = nullptr;
};

// resample_passes.cc; `element` is 4 (float) or 8 (double) bytes.
void RunResamplePass(const ResamplePass& pass, int32_t element, const void* from, void* to);
// The transpose: adds to `to`, which it clears first.
void RunTransposedPass(const ResamplePass& pass, int32_t element, const void* from, void* to);
// Without weights elements of any size only move.
void RunMovingPass(const ResamplePass& pass, int64_t element, const void* from, void* to);

// resample.cc
void Resample(const MicaCall* call, MicaTensor* self, MicaTensorSpan indices, MicaTensorSpan weights,
              MicaTensor* out);
void ResampleBackward(const MicaCall* call, MicaTensor* grad, MicaIntSpan sizes, MicaTensorSpan indices,
                      MicaTensorSpan weights, MicaTensor* out);

// weighted_gather.cc
void WeightedGather(const MicaCall* call, MicaTensor* self, MicaTensor* indices, MicaTensor* weights,
                    MicaTensor* out);
void WeightedScatter(const MicaCall* call, MicaTensor* grad, MicaTensor* indices, MicaTensor* weights,
                     int64_t places, MicaTensor* out);
void WeightedGatherWeights(const MicaCall* call, MicaTensor* grad, MicaTensor* self, MicaTensor* indices,
                           MicaTensor* out);

// grid_sample.cc
MicaTensor* GridSampler2d(const MicaCall* call, MicaTensor* input, MicaTensor* grid,
                          int64_t interpolation_mode, int64_t padding_mode, int32_t align_corners);
MicaTensor* GridSampler3d(const MicaCall* call, MicaTensor* input, MicaTensor* grid,
                          int64_t interpolation_mode, int64_t padding_mode, int32_t align_corners);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_RESAMPLING_RESAMPLING_H_
