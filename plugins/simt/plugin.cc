// The entry of the plugin "simt": a GPU simulated on the CPU, for tests.
#include <mica/plugin.h>

#include "plugins/gpu/plugin.h"
#include "plugins/simt/driver.h"

namespace simt {
namespace {

void Init(const MicaHost* host, const MicaRegistrar* registrar) {
  gpu::Register(host, registrar, GetSimtDriver(), nullptr, nullptr);
}

}  // namespace
}  // namespace simt

MICA_PLUGIN("simt", "Mica", "0.1", "", "simulated GPU", "backend:simt", ::simt::Init)
