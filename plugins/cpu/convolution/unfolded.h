// Convolutions of float32 as matrix products over unfolded images, for the shapes that no
// kernel of oneDNN serves: gradients of dilated convolutions, groups of a few channels.
#ifndef MICA_PLUGINS_CPU_CONVOLUTION_UNFOLDED_H_
#define MICA_PLUGINS_CPU_CONVOLUTION_UNFOLDED_H_

#include "plugins/cpu/libraries/libraries.h"

namespace mica::cpu {

// Every task with operands of any strides. Throws std::bad_alloc, and on a Ctrl-C.
void UnfoldedConvolution(const ConvolutionTask& task);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_CONVOLUTION_UNFOLDED_H_
