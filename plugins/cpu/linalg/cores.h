// The walk over a batch of matrices that all linear algebra of the CPU shares.
//
// A kernel of linalg.cc states its operands and one CoreTask (libraries/libraries.h);
// RunCores takes each matrix of the batch into column-major scratch memory, lets LAPACK
// work on it, and brings the results to the outputs, whatever the strides. The batch is
// divided among threads. Operands may broadcast over the batch of the first written one.
#ifndef MICA_PLUGINS_CPU_LINALG_CORES_H_
#define MICA_PLUGINS_CPU_LINALG_CORES_H_

#include <cstdint>
#include <initializer_list>

#include <mica/plugin.h>
#include "plugins/cpu/libraries/libraries.h"

namespace mica::cpu {

// Which part of a matrix comes back; the rest is zeros.
enum class Part : int32_t { kAll, kLower, kUpper };

// Matrices of rows x cols in the scratch, taken from `read` before and written to
// `write` after, each NULL for nothing. A tensor's own matrices may be smaller: then
// they are the upper left part, and the rest of what LAPACK reads is zeros.
struct Operand {
  const MicaTensor* read;
  MicaTensor* write;
  int32_t trailing;  // dimensions that are no batch: 2 of matrices, 1 of vectors, 0 of numbers
  int64_t rows, cols;
  Part part = Part::kAll;
  int32_t dtype = MICA_DTYPE_NONE;  // the task's if none is given
};

// Declines tensors of other dtypes. `info`, if any, gets LAPACK's word on each matrix as int32. `work` is the
// number of multiplications for one matrix, about.
void RunCores(const MicaCall* call, const CoreTask& task, double work,
              std::initializer_list<Operand> operands, MicaTensor* info);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_LINALG_CORES_H_
