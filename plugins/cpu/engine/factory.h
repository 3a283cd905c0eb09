// The class kernel "factory": a program over the coordinates of its output alone.
#ifndef MICA_PLUGINS_CPU_ENGINE_FACTORY_H_
#define MICA_PLUGINS_CPU_ENGINE_FACTORY_H_

#include <mica/abi.h>

namespace mica::cpu {

// Real results whose last dimension is dense; others are left to the portable kernel.
void RunFactory(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaTensor* const* outputs,
                int64_t num_outputs);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_FACTORY_H_
