// Errors that a device reports later than the call that caused them.
//
// A device runs what was queued earlier, so a status of its table may be about any work since it was last
// waited for. The host keeps the last launches of each device and says them with the error. Where nobody can
// be told (memory is given back, an event ends), it keeps the first error of the device, and the next call
// that can raise does: a launch, a copy, a query, a wait, before it asks the device for anything, so that
// what a device did is never undone by an error of before. None is dropped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <mica/abi.h>
#include "tensor/device.h"

namespace mica {

// Keeps what a call to the device's table answered where nobody can be told. Owns the status.
void KeepLate(Device device, MicaStatus status) noexcept;
// Raises `status`, or what was kept, as that came first, with what ran. Owns the status; NULL is no error.
void RaiseReported(Device device, MicaStatus status);
// The same of what a kernel answered, which may say first that the device is lost.
void RaiseOfKernel(Device device, MicaStatus status);
// Raises what was kept, and of a lost device that it is lost.
void RaiseLate(Device device);

// The status of the driven table, or of a kernel of its plugin, says that the device is lost
// (MICA_ERROR_DEVICE_LOST). Borrows the status, whose words later errors repeat.
void NoteLost(const MicaDeviceTable& driven, Device device, MicaStatus status);
// The error that said so was caught where nobody listens; it is said at exit.
void NobodyWasTold(Device device);
// Whether the table that is published now has lost the device.
bool IsLost(Device device);

// At exit: errors that were kept and never raised, and devices whose loss nobody was told, a sentence each.
std::vector<std::string> TakeLateErrors();

// A kernel or a copy was queued. `what` lives as long as the process. With MICA_LAUNCH_BLOCKING=1 it is
// waited for, so that its error is raised here.
void Launched(Device device, const char* what, uint64_t stream);

// Stands around a wait for a stream of the device, or for all of them: what was launched before it is no more
// among what ran, also where the wait failed, as the error has said it.
class WaitedFor {
 public:
  explicit WaitedFor(Device device, std::optional<uint64_t> stream = std::nullopt);
  ~WaitedFor();
  WaitedFor(const WaitedFor&) = delete;
  WaitedFor& operator=(const WaitedFor&) = delete;

 private:
  const Device device_;
  const std::optional<uint64_t> stream_;
  const uint64_t count_;  // launches before
};

}  // namespace mica
