// The kernel of copy_; see copy.cc.
#ifndef MICA_PLUGINS_CPU_ENGINE_COPY_H_
#define MICA_PLUGINS_CPU_ENGINE_COPY_H_

#include <mica/abi.h>

namespace mica::cpu {

// Writes `src`, broadcast and converted, into `self`. The two are the same memory
// or do not overlap.
void CopyInto(const MicaCall* call, MicaTensor* self, MicaTensor* src, int32_t non_blocking);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_COPY_H_
