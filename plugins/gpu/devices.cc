#include "plugins/gpu/devices.h"

#include <string>

namespace gpu {

int Devices::Count() { return driver_.Count(); }

void Devices::Find() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (found_) return;
  std::vector<std::unique_ptr<DeviceState>> found;
  for (int index = 0; index < driver_.Count(); ++index) {
    auto device = std::make_unique<DeviceState>(driver_, index);
    device->info = driver_.Describe(index);
    mica::kit::Device& traits = device->traits;
    traits.index = index;
    traits.name = device->info.name;
    traits.vector_width = 8;
    traits.has_maths = true;
    traits.access_bytes = 16;
    traits.is_wide = true;
    traits.max_groups_yz = 65535;
    traits.list_bytes = 3072;  // of 4,096 that a launch's arguments have
    found.push_back(std::move(device));
  }
  devices_ = std::move(found);
  found_ = true;
}

DeviceState& Devices::At(int64_t index) {
  if (!found_) Find();
  if (devices_.empty()) {
    std::string why;
    for (const std::string& sentence : driver_.Missing()) why += (why.empty() ? "" : " ") + sentence;
    MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME, why.empty() ? "The driver lists no device." : why);
  }
  MICA_PLUGIN_CHECK(index >= 0 && index < static_cast<int64_t>(devices_.size()), MICA_ERROR_VALUE,
                    std::string("The device (") + driver_.backend() + ":" + std::to_string(index) +
                        ") does not exist; the backend has (" + std::to_string(devices_.size()) +
                        ") devices.");
  return *devices_[static_cast<size_t>(index)];
}

}  // namespace gpu
