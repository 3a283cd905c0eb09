// The entry of the plugin "cuda": NVIDIA's devices.
#include <mica/plugin.h>

#include "plugins/cuda/attention.h"
#include "plugins/cuda/convolutions.h"
#include "plugins/cuda/driver.h"
#include "plugins/cuda/products.h"
#include "plugins/gpu/plugin.h"

namespace cuda {
namespace {

void Init(const MicaHost* host, const MicaRegistrar* registrar) {
  gpu::Register(host, registrar, GetCudaDriver(), &GetCublas(), &GetCudnn(), &GetCudnnAttention());
}

}  // namespace
}  // namespace cuda

MICA_PLUGIN("cuda", "Mica", "0.1", "", "CUDA driver 12.2 or later", "backend:cuda", ::cuda::Init)
