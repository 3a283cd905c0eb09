// What the simulated driver holds: devices, streams, events and modules, by their handles.
//
// driver.cc is its only user. One lock guards the tables, never while anything is waited for;
// devices, streams and memory guard themselves. Nothing of it ends before the process does:
// at exit the workers stop. The child of a fork has no workers: if there was one, every
// function throws there.
#pragma once

#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <mica/plugin.h>

#include "plugins/simt/fibers.h"
#include "plugins/simt/memory.h"
#include "plugins/simt/streams.h"

namespace simt {

inline std::string In(int64_t n) { return "(" + std::to_string(n) + ")"; }
[[noreturn]] inline void Fail(const std::string& sentence) {
  MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME, sentence);
}

// A number from the environment.
inline int64_t Number(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text && text[0] ? std::atoll(text) : otherwise;
}

struct Device {
  Device(int index, int64_t size) : index(index), memory(index, size) {}
  const int index;
  Memory memory;
  std::map<uint64_t, std::shared_ptr<Stream>> streams;  // 0 is the default one
  std::exception_ptr error;                             // the first that nobody has seen
};

struct Event {
  int device;
  std::shared_ptr<Record> record;  // NULL until it is recorded
};

struct Module;
struct Entry {
  Kernel kernel;
  Module* module;
  std::vector<int> sizes;  // of its parameters; negative for pointers
};
struct Module {
  std::mutex running;  // one stream at a time: words.inc says why
  void* handle = nullptr;
  std::map<std::string, Entry> entries;
};

struct State {
  const int count = static_cast<int>(Number("MICA_SIMT_DEVICES", 2));
  const int64_t size = Number("MICA_SIMT_MEMORY", int64_t{2} << 30);
  const uint64_t seed = static_cast<uint64_t>(Number("MICA_SIMT_SEED", 1));
  std::mutex mutex;  // of all that follows
  std::vector<std::unique_ptr<Device>> devices{static_cast<size_t>(count)};
  std::map<const char*, int64_t> pinned;  // start to size
  std::map<uint64_t, Event> events;
  std::map<uint64_t, std::shared_ptr<Recording>> graphs;
  std::vector<std::unique_ptr<Module>> modules;  // for the process's life
  uint64_t handles = 0, launches = 0;
};

State& GetState();  // throws in the child of a fork, once a stream was used

// By their handles; they throw where there is none.
Device& FindDevice(int index);
std::shared_ptr<Stream> FindStream(int device, uint64_t handle);
Event& FindEvent(uint64_t handle);  // under State's lock
std::shared_ptr<Record> RecordOf(uint64_t event);

// Throws where what is queued on the stream is recorded; `what` begins the sentence.
void RefuseRecorded(Stream& stream, const std::string& what);

// Throws where a stream of the device is recorded.
void CheckNoneRecords(Device& device);

// A new stream of the device, under no handle yet.
std::shared_ptr<Stream> MakeStream(Device& device);
void WaitForStreams(Device& device);

// The device's first error is kept until ThrowKept.
void KeepError(Device& device, std::exception_ptr error);
void ThrowKept(Device& device);

// Whether the bytes lie in pinned memory.
bool IsPinned(const void* data, int64_t size);
// Throws where the bytes lie in no allocation of the device; `what` begins the sentence.
void CheckHeld(int device, const void* data, int64_t size, const std::string& what);
// Throws where the address is a device's.
void CheckHost(const void* data);

}  // namespace simt
