// The entry of the plugin "simt": a GPU simulated on the CPU, for tests.
#include <mica/memory.h>
#include <mica/plugin.h>

#include "plugins/gpu/plugin.h"
#include "plugins/simt/driver.h"

namespace simt {
namespace {

void Init(const MicaHost* host, const MicaRegistrar* registrar) {
  gpu::Register(host, registrar, GetSimtDriver(), nullptr, nullptr);
  // It watches the bytes around each block. A host without 1.1 is refused, by the sentence of Extension.
  const auto* memory = mica::plugin::Extension<MicaMemory>(MICA_MEMORY_EXTENSION, 1, 1);
  mica::plugin::Check(memory->keep_blocks_whole(mica::plugin::Str("simt")));
}

}  // namespace
}  // namespace simt

MICA_PLUGIN("simt", "Mica", "0.1", "", "simulated GPU", "backend:simt", ::simt::Init)
