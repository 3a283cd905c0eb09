// Two devices that are truly late: each stream is a thread that does its work a little
// after it was asked. The kit's checks are tested with it: as it is, all pass; with
// LATE_FAULT naming a promise that it breaks, the check of that promise must fail.
// test_conformance_device.py lists the faults and the checks; what each does stands
// where Breaks() asks for it. Beside those:
//
//   crash        a copy writes where nothing is
//   hang         a copy never ends
//   objects      no promise: it says that it supports neither x * x nor add
//   declines     no promise either: it neither fills nor copies to the other device
//
//   rude         every function of the table makes the other device current and leaves it so
//   busy         the other device does not say what it is
//   fork         after a fork it says that it has no device, as CUDA does once it was opened
//   reports      what makes a device current reports what it did, too
//
// LATE_MICROSECONDS is how long each job takes beside its work (1000), or the option late.microseconds where
// it is not negative. LATE_FAIL=text:n says
// that the n-th kernel from now on fails when it runs, where another text begins again; the next
// call of its device reports it, whichever that is, and with LATE_LOST=words each call from then on. With
// LATE_LOST=code that call says that the device is lost, and any later one ends the process.
// The settings are read at each call, so that a process may change them.
//
// It has five kernels, mul, add, neg and relu of contiguous float32 tensors and copy_ of matrices, which run
// in their stream as copies do (where that is the default stream, in that of the current device, as on GPUs),
// and pinned memory. With LATE_SAY it says on stderr what it is asked for: each kernel with its stream,
// streams made and destroyed, pinned blocks, fills, memory in the order of a stream. It has LATE_MEMORY bytes
// a device (2^33), no pinned memory with LATE_UNPINNED, none left with LATE_FULL, and memory in the order of
// streams with LATE_ORDERED.
// With LATE_ASK, each function but the first two asks the host for memory in another thread and waits for
// that, which never ends where the host holds a lock meanwhile.
#include <mica/device.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

bool Breaks(const char* promise) {
  const char* const fault = std::getenv("LATE_FAULT");
  return fault && std::string(fault) == promise;
}

const mica::plugin::Option& Microseconds() {
  static const mica::plugin::Option option("late.microseconds", -1);
  return option;
}

std::chrono::microseconds TimeOfJob() {
  if (Microseconds().value() >= 0) return std::chrono::microseconds(Microseconds().value());
  const char* const text = std::getenv("LATE_MICROSECONDS");
  return std::chrono::microseconds(text ? std::atoi(text) : 1000);
}

template <typename... T>
void Say(const char* format, T... values) {
  static const bool say = std::getenv("LATE_SAY") != nullptr;
  if (say) std::fprintf(stderr, format, values...);
}

class Queue {
 public:
  Queue() : thread_([this] { Work(); }) {}
  void Add(std::function<void()> job) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Job late{TimeOfJob(), std::move(job)};
    if (Breaks("order"))
      jobs_.push_front(std::move(late));
    else
      jobs_.push_back(std::move(late));
    ++left_;
    changed_.notify_all();
  }
  void Drain() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return left_ == 0; });
  }
  bool Idle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return left_ == 0;
  }
  void Stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

 private:
  struct Job {
    std::chrono::microseconds time;
    std::function<void()> work;
  };
  void Work() {
    for (;;) {
      Job job;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      if (job.time.count() > 0) std::this_thread::sleep_for(job.time);
      job.work();
      const std::lock_guard<std::mutex> lock(mutex_);
      --left_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  int64_t left_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

// One recording of an event.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::chrono::steady_clock::time_point when;
  void Set() {
    const std::lock_guard<std::mutex> lock(mutex);
    done = true;
    when = std::chrono::steady_clock::now();
    changed.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return done; });
  }
  bool Done() {
    const std::lock_guard<std::mutex> lock(mutex);
    return done;
  }
};

int64_t Memory() {  // bytes of a device
  const char* const text = std::getenv("LATE_MEMORY");
  return text ? std::atoll(text) : int64_t{1} << 33;
}

thread_local bool t_asks = false;

void AskHost() {
  if (t_asks || !std::getenv("LATE_ASK")) return;
  std::thread([] {
    t_asks = true;
    const MicaHost* const host = mica::plugin::Host();
    const MicaDevice place{host->backend_index(mica::plugin::Str("late")), 0};
    void* data = nullptr;
    mica::plugin::Check(host->allocate(place, 64, 0, &data));
    host->free(place, data);
  }).join();
}

class LateDevice {
 public:
  int32_t Count() {
    if (Breaks("fork") && getpid() != opened_by_) throw std::runtime_error("It was opened before a fork.");
    return 2;
  }
  void Properties(int32_t device, MicaDeviceProperties* out) {
    if (device == 1 && Breaks("busy")) throw std::runtime_error("Unit 1 is in exclusive use.");
    out->name = "a late device";
    out->total_memory = Memory();
    out->free_memory = Memory() - used_[device];
  }
  int32_t ExchangeDevice(int32_t device) {
    if (Breaks("exchange")) return 0;
    if (Breaks("reports") && failed_[device])
      throw mica::plugin::Error(MICA_ERROR_DEVICE_LOST, "The late device has burnt out.");
    std::atomic<int32_t>& current = Current();
    const int32_t before = current.exchange(device);
    // One number for all threads: another thread gets the time to change it.
    if (Breaks("current")) std::this_thread::sleep_for(std::chrono::microseconds(200));
    return before;
  }
  void* Allocate(int32_t device, int64_t size) {
    AskHost();
    BeRude(device);
    void* data = size > Memory() - used_[device] ? nullptr : std::malloc(static_cast<size_t>(size));
    if (!data && Breaks("oom")) throw std::runtime_error("There is no room.");
    if (!data) throw std::bad_alloc();
    used_[device] += size;
    return data;
  }
  void Free(int32_t device, void* data, int64_t size) {
    AskHost();
    BeRude(device);
    if (Breaks("leak")) return;
    std::free(data);
    used_[device] -= size;
    Report(device);
  }

  void* StreamAllocate(int32_t device, int64_t size, uint64_t stream) {
    Say("%lld bytes for stream %d\n", static_cast<long long>(size), static_cast<int>(stream));
    void* const data = Allocate(device, size);
    const std::lock_guard<std::mutex> lock(mutex_);
    ordered_[data] = size;
    return data;
  }
  void StreamFree(int32_t device, void* data, uint64_t stream) {
    AskHost();
    BeRude(device);
    int64_t size;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      size = ordered_.at(data);
      ordered_.erase(data);
    }
    Say("%lld bytes of stream %d back\n", static_cast<long long>(size), static_cast<int>(stream));
    Of(device, stream).Add([=] {
      std::memset(data, 0xFF, static_cast<size_t>(size));  // who uses it still sees it
      std::free(data);
      used_[device] -= size;
    });
  }

  uint64_t StreamCreate(int32_t device, int32_t priority) {
    AskHost();
    BeRude(device);
    if (Breaks("stream_zero")) return 0;
    const std::lock_guard<std::mutex> lock(mutex_);
    queues_[++handles_] = std::make_unique<Queue>();
    Say("stream %d made\n", static_cast<int>(handles_));
    if (priority) Say("of priority %d\n", priority);
    return static_cast<uint64_t>(handles_);
  }
  void StreamDestroy(int32_t, uint64_t stream) {
    AskHost();
    std::unique_ptr<Queue> queue;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = queues_.find(static_cast<int64_t>(stream));
      queue = std::move(found->second);
      queues_.erase(found);
    }
    queue->Stop();
    Say("stream %d destroyed\n", static_cast<int>(stream));
  }
  void StreamSync(int32_t device, uint64_t stream) {
    AskHost();
    BeRude(device);
    if (!Breaks("stream_sync")) Of(device, stream).Drain();
    Report(device);
  }
  bool StreamQuery(int32_t device, uint64_t stream) {
    AskHost();
    Report(device);
    if (Breaks("stream_query_early")) return true;
    return !Breaks("stream_query_never") && Of(device, stream).Idle();
  }
  void DeviceSync(int32_t device) {
    AskHost();
    if (Breaks("device_sync")) return;
    std::vector<Queue*> queues;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (auto& [key, queue] : queues_)  // streams of the other device are waited for, too
        if (key >= 0 || key == KeyOf(device, 0)) queues.push_back(queue.get());
    }
    for (Queue* queue : queues) queue->Drain();
    Report(device);
  }
  uint64_t EventCreate(int32_t device) { return EventCreateWith(device, MICA_EVENT_TIMED); }
  uint64_t EventCreateWith(int32_t device, uint64_t flags) {
    AskHost();
    BeRude(device);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (flags) Say("event of flags %d made\n", static_cast<int>(flags));
    if (flags & MICA_EVENT_TIMED) timed_.insert(static_cast<uint64_t>(handles_ + 1));
    return static_cast<uint64_t>(++handles_);
  }
  void PriorityRange(int32_t, int32_t* least, int32_t* greatest) {
    *least = 0;
    *greatest = -2;
  }
  bool PeerAccess(int32_t device, int32_t peer) { return device < peer; }  // upwards alone
  int64_t Attribute(int32_t device, MicaStr key) {
    const std::string name(key.data, static_cast<size_t>(key.size));
    if (name == MICA_ATTRIBUTE_CAPABILITY_MAJOR) return 7;
    if (name == MICA_ATTRIBUTE_CAPABILITY_MINOR) return 5;
    if (name == "late.delay") return 1000 + device;
    throw mica::plugin::NotImplemented();
  }
  void EventDestroy(int32_t device, uint64_t event) {
    AskHost();
    BeRude(device);
    if (auto mark = MarkOf(event); mark && Breaks("event_destroy")) mark->Set();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      marks_.erase(event);
    }
    Report(device);
  }
  void EventRecord(int32_t device, uint64_t event, uint64_t stream) {
    AskHost();
    BeRude(device);
    auto mark = std::make_shared<Mark>();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (Breaks("record_once") && marks_.count(event)) return;
      marks_[event] = mark;
    }
    if (Breaks("record_early")) return mark->Set();
    Of(device, Breaks("record_stream0") ? 0 : stream).Add([mark] { mark->Set(); });
    Report(device);
  }
  void EventWait(int32_t device, uint64_t event, uint64_t stream) {
    AskHost();
    if (auto mark = MarkOf(event); mark && !Breaks("event_wait"))
      Of(device, stream).Add([mark] { mark->Wait(); });
  }
  void EventSync(int32_t device, uint64_t event) {
    AskHost();
    BeRude(device);
    if (auto mark = MarkOf(event); mark && !Breaks("event_sync")) mark->Wait();
    Report(device);
  }
  bool EventQuery(int32_t device, uint64_t event) {
    AskHost();
    Report(device);
    if (Breaks("event_query_early")) return true;
    const auto mark = MarkOf(event);
    return !Breaks("event_query_never") && (!mark || mark->Done());
  }
  double EventElapsed(int32_t, uint64_t start, uint64_t end) {
    if (!timed_.count(start) || !timed_.count(end)) throw std::runtime_error("An event is not timed.");
    const std::chrono::duration<double, std::milli> time = MarkOf(end)->when - MarkOf(start)->when;
    return Breaks("elapsed") ? 0 : time.count();
  }

  void Copy(void* to, MicaDevice to_device, const void* from, MicaDevice from_device, int64_t size,
            uint64_t stream) {
    AskHost();
    const auto bytes = static_cast<size_t>(size - (Breaks("copy") && size > 4 ? 1 : 0));
    const bool hangs = Breaks("hang"), crashes = Breaks("crash");
    const std::function<void()> work = [=] {
      while (hangs) std::this_thread::sleep_for(std::chrono::seconds(1));
      std::memmove(crashes ? nullptr : to, from, bytes);
    };
    if (Breaks("copy_now") || (Breaks("pinned_now") && (Pinned(to) || Pinned(from)))) return work();
    const int32_t device = to_device.backend ? to_device.index : from_device.index;
    BeRude(device);
    Of(device, Breaks("copy_stream0") ? 0 : stream).Add(work);
    Report(device);
  }
  void PeerCopy(void* to, int32_t to_device, const void* from, int32_t from_device, int64_t size,
                uint64_t stream) {
    AskHost();
    if (Breaks("declines")) throw mica::plugin::NotImplemented();
    const auto bytes = static_cast<size_t>(size - (Breaks("peer_byte") ? 1 : 0));
    const std::function<void()> work = [=] { std::memmove(to, from, bytes); };
    if (Breaks("peer_now")) return work();
    if (Breaks("peer_source"))
      Of(from_device, 0).Add(work);
    else
      Of(to_device, stream).Add(work);
  }
  void Fill(int32_t device, void* data, uint8_t byte, int64_t size, uint64_t stream) {
    AskHost();
    if (Breaks("declines")) throw mica::plugin::NotImplemented();
    Say("fill %d in stream %d\n", byte, static_cast<int>(stream));
    Of(device, stream).Add([=] { std::memset(data, byte, static_cast<size_t>(size)); });
  }
  void* PinnedAllocate(int64_t size) {
    AskHost();
    if (std::getenv("LATE_FULL")) throw std::bad_alloc();
    Say("pinned %d\n", static_cast<int>(size));
    void* const data = std::malloc(static_cast<size_t>(size));
    const std::lock_guard<std::mutex> lock(mutex_);
    pinned_[static_cast<char*>(data)] = size;
    return data;
  }
  void PinnedFree(void* data, int64_t) {
    AskHost();
    const std::lock_guard<std::mutex> lock(mutex_);
    pinned_.erase(static_cast<char*>(data));
    std::free(data);
  }
  const char* Supports(std::string_view op, const MicaValue* args, int64_t num_args) {
    const bool square = num_args > 1 && args[0].tag == MICA_VALUE_TENSOR &&
                        args[1].tag == MICA_VALUE_TENSOR && args[0].u.tensor == args[1].u.tensor;
    if (!Breaks("objects")) return nullptr;
    if (op == "mica::add.Tensor") return "its adder is out of order";
    return op == "mica::mul.Tensor" && square ? "it has no squares" : nullptr;
  }
  // What a kernel does, in its stream.
  void Run(uint64_t stream, const char* name, std::function<void()> work) {
    Say("%s in stream %d\n", name, static_cast<int>(stream));
    const int32_t device = Current();
    Report(device);
    if (Breaks("kernel_now")) return work();
    if (Fails()) work = [this, device] { failed_[device] = true; };
    Of(device, Breaks("kernel_stream0") ? 0 : stream).Add(std::move(work));
  }
  void Quiesce() {
    Say("quiesce\n");
    for (auto& [handle, queue] : queues_) queue->Stop();
  }

 private:
  bool Fails() {
    const char* const setting = std::getenv("LATE_FAIL");
    const std::string text = setting ? setting : "";
    const std::lock_guard<std::mutex> lock(mutex_);
    if (text != fail_) {
      fail_ = text;
      launches_ = 0;
    }
    const size_t colon = text.find(':');
    return colon != std::string::npos && ++launches_ == std::atoi(text.c_str() + colon + 1);
  }
  // Whoever sets the current device, as callers of cudaMalloc must, may leave it so.
  void BeRude(int32_t device) {
    if (Breaks("rude")) Current() = 1 - device;
  }
  void Report(int32_t device) {
    const char* const lost = std::getenv("LATE_LOST");
    if (failed_[device] && lost && std::string(lost) == "code") {
      if (told_[device].exchange(true)) std::abort();  // nothing is asked of a device that is lost
      throw mica::plugin::Error(MICA_ERROR_DEVICE_LOST, "The late device has burnt out.");
    }
    if (failed_[device] && (std::getenv("LATE_LOST") || failed_[device].exchange(false)))
      throw std::runtime_error("A unit of the late device has trapped.");
  }
  // Handles are positive, and each device has a default stream.
  static int64_t KeyOf(int32_t device, uint64_t stream) {
    return stream ? static_cast<int64_t>(stream) : -1 - device;
  }

 public:
  // The driver's current device, for every library of the process.
  static std::atomic<int32_t>& Current() {
    static std::atomic<int32_t> of_all{0};
    static thread_local std::atomic<int32_t> current{0};
    return Breaks("current") ? of_all : current;
  }

 private:
  // A default stream begins with its first work.
  Queue& Of(int32_t device, uint64_t stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<Queue>& queue = queues_[KeyOf(device, stream)];
    if (!queue) queue = std::make_unique<Queue>();
    return *queue;
  }
  std::shared_ptr<Mark> MarkOf(uint64_t event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = marks_.find(event);
    return found == marks_.end() ? nullptr : found->second;
  }
  bool Pinned(const void* data) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::any_of(pinned_.begin(), pinned_.end(), [data](const auto& block) {
      return data >= block.first && data < block.first + block.second;
    });
  }

  const pid_t opened_by_ = getpid();
  std::mutex mutex_;
  int64_t handles_ = 0;
  std::map<int64_t, std::unique_ptr<Queue>> queues_;
  std::map<uint64_t, std::shared_ptr<Mark>> marks_;
  std::map<const char*, int64_t> pinned_;
  std::map<void*, int64_t> ordered_;  // of StreamAllocate
  std::atomic<int64_t> used_[2] = {};
  std::atomic<bool> failed_[2] = {};
  std::atomic<bool> told_[2] = {};  // that it is lost
  std::set<uint64_t> timed_;        // events
  std::string fail_;                // LATE_FAIL as it was last
  int launches_ = 0;                // since then
};

LateDevice& Device() {
  static auto* device = new LateDevice;  // its threads may outlive the destructors of statics
  return *device;
}

// out = f(a, b), element by element; tensors of one shape without gaps.
template <typename F>
void Elementwise(const MicaCall* call, const char* name, mica::plugin::TensorRef a, mica::plugin::TensorRef b,
                 mica::plugin::TensorRef out, F f) {
  for (const auto& t : {a, b, out})
    if (!t.contiguous() || t.dtype() != MICA_F32 || t.numel() != out.numel())
      throw mica::plugin::NotImplemented();
  const auto* x = a.data<const float>();
  const auto* y = b.data<const float>();
  auto* z = out.data<float>();
  Device().Run(call->stream, name, [=, n = out.numel()] {
    for (int64_t i = 0; i < n; ++i) z[i] = f(x[i], y[i]);
  });
}

void Mul(const MicaCall* call, MicaTensor* self, MicaTensor* other, MicaTensor* out) {
  Elementwise(call, "mul", self, other, out, [](float x, float y) { return x * y; });
}
void Add(const MicaCall* call, MicaTensor* self, MicaTensor* other, MicaScalar alpha, MicaTensor* out) {
  if (alpha.tag != MICA_SCALAR_INT || alpha.u.i != 1) throw mica::plugin::NotImplemented();
  Elementwise(call, "add", self, other, out, [](float x, float y) { return x + y; });
}
void Neg(const MicaCall* call, MicaTensor* self, MicaTensor* out) {
  Elementwise(call, "neg", self, self, out, [](float x, float) { return -x; });
}
void Relu(const MicaCall* call, MicaTensor* self, MicaTensor* out) {
  Elementwise(call, "relu", self, self, out, [](float x, float) { return std::max(x, 0.0F); });
}

// copy_(self, src, non_blocking) of matrices of float32, whatever their strides.
void CopyMatrix(const MicaCall* call, const MicaValue* args, int64_t, MicaValue*, int64_t) {
  const mica::plugin::TensorRef to(args[0].u.tensor), from(args[1].u.tensor);
  for (const auto& t : {to, from})
    if (t.dtype() != MICA_F32 || t.ndim() != 2 || t.size(0) != to.size(0) || t.size(1) != to.size(1))
      throw mica::plugin::NotImplemented();
  const int64_t sizes[] = {to.size(0), to.size(1)}, out[] = {to.stride(0), to.stride(1)};
  const int64_t in[] = {from.stride(0), from.stride(1)};
  Device().Run(call->stream, "copy_", [=, x = from.data<const float>(), y = to.data<float>()] {
    for (int64_t i = 0; i < sizes[0] * sizes[1]; ++i) {
      const int64_t row = i / sizes[1], column = i % sizes[1];
      y[row * out[0] + column * out[1]] = x[row * in[0] + column * in[1]];
    }
  });
}

// late::exchange_device(int device) -> int: what another library of the process does with the driver's
// current device; -1 asks for it.
void Exchange(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  std::atomic<int32_t>& current = LateDevice::Current();
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = args[0].u.i < 0 ? current.load() : current.exchange(static_cast<int32_t>(args[0].u.i));
}

void Init(const MicaHost*, const MicaRegistrar* r) {
  static_cast<void>(Microseconds());  // declares the option
  mica::plugin::Registrar on_cpu(r, "cpu");
  on_cpu.Define("late::exchange_device(int device) -> int");
  on_cpu.Boxed<&Exchange>("late::exchange_device");
  mica::plugin::Registrar registrar(r, "late");
  MicaDeviceTable table = mica::plugin::DeviceTableOf(Device());
  if (std::getenv("LATE_UNPINNED")) table.pinned_allocate = nullptr;
  if (!std::getenv("LATE_ORDERED")) table.stream_allocate = nullptr;
  registrar.Device(table);
  registrar.Kernel<&Mul>("mul.out");
  registrar.Kernel<&Add>("add.out");
  registrar.Kernel<&Neg>("neg.out");
  registrar.Kernel<&Relu>("relu.out");
  registrar.Boxed<&CopyMatrix>("copy_");
}

}  // namespace

MICA_PLUGIN("late", "Mica tests", "1.0", "", "", "backend:late", Init)
