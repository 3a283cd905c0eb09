// Opens mica_cpu_libraries.so (oneDNN and OpenBLAS) on first use.
#ifndef MICA_PLUGINS_CPU_CONTRACTION_OPEN_LIBRARIES_H_
#define MICA_PLUGINS_CPU_CONTRACTION_OPEN_LIBRARIES_H_

#include "plugins/cpu/libraries/libraries.h"

namespace mica::cpu {

// The libraries' functions; NULL when the file cannot be opened, which is warned of
// once: kernels then answer NOT_IMPLEMENTED and the portable ones serve.
const LibraryTable* Libraries();

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_CONTRACTION_OPEN_LIBRARIES_H_
