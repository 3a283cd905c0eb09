// A device whose queues do nothing until somebody waits: a copy that the host does
// not wait for is not there, and memory given out too early is overwritten late.
// It counts what is called.
#pragma once

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <new>
#include <utility>

#include <mica/device.h>
#include "dispatcher/devices/devices.h"
#include "dispatcher/plugins/host.h"
#include "dispatcher/registration/registration.h"

namespace mica::testing {

class LazyDevice {
 public:
  int32_t Count() { return 2; }
  void Properties(int32_t, MicaDeviceProperties* out) { out->name = "lazy"; }
  int32_t ExchangeDevice(int32_t device) { return std::exchange(current, device); }
  void* Allocate(int32_t, int64_t size) {
    if (in_use + size > memory) throw std::bad_alloc();
    in_use += size;
    return std::aligned_alloc(64, static_cast<size_t>((size + 63) / 64 * 64));
  }
  void Free(int32_t, void* data, int64_t size) {
    in_use -= size;
    std::free(data);
  }
  uint64_t StreamCreate(int32_t, int32_t) {
    ++streams_made;
    return ++handles;
  }
  void StreamDestroy(int32_t, uint64_t) { ++streams_destroyed; }
  void StreamSync(int32_t device, uint64_t stream) { Drain(queues[{device, stream}]); }
  uint64_t EventCreate(int32_t) {
    ++events_alive;
    return ++handles;
  }
  void EventDestroy(int32_t, uint64_t event) {
    --events_alive;
    events.erase(event);
  }
  void EventRecord(int32_t device, uint64_t event, uint64_t stream) {
    events[event] = {{device, stream}, false};
    queues[{device, stream}].push_back([this, event] { events[event].second = true; });
  }
  void EventWait(int32_t device, uint64_t event, uint64_t stream) {
    queues[{device, stream}].push_back([this, event] { EventSync(0, event); });
  }
  void EventSync(int32_t, uint64_t event) {
    const auto found = events.find(event);
    if (found != events.end() && !found->second.second) Drain(queues[found->second.first]);
  }
  bool EventQuery(int32_t, uint64_t event) {
    const auto found = events.find(event);
    return found == events.end() || found->second.second;
  }
  void Copy(void* to, MicaDevice, const void* from, MicaDevice, int64_t size, uint64_t stream) {
    ++copies;
    queues[{current, stream}].push_back([=] { std::memmove(to, from, static_cast<size_t>(size)); });
  }
  void Fill(int32_t device, void* data, uint8_t byte, int64_t size, uint64_t stream) {
    queues[{device, stream}].push_back([=] { std::memset(data, byte, static_cast<size_t>(size)); });
  }
  void PeerCopy(void* to, int32_t to_device, const void* from, int32_t, int64_t size, uint64_t stream) {
    ++peer_copies;
    queues[{to_device, stream}].push_back([=] { std::memmove(to, from, static_cast<size_t>(size)); });
  }

  int64_t memory = int64_t{1} << 30, in_use = 0;
  int32_t current = 0;
  int copies = 0, peer_copies = 0, streams_made = 0, streams_destroyed = 0;
  int events_alive = 0;

 private:
  using Place = std::pair<int32_t, uint64_t>;
  static void Drain(std::deque<std::function<void()>>& queue) {
    while (!queue.empty()) {
      const std::function<void()> work = std::move(queue.front());
      queue.pop_front();
      work();
    }
  }

  uint64_t handles = 0;
  std::map<Place, std::deque<std::function<void()>>> queues;
  std::map<uint64_t, std::pair<Place, bool>> events;
};

// Registered once a process, as "lazy".
inline LazyDevice& Lazy() {
  static LazyDevice* device = [] {
    auto* d = new LazyDevice();
    plugin::Host() = HostTable();
    static std::shared_ptr<Scope> scope = Scope::Create("lazy", "");
    const MicaRegistrar registrar = MakeRegistrar(scope.get());
    const MicaDeviceTable table = plugin::DeviceTableOf(*d);
    ThrowIfError(registrar.register_device(registrar.context, "lazy", &table));
    const absl::Status committed = scope->Commit();
    if (!committed.ok()) throw std::runtime_error(std::string(committed.message()));
    return d;
  }();
  return *device;
}

}  // namespace mica::testing
