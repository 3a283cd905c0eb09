// A device that is truly late: each stream is a thread that does its work a little
// after it was asked. The kit's checks of streams are tested with it: as it is, all
// pass; with LATE_FAULT naming a promise that it breaks, the check of that promise
// must fail.
//
//   event_wait   a stream does not wait for the other's event
//   event_sync   the host does not wait for an event
//   stream_sync  the host does not wait for a stream
//   copy         the last byte of a copy is lost
//   crash        a copy writes where nothing is
//   hang         a copy never ends
//   objects      no promise: it says that it supports neither x * x nor add
//
// It has two kernels, mul.out and add.out of contiguous float32 tensors, which run in
// their stream as copies do, and pinned memory. With LATE_SAY it says on stderr what it
// is asked for: each kernel with its stream, streams made and destroyed, pinned blocks.
#include <mica/device.h>

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
#include <string>
#include <thread>

namespace {

bool Breaks(const char* promise) {
  static const char* fault = std::getenv("LATE_FAULT");
  return fault && std::string(fault) == promise;
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
    jobs_.push_back(std::move(job));
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
  void Work() {
    for (;;) {
      std::function<void()> job;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      job();
      const std::lock_guard<std::mutex> lock(mutex_);
      --left_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  int64_t left_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

// One recording of an event.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  void Set() {
    const std::lock_guard<std::mutex> lock(mutex);
    done = true;
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

class LateDevice {
 public:
  int32_t Count() { return 1; }
  void Properties(int32_t, MicaDeviceProperties* out) {
    out->name = "a late device";
    out->total_memory = out->free_memory = -1;
  }
  int32_t ExchangeDevice(int32_t) { return 0; }
  void* Allocate(int32_t, int64_t size) {
    if (size > int64_t{1} << 33) throw std::bad_alloc();
    void* data = std::malloc(static_cast<size_t>(size));
    if (!data) throw std::bad_alloc();
    return data;
  }
  void Free(int32_t, void* data, int64_t) { std::free(data); }

  uint64_t StreamCreate(int32_t, int32_t) {
    const std::lock_guard<std::mutex> lock(mutex_);
    queues_[++handles_] = std::make_unique<Queue>();
    Say("stream %d made\n", static_cast<int>(handles_));
    return handles_;
  }
  void StreamDestroy(int32_t, uint64_t stream) {
    std::unique_ptr<Queue> queue;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      queue = std::move(queues_[stream]);
      queues_.erase(stream);
    }
    queue->Stop();
    Say("stream %d destroyed\n", static_cast<int>(stream));
  }
  void StreamSync(int32_t, uint64_t stream) {
    if (!Breaks("stream_sync")) Of(stream).Drain();
  }
  bool StreamQuery(int32_t, uint64_t stream) { return Of(stream).Idle(); }
  uint64_t EventCreate(int32_t) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ++handles_;
  }
  void EventDestroy(int32_t, uint64_t event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    marks_.erase(event);
  }
  void EventRecord(int32_t, uint64_t event, uint64_t stream) {
    auto mark = std::make_shared<Mark>();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      marks_[event] = mark;
    }
    Of(stream).Add([mark] { mark->Set(); });
  }
  void EventWait(int32_t, uint64_t event, uint64_t stream) {
    if (auto mark = MarkOf(event); mark && !Breaks("event_wait")) Of(stream).Add([mark] { mark->Wait(); });
  }
  void EventSync(int32_t, uint64_t event) {
    if (auto mark = MarkOf(event); mark && !Breaks("event_sync")) mark->Wait();
  }
  bool EventQuery(int32_t, uint64_t event) {
    const auto mark = MarkOf(event);
    return !mark || mark->Done();
  }

  void Copy(void* to, MicaDevice, const void* from, MicaDevice, int64_t size, uint64_t stream) {
    const auto bytes = static_cast<size_t>(size - (Breaks("copy") && size > 4 ? 1 : 0));
    Of(stream).Add([=] {
      while (Breaks("hang")) std::this_thread::sleep_for(std::chrono::seconds(1));
      std::memmove(Breaks("crash") ? nullptr : to, from, bytes);
    });
  }
  void Fill(int32_t, void* data, uint8_t byte, int64_t size, uint64_t stream) {
    Of(stream).Add([=] { std::memset(data, byte, static_cast<size_t>(size)); });
  }
  void* PinnedAllocate(int64_t size) {
    Say("pinned %d\n", static_cast<int>(size));
    return std::malloc(static_cast<size_t>(size));
  }
  void PinnedFree(void* data, int64_t) { std::free(data); }
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
    Of(stream).Add(std::move(work));
  }
  void Quiesce() {
    Say("quiesce\n");
    for (auto& [handle, queue] : queues_) queue->Stop();
  }

 private:
  // Stream 0, the default one, begins with its first work.
  Queue& Of(uint64_t stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<Queue>& queue = queues_[stream];
    if (!queue) queue = std::make_unique<Queue>();
    return *queue;
  }
  std::shared_ptr<Mark> MarkOf(uint64_t event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = marks_.find(event);
    return found == marks_.end() ? nullptr : found->second;
  }

  std::mutex mutex_;
  uint64_t handles_ = 0;
  std::map<uint64_t, std::unique_ptr<Queue>> queues_;
  std::map<uint64_t, std::shared_ptr<Mark>> marks_;
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

void Init(const MicaHost*, const MicaRegistrar* r) {
  mica::plugin::Registrar registrar(r, "late");
  registrar.Device(mica::plugin::DeviceTableOf(Device()));
  registrar.Kernel<&Mul>("mul.out");
  registrar.Kernel<&Add>("add.out");
}

}  // namespace

MICA_PLUGIN("late", "Mica tests", "1.0", "", "", "backend:late", Init)
