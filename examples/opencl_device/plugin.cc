// The entry of the plugin: its manifest and what it registers.
//
// A device from outside Mica: it sees the installed SDK and OpenCL alone. Classes of
// operators (pointwise, factory, reduction, scan, row) run from their programs; a few
// operators have kernels of their own; the host runs the rest on the CPU.
#include "classes.h"
#include "device_table.h"
#include "kernels.h"
#include "runtime.h"

namespace opencl_device {
namespace {

void Init(const MicaHost* host, const MicaRegistrar* table) {
  mica::plugin::Registrar registrar(table, "opencl");
  registrar.Device(DeviceTable());
  registrar.Class<&RunPointwise>("pointwise");
  registrar.Class<&RunFactory>("factory");
  registrar.Class<&RunReduction>("reduction");
  registrar.Class<&RunScan>("scan");
  registrar.Class<&RunRow>("row");
  registrar.Class<&RunGather>("gather");
  registrar.Class<&RunWindow>("window");
  RegisterCopies(registrar);
  RegisterIndexing(registrar);
  RegisterMatmul(registrar);
  RegisterConvolution(registrar);
  RegisterPooling(registrar);
  RegisterLoss(registrar);
  RegisterRandom(registrar);
  for (const std::string& sentence : GetRuntime().left_out) host->warn(mica::plugin::Str(sentence));
}

}  // namespace
}  // namespace opencl_device

MICA_PLUGIN("opencl", "Mica examples", "1.0", "", "OpenCL with coarse-grained SVM", "backend:opencl",
            ::opencl_device::Init)
