// Convolutions as matrix products over unfolded images: of every dtype but float32, and for the shapes
// that no kernel of oneDNN serves, gradients of dilated convolutions and groups of a few channels.
#ifndef MICA_PLUGINS_CPU_CONVOLUTION_UNFOLDED_H_
#define MICA_PLUGINS_CPU_CONVOLUTION_UNFOLDED_H_

#include "plugins/cpu/libraries/libraries.h"

namespace mica::cpu {

// Every task of a dtype that has products, with operands of any strides. Throws std::bad_alloc, and on a
// Ctrl-C.
void UnfoldedConvolution(const ConvolutionTask& task);
// input[n, channel, ..] += bias[channel], the end of a transposed convolution.
void AddBiasToInput(const ConvolutionTask& task);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_CONVOLUTION_UNFOLDED_H_
