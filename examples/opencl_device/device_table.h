// The device table of "opencl": memory, streams, events, copies.
#pragma once

#include <mica/abi.h>

namespace opencl_device {

const MicaDeviceTable& DeviceTable();

}  // namespace opencl_device
