// Work of a stream that is recorded once and run again with one call: what CUDA calls a graph.
//
// Between Begin and End the operators that this thread calls on the device compute nothing: the
// device keeps what they queue. Replay queues it all again, with the same addresses: what goes
// in is written into the tensors that were read, what comes out lies in those that were made.
// Memory of a recording comes from a pool that no one else is given blocks of (allocator.h).
// Random numbers are drawn anew each time: the kernels read where their generator stands
// (MicaHost.random_words). What needs an answer of the device while it records (a value, an
// event that has passed, pageable memory of the host) is refused with a sentence, and the
// recording goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dispatcher/devices/streams.h"
#include "tensor/device.h"
#include "tensor/generator.h"
#include "tensor/tensor.h"

namespace mica {

// Memory that recordings share; each owner keeps it. When the last has ended, and the device has done what
// it was given, blocks go to everybody.
class MemoryPool {
 public:
  // A number that no pool has had, for pools that are made later.
  static uint64_t NewId();
  // The pool of that number and device, made where nobody keeps one.
  static std::shared_ptr<MemoryPool> Of(Device device, uint64_t id);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  uint64_t id() const { return id_; }
  uint64_t key() const { return key_; }  // the allocator's: another where a number is used again

 private:
  MemoryPool(Device device, uint64_t id, uint64_t key) : device_(device), id_(id), key_(key) {}
  const Device device_;
  const uint64_t id_, key_;
};

// Words of a generator that a recording's kernels draw.
struct RecordedWords {
  Generator* generator;
  Tensor place;       // on the device: the seed, and the first word of a replay
  int64_t count = 0;  // up to the next kernel
  int64_t most = 0;   // of all kernels
};

// What is or was recorded: shared by its graph and, while it is recorded, by the thread that does.
class RecordedWork {
 public:
  RecordedWork(const StreamRef& stream, const MicaDeviceTable* giver, std::shared_ptr<MemoryPool> pool);
  ~RecordedWork();
  RecordedWork(const RecordedWork&) = delete;

  Device device() const { return stream_.device; }
  const MemoryPool& pool() const { return *pool_; }
  uint64_t number() const { return number_; }  // which no other has
  bool recording() const { return recording_; }
  // While it is recorded, by the thread that does:
  bool Has(const StreamRef& stream) const;
  void Join(const StreamRef& stream);
  void Keep(const Tensor& t) { kept_.push_back(t); }
  RecordedWords* FindWords(const Generator& generator);
  RecordedWords& WordsOf(Generator& generator);
  // Begins and ends the recording on the device; what it says where it records, or has recorded, nothing.
  MicaStatus Start();
  MicaStatus Stop();

  void Replay(const StreamRef& stream);

 private:
  void Leave();
  const std::shared_ptr<MemoryPool> pool_;  // ends behind what follows
  const StreamRef stream_;
  const MicaDeviceTable* const giver_;
  const uint64_t number_;
  uint64_t handle_ = 0;
  bool recording_ = false;
  std::vector<StreamRef> streams_;
  std::vector<Tensor> kept_;
  std::vector<std::unique_ptr<RecordedWords>> words_;
  Event last_replay_;
  StreamRef last_stream_;
};

class DeviceGraph {
 public:
  DeviceGraph() = default;
  DeviceGraph(const DeviceGraph&) = delete;
  ~DeviceGraph();

  // `pool`: NULL for one of its own. Throws a kRuntime Error for the device's default stream, where this
  // thread records already or the graph holds a recording; kNotImplemented for a device that records nothing.
  void Begin(const StreamRef& stream, std::shared_ptr<MemoryPool> pool);
  // By the thread that began. Where the device says that it could not record, the graph is empty again.
  void End();
  // Ends a recording that nobody wants; nothing where there is none of this thread's.
  void Abandon() noexcept;
  // In the order of the current stream of the device that was recorded.
  void Replay();
  // Empties the graph; what was recorded is for GiveUp.
  std::shared_ptr<RecordedWork> Take();
  // NULL where the graph is empty.
  const RecordedWork* work() const { return work_.get(); }

 private:
  std::shared_ptr<RecordedWork> work_;
};
// Ends what was recorded once its last replay is done, or once this thread records nothing else.
void GiveUp(std::shared_ptr<RecordedWork> work);

// Whether this thread records, on whatever device.
bool Recording();
// What this thread records, if the stream is part of it; NULL if not.
RecordedWork* RecordingOf(const StreamRef& stream);
// The same of the current stream of a device.
RecordedWork* RecordingOn(Device device);
// Whether the stream is part of what any thread records, and whether there is such a one on the device.
bool IsRecorded(const StreamRef& stream);
bool AnyRecordingOn(Device device);
// While a thread waits for a device's streams: none of those that are not recorded then begins to be. No lock
// is held meanwhile, so that what a plugin does may need any; a recording waits a second at most.
class DeviceWait {
 public:
  explicit DeviceWait(Device device);
  ~DeviceWait();
  DeviceWait(const DeviceWait&) = delete;

 private:
  const Device device_;
};
// The stream waits for an event of a recording, by its number: it becomes part of it.
void JoinRecording(uint64_t number, const StreamRef& stream);
// Throws a kRuntime Error where this thread records on the device. `what` begins the sentence.
void RefuseWhileRecording(Device device, const char* what);

// The state of a generator behind what this thread records of it, and setting it to one that it has had.
std::string RecordedState(Generator& generator);
void SetRecordedState(Generator& generator, std::string_view state);
// Throws a kRuntime Error where this thread records on the generator's device (NULL: any): each replay draws
// other numbers, whatever the seed was.
void RefuseSeeding(const Generator* generator);

}  // namespace mica
