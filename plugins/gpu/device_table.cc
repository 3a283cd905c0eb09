#include "plugins/gpu/device_table.h"

#include <exception>
#include <string>

namespace gpu {

void Table::Properties(int32_t device, MicaDeviceProperties* out) {
  const DeviceState& state = devices_.At(device);
  out->name = state.info.name.c_str();
  out->total_memory = state.info.total_memory;
  out->free_memory = driver_.FreeMemory(device);
  if (out->struct_size < sizeof(*out)) return;  // an older host
  out->architecture = state.info.architecture.c_str();
  out->multiprocessors = state.info.multiprocessors;
  out->warp_size = state.info.warp_size;
}

int32_t Table::ExchangeDevice(int32_t device) {
  devices_.At(device);
  return driver_.ExchangeDevice(device);
}

int64_t Table::Attribute(int32_t device, MicaStr key) {
  int64_t value = 0;
  if (!driver_.Attribute(device, std::string(key.data, static_cast<size_t>(key.size)), &value))
    throw mica::plugin::NotImplemented();
  return value;
}

void* Table::Allocate(int32_t device, int64_t size) {
  devices_.At(device);
  return size == 0 ? nullptr : driver_.Allocate(device, size);
}

void Table::Free(int32_t device, void* data, int64_t) {
  if (data) driver_.Free(device, data);
}

void Table::Copy(void* to, MicaDevice to_device, const void* from, MicaDevice from_device, int64_t size,
                 uint64_t stream) {
  if (size == 0) return;
  if (to_device.backend == 0)
    driver_.CopyToHost(from_device.index, to, from, size, stream);
  else if (from_device.backend == 0)
    driver_.CopyToDevice(to_device.index, to, from, size, stream);
  else
    PeerCopy(to, to_device.index, from, from_device.index, size, stream);
}

void Table::PeerCopy(void* to, int32_t to_device, const void* from, int32_t from_device, int64_t size,
                     uint64_t stream) {
  if (size == 0) return;
  if (to_device == from_device)
    driver_.CopyOnDevice(to_device, to, from, size, stream);
  else
    driver_.CopyToPeer(to_device, to, from_device, from, size, stream);
}

void Table::Fill(int32_t device, void* data, uint8_t byte, int64_t size, uint64_t stream) {
  if (size > 0) driver_.Fill(device, data, byte, size, stream);
}

void Table::StreamSync(int32_t device, uint64_t stream) {
  driver_.StreamSync(device, stream);
  devices_.At(device).errors.Raise();
}

void Table::DeviceSync(int32_t device) {
  driver_.DeviceSync(device);
  devices_.At(device).errors.Raise();
}

void Table::EventSync(int32_t device, uint64_t event) {
  driver_.EventSync(device, event);
  devices_.At(device).errors.Raise();
}

void Table::Quiesce() {
  if (!devices_.used()) return;
  std::exception_ptr first;  // a device that is lost keeps no other waiting
  for (int device = 0; device < devices_.Count(); ++device) try {
      driver_.DeviceSync(device);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  if (first) std::rethrow_exception(first);
}

}  // namespace gpu
