// Two things that the C++ files of this folder bring to Mica, from outside: a layer that
// counts floating-point operations (flops.cc), and a transform, interval arithmetic
// (interval.cc). Built against the installed Mica::sdk alone.
#include <mica/plugin.h>

#include "flops.h"
#include "interval.h"

namespace {

void Init(const MicaHost*, const MicaRegistrar* r) {
  my_layer::RegisterFlops(r);
  my_layer::RegisterInterval(r);
}

}  // namespace

MICA_PLUGIN("my_layer", "Mica examples", "1.0", "", "",
            "layer:my_layer.flops,layer:my_layer.interval,operators:my_layer", Init)
