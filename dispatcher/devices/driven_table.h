// The table by which the host calls a device: each function of the plugin's, with the device that it names
// current in the thread, and with what was current before put back afterwards.
//
// So a plugin may set its driver's current device wherever it likes and never put it back: neither the next
// kernel nor another library of the process sees it. A device that has answered MICA_ERROR_DEVICE_LOST is
// called no more: every function that names it answers that code, bare; all but `exchange_device`, which only
// moves a number. Each table knows its own lost devices, for good: another build of the plugin begins with
// none, while what the old one gave may still go back to it. Backends of one device pay one load and a call;
// the others two calls of `exchange_device`.
#pragma once

#include <mica/abi.h>
#include "tensor/device.h"

namespace mica {

// The host's table over a plugin's; lives as long as the process. A function that lacks there is NULL here,
// and so is one that no host calls.
MicaDeviceTable* DriveTable(const MicaDeviceTable& plugins);
// The backend that the table is published for, from now on.
void SetBackendOf(const MicaDeviceTable& driven, int backend);

// The device that is current while pinned memory is made and given back.
Device DeviceOfPinned(const MicaDeviceTable& driven);

// Says that the table's device is lost, as its kernels tell the host; false where that was known.
bool SetLost(const MicaDeviceTable& driven, int index);
bool IsLost(const MicaDeviceTable& driven, int index);
bool AnyLost(const MicaDeviceTable& driven);

}  // namespace mica
