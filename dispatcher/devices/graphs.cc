#include "dispatcher/devices/graphs.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "dispatcher/devices/device_memory.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/plugins/status.h"
#include "tensor/allocator.h"
#include "tensor/error.h"

namespace mica {
namespace {

// Threads that record: while there is none, the question costs one relaxed load.
std::atomic<int> g_recordings{0};
thread_local DeviceGraph* t_recording = nullptr;
// Graphs that were given up while this thread records, when nothing can be waited for.
thread_local std::vector<std::unique_ptr<DeviceGraph::Work>> t_past;

struct Pools {
  std::mutex mutex;
  std::map<std::pair<uint64_t, int64_t>, std::weak_ptr<MemoryPool>> live;  // by number and device
  uint64_t last = 0;
};
Pools& AllPools() {
  static Pools* pools = new Pools();  // never destroyed: graphs may outlive statics
  return *pools;
}

// Sets the words of a replay aside, and tells its kernels where they begin.
void SetNext(const RecordedWords& words) {
  const Tensor now = EmptyTensor({2}, DType::kI64, Device{});
  auto* numbers = static_cast<uint64_t*>(now.data());
  {
    auto& philox = static_cast<PhiloxGenerator&>(*words.generator);
    const std::lock_guard lock(philox.mutex());
    const auto [seed, first] = philox.SetAside(words.count + 3);  // so that it begins with a whole block
    numbers[0] = seed;
    numbers[1] = (first + 3) / 4 * 4;
  }
  CopyBytesLater(words.place, now);
}

int64_t NumberOf(Device d) { return int64_t{d.backend} << 16 | static_cast<uint16_t>(d.index); }

}  // namespace

uint64_t MemoryPool::NewId() {
  Pools& pools = AllPools();
  const std::lock_guard lock(pools.mutex);
  return ++pools.last;
}

std::shared_ptr<MemoryPool> MemoryPool::Of(Device device, uint64_t id) {
  Pools& pools = AllPools();
  const std::lock_guard lock(pools.mutex);
  MICA_CHECK_VALUE(id > 0 && id <= pools.last, "The memory pool (", id,
                   ") is none that graph_pool_handle() or a graph's pool() gave.");
  std::weak_ptr<MemoryPool>& slot = pools.live[{id, NumberOf(device)}];
  std::shared_ptr<MemoryPool> pool = slot.lock();
  if (!pool) slot = pool = std::shared_ptr<MemoryPool>(new MemoryPool(device, id));
  return pool;
}

MemoryPool::~MemoryPool() {
  AllocatorFor(device_).EndPool(id_);
  Pools& pools = AllPools();
  const std::lock_guard lock(pools.mutex);
  const auto found = pools.live.find({id_, NumberOf(device_)});
  if (found != pools.live.end() && found->second.expired()) pools.live.erase(found);
}

bool Recording() { return t_recording != nullptr; }

DeviceGraph* RecordingOn(Device device) {
  if (g_recordings.load(std::memory_order_relaxed) == 0 || !t_recording) return nullptr;
  return t_recording->device() == device ? t_recording : nullptr;
}

uint64_t CurrentPool(Device device) {
  const DeviceGraph* graph = RecordingOn(device);
  return graph ? graph->pool_id() : 0;
}

void RefuseWhileRecording(Device device, const char* what) {
  MICA_CHECK(!RecordingOn(device), what, " needs an answer of the device (", device.ToString(),
             "), which computes nothing while its work is recorded into a graph; do it before the recording "
             "or after it.");
}

DeviceGraph::Work::~Work() {
  if (handle != 0 && LiveDeviceTable(stream.device.backend)) {
    last_replay.Finish();
    const DeviceGuard current(stream.device);
    KeepLate(stream.device.backend, giver->graph_destroy(giver->context, stream.device.index, handle));
  }
  for (const auto& drawn : words) drawn->generator->Release();
}

DeviceGraph::~DeviceGraph() {
  Abandon();
  // Its thread records still, and this one may not end that.
  MICA_INTERNAL(!recording_, "a graph ends in another thread than the one that records it.");
  Reset();
}

void DeviceGraph::Begin(const StreamRef& stream, std::shared_ptr<MemoryPool> pool, Mode mode) {
  const Device device = stream.device;
  MICA_CHECK(!t_recording, "This thread records another graph already; end that recording first.");
  MICA_CHECK(!work_, "The graph holds a recording already; call reset() first.");
  MICA_CHECK_IMPLEMENTED(device.backend >= 2, "The device (", device.ToString(),
                         ") computes at once and records no graph.");
  const MicaDeviceTable& table = DeviceTableOf(device);
  MICA_CHECK_IMPLEMENTED(
      table.capture_begin && table.capture_end && table.graph_replay && table.graph_destroy, "The device (",
      device.ToString(),
      ") records no graph: `capture_begin` lacks in its table; run the work each time, as without a graph.");
  MICA_CHECK(stream.handle != 0, "The default stream of the device (", device.ToString(),
             ") cannot be recorded; make another one current, as `with mica.cuda.graph(g):` does.");
  auto work = std::make_unique<Work>();
  work->stream = stream;
  work->giver = &table;
  work->pool = pool ? std::move(pool) : MemoryPool::Of(device, MemoryPool::NewId());
  CachingAllocator& allocator = AllocatorFor(device);
  allocator.BeginRecording();
  const DeviceGuard current(device);
  if (const MicaStatus s =
          table.capture_begin(table.context, device.index, stream.handle, static_cast<int32_t>(mode))) {
    allocator.EndRecording();
    ThrowStatus(s);
  }
  work_ = std::move(work);
  recording_ = true;
  t_recording = this;
  g_recordings.fetch_add(1, std::memory_order_relaxed);
}

// Ends the recording in any case; where the device recorded nothing, without Work.
MicaStatus DeviceGraph::Stop() {
  const Device device = work_->stream.device;
  const DeviceGuard current(device);
  const MicaStatus s =
      work_->giver->capture_end(work_->giver->context, device.index, work_->stream.handle, &work_->handle);
  recording_ = false;
  t_recording = nullptr;
  g_recordings.fetch_sub(1, std::memory_order_relaxed);
  AllocatorFor(device).EndRecording();
  t_past.clear();
  if (s) {
    work_->handle = 0;
    work_.reset();
  }
  return s;
}

void DeviceGraph::End() {
  MICA_CHECK(recording_, "The graph is not being recorded, so that no recording can end.");
  MICA_CHECK(t_recording == this, "A recording is ended by the thread that began it.");
  ThrowIfError(Stop());
}

void DeviceGraph::Abandon() noexcept {
  if (!recording_ || t_recording != this) return;
  DropStatus(Stop());
  work_.reset();
}

void DeviceGraph::Replay(const StreamRef& stream) {
  MICA_CHECK(recorded(),
             "The graph holds no recording to replay; record one with capture_begin() and "
             "capture_end(), or with `with mica.cuda.graph(g):`.");
  MICA_CHECK(stream.device == device(), "The graph was recorded on the device (", device().ToString(),
             ") and cannot run on (", stream.device.ToString(), ").");
  const MicaDeviceTable& table = DeviceTableOf(stream.device);
  MICA_CHECK(work_->giver == &table, "The plugin of the device (", device().ToString(),
             ") was replaced since the graph was recorded; record it again.");
  RefuseWhileRecording(stream.device, "The replay of another graph");
  const DeviceGuard current(stream.device);
  const StreamGuard chosen(stream);
  for (const auto& words : work_->words) SetNext(*words);
  ThrowIfError(table.graph_replay(table.context, stream.device.index, work_->handle, stream.handle));
  work_->last_replay.Record(stream);
}

void DeviceGraph::Reset() {
  MICA_CHECK(!recording_, "The graph is being recorded; end the recording before reset().");
  if (!work_) return;
  if (RecordingOn(device()))
    t_past.push_back(std::move(work_));
  else
    work_.reset();
}

RecordedWords& DeviceGraph::WordsOf(Generator& generator) {
  for (const auto& words : work_->words)
    if (words->generator == &generator) return *words;
  auto words = std::make_unique<RecordedWords>();
  words->place = EmptyTensor({2}, DType::kI64, device());
  generator.Retain();
  words->generator = &generator;
  work_->words.push_back(std::move(words));
  return *work_->words.back();
}

}  // namespace mica
