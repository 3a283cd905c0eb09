// The entry of the plugin: its manifest and what it registers.
//
// A device from outside Mica: it sees the installed SDK and OpenCL alone. The kit turns
// operators into kernel texts; the host runs the rest on the CPU.
#include <mica/kit/kit.h>

#include "device_table.h"
#include "driver.h"
#include "runtime.h"

namespace opencl_device {
namespace {

void Init(const MicaHost* host, const MicaRegistrar* table) {
  mica::plugin::Registrar registrar(table, "opencl");
  registrar.Device(DeviceTable());
  mica::kit::Register(registrar, GetDriver());
  for (const std::string& sentence : GetRuntime().left_out) host->warn(mica::plugin::Str(sentence));
}

}  // namespace
}  // namespace opencl_device

MICA_PLUGIN("opencl", "Mica examples", "1.0", "", "OpenCL with coarse-grained SVM", "backend:opencl",
            ::opencl_device::Init)
