// oneDNN behind the table of libraries.h: convolutions.
//
// Not its matrix products, nor what is made of them: on AVX and AVX-512 the kernel behind
// dnnl_sgemm and the implementations named "gemm" points the stack register at a buffer on
// the heap while it multiplies long rows, and a signal's frame lands there, over whatever
// lies below it. Nothing that calls that kernel may run.
//
// Its primitives run on OpenMP's pool, the one the plugin uses. Each thread keeps its
// own primitives, memory objects and buffer, so a call takes no lock and makes no
// object; a thread's cache is dropped when it holds kMaxPrimitives.
#ifndef MICA_PLUGINS_CPU_LIBRARIES_DNNL_H_
#define MICA_PLUGINS_CPU_LIBRARIES_DNNL_H_

#include "plugins/cpu/libraries/libraries.h"

namespace mica::cpu {

bool DnnlConvolution(const ConvolutionTask& task);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_LIBRARIES_DNNL_H_
