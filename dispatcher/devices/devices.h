// Device tables by backend: registering them, asking them, and the thread pool
// that a backend lends the host.
//
// A table lives as long as the process, as its plugin does: memory may outlive
// use. At exit every device is asked to quiesce, then to detach; after that
// nothing is called any more, and late frees do nothing. The same holds in a child
// that was forked after the device was used: drivers do not survive a fork.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <mica/abi.h>
#include "absl/status/status.h"
#include "tensor/device.h"

namespace mica {

// OK when the table has the right ABI and every mandatory function.
absl::Status CheckDeviceTable(const char* name, const MicaDeviceTable* table);
// The table by which the host drives it (driven_table.h), which lives as long as the process; what an older
// table did not have is NULL.
const MicaDeviceTable* KeepDeviceTable(const MicaDeviceTable& table);
// Gives the backend its name and index, puts the host's caching allocator over its
// memory, and makes `kept` the table that it is driven by from now on.
void PublishDeviceTable(const char* name, const MicaDeviceTable* kept);
// All three.
absl::Status RegisterDeviceTable(const char* name, const MicaDeviceTable* table);
const MicaDeviceTable* DeviceTable(int backend);      // NULL if none
const MicaDeviceTable* LiveDeviceTable(int backend);  // NULL, too, where it ended

// The table of a device that exists; throws a kRuntime Error that names the
// device and says how many its backend has.
const MicaDeviceTable& DeviceTableOf(Device device);
// The number of devices of a backend; opens its plugin. 0 if there is none.
int DeviceCount(int backend);

struct DeviceProperties {
  std::string name;
  int64_t total_memory = -1;
  int64_t free_memory = -1;
  std::string architecture;  // "" unknown
  int multiprocessors = 0;   // 0 unknown, as the next
  int warp_size = 0;
};
DeviceProperties PropertiesOf(Device device);
// A number that describes the device, by a key of its own or of abi.h; none where it does not know the key.
std::optional<int64_t> AttributeOf(Device device, std::string_view key);
// Whether kernels of the device can read memory of another of its backend.
bool CanAccessPeer(Device device, Device peer);

// Makes the device current for this thread in its backend's own runtime until the guard ends, which what runs
// on the device needs. The driver is asked each time, as other libraries change its current device, too; free
// on backends with one device.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device) {
    if (device.backend >= 2) [[unlikely]]
      Enter(device);
  }
  ~DeviceGuard() {
    if (table_) [[unlikely]]
      Leave();
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  void Enter(Device device);
  void Leave();
  const MicaDeviceTable* table_ = nullptr;  // of a device that was not current before
  int16_t backend_;                         // its backend
  int32_t before_ = 0;
};

using HostParallelFor = void (*)(int64_t begin, int64_t end, int64_t grain,
                                 void (*body)(void* context, int64_t begin, int64_t end), void* context);
void SetParallelFor(HostParallelFor f);
HostParallelFor GetParallelFor();

}  // namespace mica
