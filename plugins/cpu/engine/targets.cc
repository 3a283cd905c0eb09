#include "plugins/cpu/engine/targets.h"

#include <cstdlib>
#include <string>

#include <mica/plugin.h>
#include "hwy/targets.h"

namespace mica::cpu {

void LimitTargets() {
  const char* text = std::getenv("MICA_CPU_TARGET");
  if (text == nullptr || *text == '\0') return;
  const std::string name = text;
  MICA_PLUGIN_CHECK(name == "sse4" || name == "avx2", MICA_ERROR_VALUE,
                    "MICA_CPU_TARGET is sse4 or avx2, or is not set; the environment has (" + name + ").");
  // Highway numbers targets downwards: those of lower bits are newer.
  hwy::DisableTargets((name == "avx2" ? HWY_AVX2 : HWY_SSE4) - 1);
}

}  // namespace mica::cpu
