// The devices of a GPU backend: what the host's device table and the kit's driver share.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include <mica/kit/driver.h>

#include "plugins/gpu/driver/driver.h"
#include "plugins/gpu/late_errors.h"

namespace gpu {

struct DeviceState {
  DeviceState(Driver& driver, int index) : errors(driver, index) {}
  DeviceInfo info;
  mica::kit::Device traits;
  LateErrors errors;
};

// Asked of the driver once, at the first use of a device.
class Devices {
 public:
  explicit Devices(Driver& driver) : driver_(driver) {}
  Driver& driver() { return driver_; }
  int Count();
  // Throws a value error for an index that no device has.
  DeviceState& At(int64_t index);
  // Whether any device was used.
  bool used() const { return found_.load(); }

 private:
  void Find();

  Driver& driver_;
  std::mutex mutex_;
  std::atomic<bool> found_{false};
  std::vector<std::unique_ptr<DeviceState>> devices_;
};

}  // namespace gpu
