// The tables of the driver, and the checks of addresses against them.
#include "plugins/simt/state.h"

#include <pthread.h>

#include <atomic>
#include <cstdio>

namespace simt {
namespace {

std::atomic<bool> g_started{false};  // any worker
std::atomic<bool> g_forked{false};   // after that

// At exit: what is queued is dropped; an error that nobody asked for is said at least here.
void StopAll() {
  if (g_forked) return;
  State& state = GetState();
  std::vector<std::shared_ptr<Stream>> streams;
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    for (auto& device : state.devices) {
      if (!device) continue;
      for (auto& [handle, stream] : device->streams) streams.push_back(stream);
    }
  }
  for (auto& stream : streams) stream->Stop();
  for (auto& device : state.devices) {
    try {
      if (device && device->error) std::rethrow_exception(device->error);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "mica: nothing waited for an error of the simulated GPU: %s\n", e.what());
    }
  }
}

// The device whose memory the address is, or -1.
int OwnerOf(const void* data) {
  State& state = GetState();
  std::lock_guard<std::mutex> lock(state.mutex);
  for (auto& device : state.devices) {
    if (device && device->memory.Owns(data)) return device->index;
  }
  return -1;
}

}  // namespace

State& GetState() {
  if (g_forked) {
    Fail(
        "The simulated GPU was used before this process was forked, and its threads are not in the child: "
        "start "
        "processes with the method `spawn`, or use the device first in the child.");
  }
  static State* state = [] {
    pthread_atfork(nullptr, nullptr, [] { g_forked = g_started.load(); });
    std::atexit(StopAll);
    return new State();
  }();
  return *state;
}

Device& FindDevice(int index) {
  State& state = GetState();
  MICA_PLUGIN_CHECK(index >= 0 && index < state.count, MICA_ERROR_VALUE,
                    "There is no simulated GPU " + In(index) + ": there are " + In(state.count) + ".");
  std::lock_guard<std::mutex> lock(state.mutex);
  auto& device = state.devices[static_cast<size_t>(index)];
  if (!device) device = std::make_unique<Device>(index, state.size);
  return *device;
}

std::shared_ptr<Stream> MakeStream(Device& device) {
  g_started = true;
  return std::make_shared<Stream>(device.index, device.memory,
                                  [&device] { KeepError(device, std::current_exception()); });
}

std::shared_ptr<Stream> FindStream(int index, uint64_t handle) {
  Device& device = FindDevice(index);
  std::lock_guard<std::mutex> lock(GetState().mutex);
  const auto found = device.streams.find(handle);
  if (found != device.streams.end()) return found->second;
  if (handle != 0) {
    Fail("The simulated GPU " + In(index) + " has no stream " + In(static_cast<int64_t>(handle)) + ".");
  }
  return device.streams[0] = MakeStream(device);
}

Event& FindEvent(uint64_t handle) {  // under the lock
  const auto found = GetState().events.find(handle);
  if (found == GetState().events.end()) Fail("There is no event " + In(static_cast<int64_t>(handle)) + ".");
  return found->second;
}
std::shared_ptr<Record> RecordOf(uint64_t handle) {
  std::lock_guard<std::mutex> lock(GetState().mutex);
  return FindEvent(handle).record;
}

void RefuseRecorded(Stream& stream, const std::string& what) {
  if (stream.recording())
    Fail(what + " while the work of its stream is recorded, which has not run: no recording can hold that.");
}

namespace {
std::vector<std::shared_ptr<Stream>> StreamsOf(Device& device) {
  std::vector<std::shared_ptr<Stream>> streams;
  std::lock_guard<std::mutex> lock(GetState().mutex);
  for (auto& [handle, stream] : device.streams) streams.push_back(stream);
  return streams;
}
}  // namespace

void CheckNoneRecords(Device& device) {
  for (auto& stream : StreamsOf(device)) RefuseRecorded(*stream, "The device is waited for");
}

void WaitForStreams(Device& device) {
  for (auto& stream : StreamsOf(device)) stream->WaitAll();
}

void KeepError(Device& device, std::exception_ptr error) {
  std::lock_guard<std::mutex> lock(GetState().mutex);
  if (!device.error) device.error = std::move(error);
}

void ThrowKept(Device& device) {
  std::exception_ptr error;
  {
    std::lock_guard<std::mutex> lock(GetState().mutex);
    std::swap(error, device.error);
  }
  if (error) std::rethrow_exception(error);
}

bool IsPinned(const void* data, int64_t size) {
  State& state = GetState();
  const char* at = static_cast<const char*>(data);
  std::lock_guard<std::mutex> lock(state.mutex);
  auto found = state.pinned.upper_bound(at);
  return found != state.pinned.begin() && (--found, size <= found->first + found->second - at);
}

void CheckHeld(int device, const void* data, int64_t size, const std::string& what) {
  if (FindDevice(device).memory.Holds(data, size)) return;
  const int owner = OwnerOf(data);
  Fail(what + " lies in no allocation of the simulated GPU " + In(device) + ": " +
       (owner < 0         ? "it is memory of the host."
        : owner != device ? "it is memory of the simulated GPU " + In(owner) + "."
                          : In(size) + " bytes are freed memory, or more than the allocation has."));
}

void CheckHost(const void* data) {
  const int owner = OwnerOf(data);
  if (owner >= 0) Fail("The host's side of a copy is memory of the simulated GPU " + In(owner) + ".");
}

}  // namespace simt
