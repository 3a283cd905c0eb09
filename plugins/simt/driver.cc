// The functions of SimtDriver: what they check, and what they queue.
#include "plugins/simt/driver.h"

#include <dlfcn.h>

#include <cstring>
#include <utility>

#include "plugins/simt/compiler.h"
#include "plugins/simt/state.h"

namespace simt {
namespace {
thread_local int t_device = 0;
}  // namespace

SimtDriver& GetSimtDriver() {
  static auto* driver = new SimtDriver();
  return *driver;
}

// --- devices

int SimtDriver::Count() { return CompilerVersion().empty() ? 0 : GetState().count; }

std::vector<std::string> SimtDriver::Missing() {
  if (!CompilerVersion().empty()) return {};
  return {
      "The compiler of the simulated GPU does not run: install g++, or say in MICA_SIMT_CXX which one there "
      "is."};
}

gpu::DeviceInfo SimtDriver::Describe(int device) {
  FindDevice(device);
  gpu::DeviceInfo info;
  info.name = "simulated GPU";
  info.architecture = "simt32";
  info.total_memory = GetState().size;
  return info;
}

int64_t SimtDriver::FreeMemory(int device) { return FindDevice(device).memory.free_bytes(); }

int SimtDriver::ExchangeDevice(int device) {
  FindDevice(device);
  return std::exchange(t_device, device);
}

// Memory of a device is checked against its own kernels, so that none reads another's.
bool SimtDriver::CanAccessPeer(int device, int peer) {
  FindDevice(device);
  FindDevice(peer);
  return false;
}

bool SimtDriver::Attribute(int device, const std::string& key, int64_t* value) {
  FindDevice(device);
  if (key != "simt.work_items_in_step") return false;
  return *value = 32, true;
}

// --- memory

void* SimtDriver::Allocate(int device, int64_t size) { return FindDevice(device).memory.Allocate(size); }

// As on hardware it waits for the device. What it finds is kept: it is called by destructors.
void SimtDriver::Free(int device, void* data) {
  Device& d = FindDevice(device);
  WaitForStreams(d);
  const std::string wrong = d.memory.Free(data);
  if (!wrong.empty()) KeepError(d, std::make_exception_ptr(mica::plugin::Error(MICA_ERROR_RUNTIME, wrong)));
}

void* SimtDriver::PinnedAllocate(int64_t size) {
  State& state = GetState();
  void* data = std::aligned_alloc(256, (static_cast<size_t>(size) + 256) / 256 * 256);
  MICA_PLUGIN_CHECK(data, MICA_ERROR_OUT_OF_MEMORY,
                    "The host has no room for " + In(size) + " pinned bytes.");
  std::memset(data, 0xFF, static_cast<size_t>(size));
  std::lock_guard<std::mutex> lock(state.mutex);
  state.pinned[static_cast<char*>(data)] = size;
  return data;
}

void SimtDriver::PinnedFree(void* data) {
  State& state = GetState();
  for (int i = 0; i < state.count; ++i) WaitForStreams(FindDevice(i));
  std::lock_guard<std::mutex> lock(state.mutex);
  if (data && state.pinned.erase(static_cast<char*>(data)) == 0)
    Fail("PinnedFree gets memory that is not pinned.");
  std::free(data);
}

void SimtDriver::CopyToDevice(int device, void* to, const void* from, int64_t size, uint64_t stream) {
  if (size == 0) return;
  CheckHeld(device, to, size, "What a copy writes");
  CheckHost(from);
  const size_t n = static_cast<size_t>(size);
  const auto queue = FindStream(device, stream);
  if (IsPinned(from, size)) {
    queue->Queue([=](Runner&) { std::memcpy(to, from, n); });
    return;
  }
  RefuseRecorded(*queue, "Pageable memory is copied");
  queue->Queue([to, bytes = std::string(static_cast<const char*>(from), n)](Runner&) {
    std::memcpy(to, bytes.data(), bytes.size());
  });
}

void SimtDriver::CopyToHost(int device, void* to, const void* from, int64_t size, uint64_t stream) {
  const auto queue = FindStream(device, stream);
  const size_t n = static_cast<size_t>(size);
  if (n > 0) {
    CheckHeld(device, from, size, "What a copy reads");
    CheckHost(to);
    const bool pinned = IsPinned(to, size);
    if (!pinned) RefuseRecorded(*queue, "A copy into pageable memory is waited for");
    const uint64_t number = queue->Queue([=](Runner&) { std::memcpy(to, from, n); });
    if (pinned) return;
    queue->Wait(number);
  }
  ThrowKept(FindDevice(device));
}

void SimtDriver::CopyOnDevice(int device, void* to, const void* from, int64_t size, uint64_t stream) {
  if (size == 0) return;
  CheckHeld(device, to, size, "What a copy writes");
  CheckHeld(device, from, size, "What a copy reads");
  FindStream(device, stream)->Queue([=](Runner&) { std::memmove(to, from, static_cast<size_t>(size)); });
}

void SimtDriver::CopyToPeer(int to_device, void* to, int from_device, const void* from, int64_t size,
                            uint64_t stream) {
  if (size == 0) return;
  CheckHeld(to_device, to, size, "What a copy writes");
  CheckHeld(from_device, from, size, "What a copy reads");
  Memory& peer = FindDevice(from_device).memory;
  FindStream(to_device, stream)->Queue([=, &peer](Runner&) {
    Memory::Access access(peer);
    std::memmove(to, from, static_cast<size_t>(size));
  });
}

void SimtDriver::Fill(int device, void* data, uint8_t byte, int64_t size, uint64_t stream) {
  if (size == 0) return;
  CheckHeld(device, data, size, "What Fill writes");
  FindStream(device, stream)->Queue([=](Runner&) { std::memset(data, byte, static_cast<size_t>(size)); });
}

// --- streams and events

void SimtDriver::PriorityRange(int device, int32_t* least, int32_t* greatest) {
  FindDevice(device);
  *least = *greatest = 0;
}

uint64_t SimtDriver::StreamCreate(int device, int) {
  Device& d = FindDevice(device);
  State& state = GetState();
  std::lock_guard<std::mutex> lock(state.mutex);
  d.streams[++state.handles] = MakeStream(d);
  return state.handles;
}

void SimtDriver::StreamDestroy(int device, uint64_t stream) {
  const auto queue = FindStream(device, stream);
  queue->WaitAll();
  {
    std::lock_guard<std::mutex> lock(GetState().mutex);
    GetState().devices[static_cast<size_t>(device)]->streams.erase(stream);
  }
  queue->Stop();
}

void SimtDriver::StreamSync(int device, uint64_t stream) {
  const auto queue = FindStream(device, stream);
  RefuseRecorded(*queue, "A stream is waited for");
  queue->WaitAll();
  ThrowKept(FindDevice(device));
}

bool SimtDriver::StreamDone(int device, uint64_t stream) {
  const auto queue = FindStream(device, stream);
  RefuseRecorded(*queue, "A stream is asked whether it is done");
  return queue->Done();
}

void SimtDriver::DeviceSync(int device) {
  Device& d = FindDevice(device);
  CheckNoneRecords(d);
  WaitForStreams(d);
  ThrowKept(d);
  const std::string wrong = d.memory.CheckRedZones();
  if (!wrong.empty()) Fail(wrong);
}

// Every event is timed, and waits in the same way.
uint64_t SimtDriver::EventCreate(int device, uint64_t) {
  FindDevice(device);
  State& state = GetState();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.events[++state.handles] = {device, nullptr};
  return state.handles;
}

void SimtDriver::EventDestroy(int, uint64_t event) {
  std::shared_ptr<Record> last;  // its stream may go with it: not under the lock
  std::lock_guard<std::mutex> lock(GetState().mutex);
  last.swap(FindEvent(event).record);
  GetState().events.erase(event);
}

void SimtDriver::EventRecord(int device, uint64_t event, uint64_t stream) {
  auto record = std::make_shared<Record>();
  record->stream = FindStream(device, stream);
  record->recording = record->stream->recording();
  if (record->recording)
    record->seen = record->recording->SeenBy(record->stream.get());
  else
    record->number = record->stream->Queue([record](Runner&) { record->time = Clock::now(); });
  std::lock_guard<std::mutex> lock(GetState().mutex);
  Event& e = FindEvent(event);
  if (e.device != device) {
    Fail("An event of the simulated GPU " + In(e.device) + " is recorded on the simulated GPU " + In(device) +
         ".");
  }
  e.record.swap(record);
}

void SimtDriver::EventWait(int device, uint64_t event, uint64_t stream) {
  const auto record = RecordOf(event);
  const auto queue = FindStream(device, stream);
  if (!record) return;
  const auto recording = queue->recording();
  if (!record->recording && !recording) {
    queue->Queue([record](Runner&) { record->stream->Wait(record->number); });
    return;
  }
  if (!record->recording) Fail("Work that is recorded waits for an event outside of the recording.");
  if (recording && recording != record->recording)
    Fail("Work that is recorded waits for an event of another recording.");
  if (device != record->recording->device) Fail("A recording of the simulated GPU goes to another one.");
  if (!recording) {
    queue->Record(record->recording);
    std::lock_guard<std::mutex> lock(GetState().mutex);
    record->recording->joined.push_back(queue);
  }
  record->recording->Merge(queue.get(), record->seen);
}

void SimtDriver::EventSync(int device, uint64_t event) {
  const auto record = RecordOf(event);
  if (record && record->recording) Fail("An event of a recording is waited for, which never passes.");
  if (record) record->stream->Wait(record->number);
  ThrowKept(FindDevice(device));
}

bool SimtDriver::EventDone(int, uint64_t event) {
  const auto record = RecordOf(event);
  if (record && record->recording) Fail("An event of a recording is asked for, which never passes.");
  return !record || record->stream->Reached(record->number);
}

double SimtDriver::EventElapsed(int, uint64_t start, uint64_t end) {
  const auto a = RecordOf(start), b = RecordOf(end);
  if (!a || !b || !EventDone(0, start) || !EventDone(0, end)) {
    Fail("The time between two events is known once both were recorded and reached.");
  }
  return std::chrono::duration<double, std::milli>(b->time - a->time).count();
}

// --- recorded work

void SimtDriver::CaptureBegin(int device, uint64_t stream) {
  const auto queue = FindStream(device, stream);
  if (stream == 0) Fail("The default stream of a simulated GPU cannot be recorded.");
  if (queue->recording()) Fail("The stream is recorded already.");
  auto recording = std::make_shared<Recording>(device);
  recording->joined.push_back(queue);
  queue->Record(std::move(recording));
}

uint64_t SimtDriver::CaptureEnd(int device, uint64_t stream) {
  const auto queue = FindStream(device, stream);
  const auto recording = queue->recording();
  State& state = GetState();
  std::vector<std::shared_ptr<Stream>> joined;
  uint64_t handle = 0;
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    if (!recording || recording->joined.front() != queue) Fail("No recording began with the stream.");
    joined.swap(recording->joined);
    handle = ++state.handles;
    state.graphs[handle] = recording;
  }
  for (const auto& s : joined) s->Record(nullptr);
  if (recording->HasUnjoined(queue.get())) {
    GraphDestroy(device, handle);
    Fail("What was recorded is lost: a stream that the recording went to was not waited for at its end.");
  }
  return handle;
}

bool SimtDriver::Capturing(int device, uint64_t stream) {
  return FindStream(device, stream)->recording() != nullptr;
}

void SimtDriver::GraphReplay(int device, uint64_t graph, uint64_t stream) {
  std::shared_ptr<Recording> recording;
  {
    State& state = GetState();
    std::lock_guard<std::mutex> lock(state.mutex);
    const auto found = state.graphs.find(graph);
    if (found == state.graphs.end() || found->second->device != device)
      Fail("The simulated GPU " + In(device) + " has no graph " + In(static_cast<int64_t>(graph)) + ".");
    recording = found->second;
  }
  FindStream(device, stream)->Queue([recording](Runner& runner) { recording->Run(runner); });
}

void SimtDriver::GraphDestroy(int, uint64_t graph) {
  std::shared_ptr<Recording> last;  // its tasks may hold a stream: not under the lock
  std::lock_guard<std::mutex> lock(GetState().mutex);
  const auto found = GetState().graphs.find(graph);
  if (found == GetState().graphs.end()) return;
  last = found->second;
  GetState().graphs.erase(found);
}

// --- kernels

const char* SimtDriver::Prelude() const { return simt::Prelude(); }
std::string SimtDriver::Compiler() { return CompilerVersion(); }
std::string SimtDriver::Compile(const std::string& text, const std::string&, const std::string& what) {
  return CompileText(text, what);
}

uint64_t SimtDriver::Load(int device, const std::string& binary) {
  FindDevice(device);
  auto module = std::make_unique<Module>();
  module->handle = LoadObject(binary);
  std::lock_guard<std::mutex> lock(GetState().mutex);
  GetState().modules.push_back(std::move(module));
  return reinterpret_cast<uint64_t>(GetState().modules.back().get());
}

uint64_t SimtDriver::Function(uint64_t handle, const std::string& name) {
  auto* module = reinterpret_cast<Module*>(handle);
  std::lock_guard<std::mutex> lock(GetState().mutex);
  const auto found = module->entries.find(name);
  if (found != module->entries.end()) return reinterpret_cast<uint64_t>(&found->second);
  auto* table = static_cast<Table*>(dlsym(module->handle, "simt_table"));
  auto thunk = reinterpret_cast<void (*)(void**)>(dlsym(module->handle, (name + "_thunk").c_str()));
  auto sizes = reinterpret_cast<const int* (*)()>(dlsym(module->handle, (name + "_sizes").c_str()));
  if (!table || !thunk || !sizes) Fail("The module has no kernel (" + name + ").");
  Entry& entry = module->entries[name];
  entry.kernel = {name, table, thunk};
  entry.module = module;
  for (const int* size = sizes(); *size != 0; ++size) entry.sizes.push_back(*size);
  return reinterpret_cast<uint64_t>(&entry);
}

void SimtDriver::Run(int device, const gpu::Launch& launch) {
  auto* entry = reinterpret_cast<Entry*>(launch.function);
  const std::string kernel = "The kernel (" + entry->kernel.name + ") ";
  struct alignas(16) Slot {
    char bytes[16];
  };
  struct Queued {
    gpu::Launch launch;
    std::vector<Slot> bytes;
    std::vector<void*> arguments;
  };
  auto queued = std::make_shared<Queued>();
  queued->launch = launch;
  const uint64_t limits[2][3] = {{INT32_MAX, 65535, 65535}, {1024, 1024, 64}};  // CUDA's
  for (int d = 0; d < 3; ++d) {
    if (launch.blocks[d] - uint64_t{1} < limits[0][d] && launch.threads[d] - uint64_t{1} < limits[1][d])
      continue;
    Fail(kernel + "cannot have " + In(launch.blocks[d]) + " groups of " + In(launch.threads[d]) +
         " work-items in dimension " + In(d) + ".");
  }
  const uint64_t items = uint64_t{launch.threads[0]} * launch.threads[1] * launch.threads[2];
  if (items > 1024)
    Fail(kernel + "cannot have " + In(static_cast<int64_t>(items)) + " work-items in a group.");
  if (launch.count != entry->sizes.size()) {
    Fail(kernel + "has " + In(static_cast<int64_t>(entry->sizes.size())) + " parameters, its launch " +
         In(static_cast<int64_t>(launch.count)) + " arguments.");
  }
  size_t total = 0;
  for (size_t i = 0; i < launch.count; ++i) total += (launch.sizes[i] + 15) / 16;
  queued->bytes.resize(total);
  char* at = reinterpret_cast<char*>(queued->bytes.data());
  for (size_t i = 0; i < launch.count; ++i) {
    const std::string argument =
        "Argument " + In(static_cast<int64_t>(i)) + " of the kernel (" + entry->kernel.name + ")";
    if (launch.sizes[i] != static_cast<size_t>(std::abs(entry->sizes[i]))) {
      Fail(argument + " has " + In(static_cast<int64_t>(launch.sizes[i])) + " bytes, its parameter " +
           In(std::abs(entry->sizes[i])) + ".");
    }
    std::memcpy(at, launch.arguments[i], launch.sizes[i]);
    void* pointer = nullptr;
    if (entry->sizes[i] < 0) std::memcpy(&pointer, at, sizeof(pointer));
    if (pointer && !IsPinned(pointer, 0)) CheckHeld(device, pointer, 0, argument);
    queued->arguments.push_back(at);
    at += (launch.sizes[i] + 15) / 16 * 16;
  }
  State& state = GetState();
  uint64_t seed = state.seed;
  if (seed != 0) {
    std::lock_guard<std::mutex> lock(state.mutex);
    seed = seed * 0x2545F4914F6CDD1D + ++state.launches;
  }
  FindStream(device, launch.stream)->Queue([entry, queued, seed](Runner& runner) {
    std::lock_guard<std::mutex> lock(entry->module->running);
    runner.Run(entry->kernel, queued->launch.blocks, queued->launch.threads, queued->arguments.data(), seed);
  });
}

}  // namespace simt
