// Pooling of images whose channels lie side by side (channels_last): a window is reduced for
// many channels at once, with no gathering of planes.
//
// Each function says whether it has done the call: tensors of another layout, and half
// types in the gradients, go by planes. Sums are in the order that planes have them.
#ifndef MICA_PLUGINS_CPU_POOLING_CHANNELS_H_
#define MICA_PLUGINS_CPU_POOLING_CHANNELS_H_

#include "plugins/cpu/pooling/windows.h"

namespace mica::cpu {

bool MaxOfChannels(const plugin::TensorRef& in, int32_t spatial, const PlaneWindows& w,
                   const plugin::TensorRef& out, const plugin::TensorRef& indices, int32_t threads);
bool AverageOfChannels(const plugin::TensorRef& in, int32_t spatial, const AverageWindows& w,
                       const plugin::TensorRef& out, int32_t threads);
// Writes `large`, whose elements' shares of `small` (one element a window) add up.
bool SpreadOverChannels(const plugin::TensorRef& small, int32_t spatial, const AverageWindows& w,
                        const plugin::TensorRef& large, int32_t threads);
// Adds `grad` at `indices` of each plane of `large`; throws where one is outside.
bool DistributeOverChannels(const plugin::TensorRef& grad, const plugin::TensorRef& indices, int32_t spatial,
                            const plugin::TensorRef& large, int32_t threads);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_POOLING_CHANNELS_H_
