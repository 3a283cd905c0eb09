// oneDNN behind the table of libraries.h: matrix products and convolutions.
//
// Its primitives run on OpenMP's pool, the one the plugin uses. Each thread keeps its
// own primitives, memory objects and buffer, so a call takes no lock and makes no
// object; a thread's cache is dropped when it holds kMaxPrimitives.
#ifndef MICA_PLUGINS_CPU_LIBRARIES_DNNL_H_
#define MICA_PLUGINS_CPU_LIBRARIES_DNNL_H_

#include "mica/plugins/cpu/libraries/libraries.h"

namespace mica::cpu {

void DnnlGemm(const GemmTask& task, int32_t threads);
bool DnnlConvolution(const ConvolutionTask& task);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_LIBRARIES_DNNL_H_
