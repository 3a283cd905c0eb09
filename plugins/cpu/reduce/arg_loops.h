// Reductions to a position or a count; see arg_loops.cc.
#ifndef MICA_PLUGINS_CPU_REDUCE_ARG_LOOPS_H_
#define MICA_PLUGINS_CPU_REDUCE_ARG_LOOPS_H_

#include "plugins/cpu/reduce/space.h"

namespace mica::cpu {

enum class ArgKind { kIndex, kValueAndIndex, kCount };

// The typed loops of one dtype and direction.
struct ArgLoops {
  // Takes n lanes at positions from `first` on into (best, where).
  void (*search)(const void* data, int64_t n, int64_t first, void* best, int64_t* where, bool fresh);
  // Takes lane j, which stands at `position`, into (best[j], where[j]).
  void (*update)(const void* data, int64_t n, int64_t position, void* best, int64_t* where);
  int64_t (*count)(const void* data, int64_t n);
};

// False for complex inputs and unusual output dtypes.
bool RunArgLoop(const ReduceCall& call, ArgKind kind, bool max);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_ARG_LOOPS_H_
