// A device: a backend's index (its bit in key sets) and a number.
//
// Backends are named at load time; names and indices are translated by
// tensor/device.cc's table, which the dispatcher fills ("cpu" is 0, "meta" 1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <mica/abi.h>

namespace mica {

struct Device {
  int16_t backend = 0;
  int16_t index = 0;
  constexpr bool operator==(const Device&) const = default;
  constexpr bool is_cpu() const { return backend == 0; }
  constexpr bool is_meta() const { return backend == 1; }
  std::string ToString() const;  // "cpu", "cuda:1"
  MicaDevice ToAbi() const { return {backend, index}; }
  static Device FromAbi(MicaDevice d) {
    return {static_cast<int16_t>(d.backend), static_cast<int16_t>(d.index)};
  }
  // Parses "cpu", "cuda:1", "acme.npu:0", and opens the plugin of the name. Without a number: the thread's
  // current device of the backend. Throws a
  // kRuntime Error that lists the known backends when the name is unknown, or says
  // how many devices there are when the number is too large.
  static Device Parse(std::string_view text);
};

// How to open the plugin of a backend whose name is unknown, how many devices a
// backend has, and how to make one current in its driver, which returns the one that was. The dispatcher sets
// them; without, names are those registered.
struct DeviceHooks {
  bool (*open)(std::string_view backend) = nullptr;
  int (*count)(int backend) = nullptr;
  int (*exchange)(int backend, int number) = nullptr;
};
void SetDeviceHooks(const DeviceHooks& hooks);

// The device of a backend that its name alone means on this thread: what is current in the driver, which
// other libraries may have changed. The one that is set must exist.
int CurrentDeviceNumber(int backend);
void SetCurrentDeviceNumber(Device device);

// The index of a backend's name, -1 if unknown; RegisterBackendName gives a new
// one (or the old one) and throws when all 23 are taken.
int BackendIndex(std::string_view name);
int RegisterBackendName(std::string_view name);
const std::string& BackendName(int index);
int BackendNameCount();

// DLPack's number for a backend's memory: what its name says ("cuda", "rocm"; 12, an extension device, for
// Mica's own names) until its device says another.
int32_t DlpackTypeOf(int backend);
void SetDlpackType(int backend, int32_t type);

}  // namespace mica
