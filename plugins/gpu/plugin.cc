#include "plugins/gpu/plugin.h"

#include <mica/kit/kit.h>

#include "plugins/gpu/attention/attention.h"
#include "plugins/gpu/device_table.h"
#include "plugins/gpu/devices.h"
#include "plugins/gpu/kit_driver.h"

namespace gpu {

// A plugin has one backend; what is made here stays, since tensors may outlive statics.
void Register(const MicaHost*, const MicaRegistrar* table, Driver& driver, Products* products,
              Convolutions* convolutions, Attention* attention) {
  static auto* devices = new Devices(driver);
  static auto* device_table = new Table(*devices);
  static auto* kit_driver = new KitDriver(*devices, products, convolutions);
  static auto* functions = new MicaDeviceTable(mica::plugin::DeviceTableOf(*device_table));
  mica::plugin::Registrar registrar(table, driver.backend());
  registrar.Device(*functions);
  mica::kit::Register(registrar, *kit_driver);
  RegisterAttention(registrar, *devices, attention);
}

}  // namespace gpu
