// 3 x 3 convolutions of stride 1 by Winograd's minimal filtering, F(4x4, 3x3).
//
// A tile of 4 x 4 results takes 36 multiplications a channel pair instead of 144:
// tiles of 6 x 6 inputs and the kernels are transformed, multiplied by 36 matrix
// products over the channels, and transformed back (Lavin and Gray, "Fast algorithms
// for convolutional neural networks", 2015). The gradient for the input is a
// convolution with turned kernels; that for the weight is F(3x3, 4x4), which has the
// same transform of the input. float32 only.
//
// Largest error against float64 over the largest result, normal inputs, 32 to 64
// channels: 1.2e-6, where oneDNN's direct sum has 5e-7 (256 channels: 3.6e-6, 1.4e-6).
// Batch 64, 32 to 64 channels, 8 x 8, one AVX2 core, microseconds with oneDNN's in
// parentheses: forward 727 (1668), for input 693 (1550), for weight 682 (2151).
#ifndef MICA_PLUGINS_CPU_CONVOLUTION_WINOGRAD_H_
#define MICA_PLUGINS_CPU_CONVOLUTION_WINOGRAD_H_

#include "plugins/cpu/libraries/libraries.h"

namespace mica::cpu {

// Whether the task is such a convolution, and one that this makes faster.
bool WinogradFits(const ConvolutionTask& task);

// Throws when there is no memory.
void Winograd(const ConvolutionTask& task, const LibraryTable& library);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_CONVOLUTION_WINOGRAD_H_
