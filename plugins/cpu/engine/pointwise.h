// The class kernel "pointwise": runs an operator's compute program on the block
// engine. Shapes, dtypes and memory of the outputs come ready from the host.
#ifndef MICA_PLUGINS_CPU_ENGINE_POINTWISE_H_
#define MICA_PLUGINS_CPU_ENGINE_POINTWISE_H_

#include "plugins/cpu/engine/plans/plan.h"

namespace mica::cpu {

inline int32_t DtypeOf(const MicaTensor* tensor) {
  return static_cast<int32_t>(tensor->flags >> MICA_TENSOR_DTYPE_SHIFT & 0xff);
}

// `call->program` is the program, `args` the arguments of the functional form.
void RunPointwise(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaTensor* const* outputs,
                  int64_t num_outputs);

// Throws the error of a plan that cannot run, or of flags that a run raised.
void ThrowPlanError(const MicaCall* call, const Plan& plan);
void ThrowFlags(int flags);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_POINTWISE_H_
