// The kit's driver (mica/kit/driver.h) over a GPU's: texts are compiled once a machine and
// kept on disk, launches go through, products and convolutions to the vendor's libraries where
// they are there.
#pragma once

#include <string>

#include <mica/kit/driver.h>

#include "plugins/gpu/cache.h"
#include "plugins/gpu/devices.h"
#include "plugins/gpu/libraries/convolutions.h"
#include "plugins/gpu/libraries/products.h"

namespace gpu {

class KitDriver final : public mica::kit::Driver {
 public:
  // `products` and `convolutions` may be NULL.
  KitDriver(Devices& devices, Products* products, Convolutions* convolutions)
      : devices_(devices),
        driver_(devices.driver()),
        products_(products),
        convolutions_(convolutions),
        cache_(driver_.backend()) {}

  const char* backend() const override { return devices_.driver().backend(); }
  const mica::kit::Device& DeviceAt(int64_t index) override { return devices_.At(index).traits; }
  void* Compile(const mica::kit::Device& device, const std::string& text, const char* what) override;
  void* Entry(const mica::kit::Device& device, void* module, const char* name) override;
  void Launch(const mica::kit::Device& device, void* entry, const mica::kit::Argument* arguments,
              size_t count, const mica::kit::Grid& grid, uint64_t stream) override;
  void Zero(const mica::kit::Device& device, void* data, size_t size, uint64_t stream) override;
  void Read(const mica::kit::Device& device, void* to, const void* from, size_t size,
            uint64_t stream) override;
  bool Multiply(const mica::kit::Device& device, const mica::kit::MatrixProduct& product,
                uint64_t stream) override;
  int64_t ProductAlignment(const mica::kit::Device& device, int32_t dtype) override;
  bool HasConvolutions(const mica::kit::Device& device, int32_t dtype) override;
  bool Convolve(const mica::kit::Device& device, const mica::kit::ConvolutionCall& convolution,
                const MicaCall* call) override;
  void* LateWord(const mica::kit::Device& device, const MicaCall* call,
                 const mica::kit::LateError& error) override;

 private:
  std::string Binary(const std::string& text, const std::string& architecture, const char* what);

  Devices& devices_;
  gpu::Driver& driver_;
  Products* products_;
  Convolutions* convolutions_;
  DiskCache cache_;
};

}  // namespace gpu
