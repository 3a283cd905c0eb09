// LAPACK (of OpenBLAS) behind the table of libraries.h: one function for all cores.
//
// lapack_calls.h gives LAPACK's routines one C++ name for the four dtypes; lapack.cc
// says for each core which operands it has. Called on one matrix at a time: the
// caller walks the batch, and divides it among threads.
#ifndef MICA_PLUGINS_CPU_LIBRARIES_LAPACK_H_
#define MICA_PLUGINS_CPU_LIBRARIES_LAPACK_H_

#include "plugins/cpu/libraries/libraries.h"

namespace mica::cpu {

bool RunLapack(CoreTask& task);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_LIBRARIES_LAPACK_H_
