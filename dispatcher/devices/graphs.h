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
#include <vector>

#include "dispatcher/devices/streams.h"
#include "tensor/device.h"
#include "tensor/generator.h"
#include "tensor/tensor.h"

namespace mica {

// Memory that recordings share; each owner keeps it. Blocks go to everybody when the last has ended.
class MemoryPool {
 public:
  // A number that no pool has had, for pools that are made later.
  static uint64_t NewId();
  // The pool of that number and device, made where nobody keeps one.
  static std::shared_ptr<MemoryPool> Of(Device device, uint64_t id);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  uint64_t id() const { return id_; }

 private:
  MemoryPool(Device device, uint64_t id) : device_(device), id_(id) {}
  const Device device_;
  const uint64_t id_;
};

// Words of a generator that a recording's kernels draw.
struct RecordedWords {
  Generator* generator;
  Tensor place;       // on the device: the seed, and the first word of a replay
  int64_t count = 0;  // of all kernels
};

class DeviceGraph {
 public:
  // Which calls of the process, beside the recorded ones, end a recording: the device's matter.
  enum class Mode : int32_t { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };

  DeviceGraph() = default;
  DeviceGraph(const DeviceGraph&) = delete;
  ~DeviceGraph();

  // `pool`: NULL for one of its own. Throws a kRuntime Error for the device's default stream, where this
  // thread records already or the graph holds a recording; kNotImplemented for a device that records nothing.
  void Begin(const StreamRef& stream, std::shared_ptr<MemoryPool> pool, Mode mode);
  // By the thread that began. Where the device says that it could not record, the graph is empty again.
  void End();
  // Ends a recording that nobody wants; nothing where there is none of this thread's.
  void Abandon() noexcept;
  void Replay(const StreamRef& stream);
  // Gives up what was recorded, once its last replay is done, and its pool.
  void Reset();

  bool recording() const { return recording_; }
  bool recorded() const { return work_ && !recording_; }
  // Of what is or was recorded; only then.
  Device device() const { return work_->stream.device; }
  uint64_t pool_id() const { return work_->pool->id(); }

  // For what the host queues while it records.
  void Keep(const Tensor& t) { work_->kept.push_back(t); }
  RecordedWords& WordsOf(Generator& generator);

  // What is recorded: graphs.cc's own.
  struct Work {
    ~Work();
    StreamRef stream;
    const MicaDeviceTable* giver = nullptr;
    std::shared_ptr<MemoryPool> pool;
    uint64_t handle = 0;
    std::vector<Tensor> kept;
    std::vector<std::unique_ptr<RecordedWords>> words;
    Event last_replay;
  };

 private:
  MicaStatus Stop();
  std::unique_ptr<Work> work_;
  bool recording_ = false;
};

// Whether this thread records, on whatever device.
bool Recording();
// The graph that this thread records on the device; NULL if there is none.
DeviceGraph* RecordingOn(Device device);
// The pool of this thread's blocks there; 0 if it records nothing.
uint64_t CurrentPool(Device device);
// Throws a kRuntime Error where this thread records on the device. `what` begins the sentence.
void RefuseWhileRecording(Device device, const char* what);

}  // namespace mica
