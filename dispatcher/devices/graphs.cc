#include "dispatcher/devices/graphs.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "dispatcher/devices/device_memory.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/devices/late_errors.h"
#include "dispatcher/plugins/status.h"
#include "tensor/allocator.h"
#include "tensor/error.h"

namespace mica {
namespace {

// Threads that record: while there is none, the question costs one relaxed load.
std::atomic<int> g_recordings{0};
std::atomic<uint64_t> g_last_number{0};

struct ThisThread {
  std::shared_ptr<RecordedWork> work;               // that it records
  std::vector<std::shared_ptr<RecordedWork>> past;  // given up meanwhile, when nothing can be waited for
  ~ThisThread() {
    if (work) DropStatus(std::exchange(work, nullptr)->Stop());
  }
};
ThisThread& This() {
  static thread_local ThisThread thread;
  return thread;
}

// The streams of all recordings, for threads that wait for a device.
struct RecordedStreams {
  std::mutex mutex;
  std::vector<StreamRef> list;
  std::map<int64_t, int> waiting;  // threads, by device
  std::condition_variable waited;
};
RecordedStreams& AllRecorded() {
  static RecordedStreams* streams = new RecordedStreams();  // never destroyed, as the next
  return *streams;
}

struct Pools {
  std::mutex mutex;
  std::map<std::pair<uint64_t, int64_t>, std::weak_ptr<MemoryPool>> live;  // by number and device
  uint64_t last = 0, last_key = 0;
};
Pools& AllPools() {
  static Pools* pools = new Pools();
  return *pools;
}
int64_t NumberOf(Device d) { return int64_t{d.backend} << 16 | static_cast<uint16_t>(d.index); }

// Sets the words of a replay aside, and tells its kernels where they begin.
void SetNext(const RecordedWords& words) {
  const Tensor now = EmptyTensor({2}, DType::kI64, Device{});
  auto* numbers = static_cast<uint64_t*>(now.data());
  {
    auto& philox = static_cast<PhiloxGenerator&>(*words.generator);
    const std::lock_guard lock(philox.mutex());
    const auto [seed, first] = philox.SetAside(words.most + 3);  // so that it begins with a whole block
    numbers[0] = seed;
    numbers[1] = (first + 3) / 4 * 4;
  }
  CopyBytesLater(words.place, now);
}

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
  if (!pool) slot = pool = std::shared_ptr<MemoryPool>(new MemoryPool(device, id, ++pools.last_key));
  return pool;
}

MemoryPool::~MemoryPool() {
  FinishDevice(device_);  // what reads the blocks on whatever stream
  AllocatorFor(device_).EndPool(key_);
  Pools& pools = AllPools();
  const std::lock_guard lock(pools.mutex);
  const auto found = pools.live.find({id_, NumberOf(device_)});
  if (found != pools.live.end() && found->second.expired()) pools.live.erase(found);
}

bool Recording() { return g_recordings.load(std::memory_order_relaxed) != 0 && This().work; }

RecordedWork* RecordingOf(const StreamRef& stream) {
  return Recording() && This().work->Has(stream) ? This().work.get() : nullptr;
}

RecordedWork* RecordingOn(Device device) {
  return Recording() ? RecordingOf({device, CurrentStream(device)}) : nullptr;
}

bool IsRecorded(const StreamRef& stream) {
  if (g_recordings.load(std::memory_order_relaxed) == 0) return false;
  RecordedStreams& all = AllRecorded();
  const std::lock_guard lock(all.mutex);
  return std::find(all.list.begin(), all.list.end(), stream) != all.list.end();
}

bool AnyRecordingOn(Device device) {
  if (g_recordings.load(std::memory_order_relaxed) == 0) return false;
  RecordedStreams& all = AllRecorded();
  const std::lock_guard lock(all.mutex);
  return std::any_of(all.list.begin(), all.list.end(),
                     [&](const StreamRef& stream) { return stream.device == device; });
}

DeviceWait::DeviceWait(Device device) : device_(device) {
  RecordedStreams& all = AllRecorded();
  const std::lock_guard lock(all.mutex);
  ++all.waiting[NumberOf(device)];
}

DeviceWait::~DeviceWait() {
  RecordedStreams& all = AllRecorded();
  const std::lock_guard lock(all.mutex);
  --all.waiting[NumberOf(device_)];
  all.waited.notify_all();
}

void JoinRecording(uint64_t number, const StreamRef& stream) {
  if (number != 0 && Recording() && This().work->number() == number) This().work->Join(stream);
}

void RefuseWhileRecording(Device device, const char* what) {
  MICA_CHECK(!Recording() || This().work->device() != device, what, " needs an answer of the device (",
             device.ToString(),
             "), which computes nothing while its work is recorded into a graph; do it before the recording "
             "or after it.");
}

std::string RecordedState(Generator& generator) {
  const RecordedWords* words = Recording() ? This().work->FindWords(generator) : nullptr;
  if (!words) return generator.GetState();
  Generator* const behind = generator.Clone();
  static_cast<PhiloxGenerator*>(behind)->SetAside(words->count);
  std::string state = behind->GetState();
  behind->Release();
  return state;
}

void SetRecordedState(Generator& generator, std::string_view state) {
  RecordedWords* words = Recording() ? This().work->FindWords(generator) : nullptr;
  auto* philox = dynamic_cast<PhiloxGenerator*>(&generator);
  if (!words && !(Recording() && philox && generator.device() == This().work->device()))
    return generator.SetState(state);
  Generator* const wanted = generator.Clone();
  wanted->SetState(state);
  const bool same_seed = wanted->InitialSeed() == generator.InitialSeed();
  const auto behind =
      static_cast<int64_t>(static_cast<PhiloxGenerator*>(wanted)->offset() - philox->offset());
  wanted->Release();
  MICA_CHECK(same_seed && behind >= 0 && behind <= (words ? words->most : 0), "The generator on (",
             generator.device().ToString(),
             ") is recorded into a graph, and can be set to no other state than one that it had since the "
             "recording began.");
  if (words) words->count = behind;
}

void RefuseSeeding(const Generator* generator) {
  MICA_CHECK(!Recording() || (generator && generator->device() != This().work->device()),
             "A generator cannot be seeded while this thread records a graph: each replay draws other "
             "numbers. Seed before the recording, or before a replay.");
}

RecordedWork::RecordedWork(const StreamRef& stream, const MicaDeviceTable* giver,
                           std::shared_ptr<MemoryPool> pool)
    : pool_(std::move(pool)), stream_(stream), giver_(giver), number_(++g_last_number) {}

RecordedWork::~RecordedWork() {
  if (handle_ != 0 && LiveDeviceTable(device().backend)) {
    last_replay_.Finish();
    KeepLate(device(), giver_->graph_destroy(giver_->context, device().index, handle_));
  }
  for (const auto& drawn : words_) drawn->generator->Release();
}

bool RecordedWork::Has(const StreamRef& stream) const {
  return std::find(streams_.begin(), streams_.end(), stream) != streams_.end();
}

void RecordedWork::Join(const StreamRef& stream) {
  if (Has(stream)) return;
  streams_.push_back(stream);
  RecordedStreams& all = AllRecorded();
  const std::lock_guard lock(all.mutex);
  all.list.push_back(stream);
}

MicaStatus RecordedWork::Start() {
  g_recordings.fetch_add(1, std::memory_order_relaxed);
  AllocatorFor(device()).BeginRecording();
  Join(stream_);  // whoever waits for the device from now on leaves the stream out
  {
    RecordedStreams& all = AllRecorded();
    std::unique_lock lock(all.mutex);
    all.waited.wait_for(lock, std::chrono::seconds(1), [&] { return all.waiting[NumberOf(device())] == 0; });
  }
  const MicaStatus s = giver_->capture_begin(giver_->context, device().index, stream_.handle);
  recording_ = s == nullptr;
  if (s) Leave();
  return s;
}

void RecordedWork::Leave() {
  {
    RecordedStreams& all = AllRecorded();
    const std::lock_guard lock(all.mutex);
    std::erase_if(all.list, [&](const StreamRef& stream) { return Has(stream); });
  }
  streams_.clear();
  g_recordings.fetch_sub(1, std::memory_order_relaxed);
  AllocatorFor(device()).EndRecording();
}

MicaStatus RecordedWork::Stop() {
  recording_ = false;
  const MicaStatus s = CatchAll([&] {
    DeviceTableOf(device());  // that it lives
    ThrowIfError(giver_->capture_end(giver_->context, device().index, stream_.handle, &handle_));
  });
  if (s) handle_ = 0;
  Leave();
  This().past.clear();
  return s;
}

RecordedWords* RecordedWork::FindWords(const Generator& generator) {
  for (const auto& words : words_)
    if (words->generator == &generator) return words.get();
  return nullptr;
}

RecordedWords& RecordedWork::WordsOf(Generator& generator) {
  if (RecordedWords* found = FindWords(generator)) return *found;
  auto words = std::make_unique<RecordedWords>();
  words->place = EmptyTensor({2}, DType::kI64, device());
  generator.Retain();
  words->generator = &generator;
  words_.push_back(std::move(words));
  return *words_.back();
}

void RecordedWork::Replay(const StreamRef& stream) {
  const MicaDeviceTable& table = DeviceTableOf(stream.device);
  MICA_CHECK(giver_ == &table, "The plugin of the device (", device().ToString(),
             ") was replaced since the graph was recorded; record it again.");
  RefuseWhileRecording(stream.device, "The replay of another graph");
  if (!(last_stream_ == stream)) last_replay_.Wait(stream);  // never twice at once
  for (const auto& words : words_) SetNext(*words);
  RaiseLate(stream.device);
  RaiseReported(stream.device,
                table.graph_replay(table.context, stream.device.index, handle_, stream.handle));
  Launched(stream.device, "a recorded graph", stream.handle);
  last_replay_.Record(stream);
  last_stream_ = stream;
}

DeviceGraph::~DeviceGraph() {
  Abandon();
  GiveUp(Take());  // where another thread records it, that one keeps it until its recording ends
}

void DeviceGraph::Begin(const StreamRef& stream, std::shared_ptr<MemoryPool> pool) {
  const Device device = stream.device;
  ThisThread& thread = This();
  if (thread.work && thread.work.use_count() == 1)  // its graph is gone
    DropStatus(std::exchange(thread.work, nullptr)->Stop());
  MICA_CHECK(!thread.work, "This thread records another graph already; end that recording first.");
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
  if (!pool) pool = MemoryPool::Of(device, MemoryPool::NewId());
  auto work = std::make_shared<RecordedWork>(stream, &table, std::move(pool));
  ThrowIfError(work->Start());
  thread.work = work_ = std::move(work);
}

void DeviceGraph::End() {
  MICA_CHECK(work_ && work_->recording(), "The graph is not being recorded, so that no recording can end.");
  MICA_CHECK(This().work == work_, "A recording is ended by the thread that began it.");
  This().work = nullptr;
  if (const MicaStatus s = work_->Stop()) {
    work_ = nullptr;
    ThrowStatus(s);
  }
}

void DeviceGraph::Abandon() noexcept {
  if (!work_ || !work_->recording() || This().work != work_) return;
  This().work = nullptr;
  DropStatus(work_->Stop());
  work_ = nullptr;
}

void DeviceGraph::Replay() {
  MICA_CHECK(work_ && !work_->recording(),
             "The graph holds no recording to replay; record one with capture_begin() and "
             "capture_end(), or with `with mica.cuda.graph(g):`.");
  const std::shared_ptr<RecordedWork> work = work_;
  work->Replay({work->device(), CurrentStream(work->device())});
}

std::shared_ptr<RecordedWork> DeviceGraph::Take() { return std::exchange(work_, nullptr); }

void GiveUp(std::shared_ptr<RecordedWork> work) {
  if (work && Recording()) This().past.push_back(std::move(work));
}

}  // namespace mica
