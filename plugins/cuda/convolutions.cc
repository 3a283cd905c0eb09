// Convolutions by cuDNN: engines for the shapes that were seen.
//
// cuDNN proposes engines for a shape, the fastest first as its heuristics see it. Those that were made are
// kept, so that a shape that was seen before costs a look-up and a launch; the next one is made where the
// others do not run. One that cuDNN refuses when it is to run is left out from then on; one whose workspace
// there is no memory for, in that call. Where a program asks for it, some are timed and the fastest comes
// first.
#include "plugins/cuda/convolutions.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <mica/plugin.h>

#include "plugins/cuda/context.h"
#include "plugins/cuda/cudnn.h"
#include "plugins/cuda/driver.h"
#include "plugins/cuda/graph.h"
#include "plugins/cuda/host_memory.h"

namespace cuda {
namespace {

using mica::kit::ConvolutionCall;
using mica::kit::ConvolutionKind;
using mica::kit::ConvolutionShape;

// How cuDNN computes with a dtype.
struct Arithmetic {
  cudnnDataType_t type, compute;
};

// What the host's settings ask of a convolution. Its bytes are part of a key.
struct Wishes {
  int64_t tf32 = 0;           // float32 may be rounded to it
  int64_t deterministic = 0;  // the same bits in every run
  int64_t tries = 0;          // how many algorithms are timed; 0: the heuristics' first is taken
};

Wishes CurrentWishes() {
  static const mica::plugin::Setting tf32(MICA_SETTING_CONVOLUTION_TF32, 0);
  static const mica::plugin::Setting deterministic(MICA_SETTING_CONVOLUTION_DETERMINISTIC, 0);
  static const mica::plugin::Setting everywhere(MICA_SETTING_DETERMINISTIC, 0);
  static const mica::plugin::Setting benchmark(MICA_SETTING_CONVOLUTION_BENCHMARK, 0);
  static const mica::plugin::Setting limit(MICA_SETTING_CONVOLUTION_BENCHMARK_LIMIT, 10);
  Wishes wishes;
  wishes.tf32 = tf32.value() != 0;
  wishes.deterministic = deterministic.value() != 0 || everywhere.value() != 0;
  // What is timed differs from run to run, and with it the algorithm.
  if (benchmark.value() != 0 && !wishes.deterministic)
    wishes.tries = limit.value() > 0 ? limit.value() : std::numeric_limits<int64_t>::max();
  return wishes;
}

bool ArithmeticOf(int32_t dtype, Arithmetic* arithmetic) {
  switch (dtype) {
    case MICA_F32:
      *arithmetic = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT};
      return true;
    case MICA_F64:
      *arithmetic = {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE};
      return true;
    case MICA_F16:
      *arithmetic = {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT};
      return true;
    case MICA_BF16:
      *arithmetic = {CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT};
      return true;
    default:
      return false;
  }
}

// A shape as cuDNN takes it: two or three spatial dimensions, one that is missing is the height.
struct Shape {
  Graph::Window window;
  Graph::Layout image, weight, result;
};

// A dense tensor of that shape; false where its elements are more than cuDNN counts.
bool LayoutOf(const int64_t* sizes, int spatial, bool channels_last, Graph::Layout* layout) {
  const int missing = spatial == 1 ? 1 : 0;
  layout->ndim = spatial + 2 + missing;
  for (int d = 0; d < layout->ndim; ++d)
    layout->sizes[static_cast<size_t>(d)] = d < 2 ? sizes[d] : d < 2 + missing ? 1 : sizes[d - missing];
  int64_t next = 1;
  const auto place = [&](int64_t d) {
    layout->strides[static_cast<size_t>(d)] = next;
    next *= layout->sizes[static_cast<size_t>(d)];
    return next > 0 && next <= INT32_MAX;
  };
  bool fits = !channels_last || place(1);
  for (int64_t d = layout->ndim - 1; d >= 2; --d) fits = fits && place(d);
  return fits && (channels_last || place(1)) && place(0);
}

bool ShapeOf(const ConvolutionShape& shape, Shape* made) {
  const int spatial = shape.spatial, missing = spatial == 1 ? 1 : 0;
  const bool last = shape.channels_last != 0;
  if (spatial < 1 || spatial > 3 || !LayoutOf(shape.image, spatial, last, &made->image) ||
      !LayoutOf(shape.weight, spatial, last, &made->weight) ||
      !LayoutOf(shape.result, spatial, last, &made->result))
    return false;
  made->window.ndim = spatial + missing;
  made->window.stride.fill(1);
  made->window.dilation.fill(1);
  for (int d = 0; d < spatial; ++d) {
    // cuDNN takes the result that the image gives, which an `output_padding` of a stride or more is not.
    const int64_t room =
        shape.image[d + 2] + 2 * shape.padding[d] - shape.dilation[d] * (shape.weight[d + 2] - 1);
    if (shape.stride[d] < 1 || shape.dilation[d] < 1 || shape.padding[d] < 0 || room < 1 ||
        (room - 1) / shape.stride[d] + 1 != shape.result[d + 2])
      return false;
    const auto to = static_cast<size_t>(d + missing);
    made->window.stride[to] = shape.stride[d];
    made->window.padding[to] = shape.padding[d];
    made->window.dilation[to] = shape.dilation[d];
  }
  return true;
}

// Milliseconds that a stream takes from Start to Stop, which waits for it.
class Timer {
 public:
  Timer(int device, uint64_t stream)
      : device_(device), stream_(stream), start_(GetCudaDriver().EventCreate(device, MICA_EVENT_TIMED)) {
    end_ = GetCudaDriver().EventCreate(device, MICA_EVENT_TIMED);
  }
  ~Timer() {
    GetCudaDriver().EventDestroy(device_, start_);
    GetCudaDriver().EventDestroy(device_, end_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  void Start() { GetCudaDriver().EventRecord(device_, start_, stream_); }
  double Stop() {
    GetCudaDriver().EventRecord(device_, end_, stream_);
    GetCudaDriver().EventSync(device_, end_);
    return GetCudaDriver().EventElapsed(device_, start_, end_);
  }

 private:
  int device_;
  uint64_t stream_, start_, end_;
};

// What is known of a shape. Threads share it.
class Engines {
 public:
  Engines(const ConvolutionShape& shape, const Wishes& wishes);
  Engines(const Engines&) = delete;
  Engines& operator=(const Engines&) = delete;

  // Queues the convolution; false where no engine takes it. Throws where there is no memory for any.
  bool Run(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem);
  // Runs the first `tries` engines and puts them in the order of their times. Waits for the device.
  void Time(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem, int64_t tries);

 private:
  using Engine = std::shared_ptr<const GraphPlan>;

  // The engine at that place, made if need be; NULL behind the last.
  Engine At(cudnnHandle_t handle, size_t place);
  double Milliseconds(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem, const Engine& engine,
                      Timer& timer);

  static constexpr int kTurns = 3, kTimedRuns = 4;

  const PlanLimits limits_;
  std::mutex mutex_;  // of what follows
  Graph graph_;       // empty where cuDNN does not take the shape
  bool is_taken_ = false;
  std::vector<Engine> engines_;  // that were made
  std::atomic<size_t> next_{0};  // the first one that was not refused
};

// The tensors of a graph that a call gives.
enum Id : int64_t { kImage = 1, kWeight, kResult };

Engines::Engines(const ConvolutionShape& shape, const Wishes& wishes)
    : limits_{shape.dtype != MICA_F32 || wishes.tf32 != 0, wishes.deterministic == 0} {
  Arithmetic arithmetic{};
  Shape made;
  if (!ArithmeticOf(shape.dtype, &arithmetic) || !ShapeOf(shape, &made)) return;
  const Graph::Tensor image = graph_.Given(kImage, arithmetic.type, made.image);
  const Graph::Tensor weight = graph_.Given(kWeight, arithmetic.type, made.weight);
  const Graph::Tensor result = graph_.Given(kResult, arithmetic.type, made.result);
  graph_.Convolve(shape.kind, arithmetic.compute, made.window, image, weight, result);
  is_taken_ = true;
}

Engines::Engine Engines::At(cudnnHandle_t handle, size_t place) {
  std::lock_guard<std::mutex> lock(mutex_);
  while (is_taken_ && engines_.size() <= place) {
    Engine engine = graph_.Next(handle, limits_);
    if (!engine) is_taken_ = false;
    if (engine) engines_.push_back(std::move(engine));
  }
  return place < engines_.size() ? engines_[place] : nullptr;
}

// The problem's memory for a workspace; NULL where there is none left.
void* WorkspaceOf(const gpu::ConvolutionProblem& problem, size_t size) {
  try {
    return problem.workspace(size);
  } catch (const mica::plugin::Error& error) {
    if (error.code != MICA_ERROR_OUT_OF_MEMORY) throw;
    return nullptr;
  }
}

bool Queue(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem, const GraphPlan& engine,
           void* workspace) {
  const ConvolutionCall& call = problem.convolution;
  return engine.Run(handle, problem.device,
                    {{kImage, call.image}, {kWeight, call.weight}, {kResult, call.result}}, workspace);
}

bool Engines::Run(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem) {
  if (!SetStream(handle, problem.device, problem.stream)) return false;
  bool lacks_memory = false;
  for (size_t place = next_;; ++place) {
    const Engine engine = At(handle, place);
    if (!engine) break;
    void* workspace = nullptr;
    if (engine->workspace_size() > 0 && !(workspace = WorkspaceOf(problem, engine->workspace_size()))) {
      lacks_memory = true;
      continue;
    }
    if (Queue(handle, problem, *engine, workspace)) return true;
    if (!lacks_memory) next_ = place + 1;
  }
  if (lacks_memory)
    MICA_PLUGIN_THROW(MICA_ERROR_OUT_OF_MEMORY,
                      "The device (cuda:" + std::to_string(problem.device) +
                          ") has no memory for the workspace of a convolution of cuDNN's.");
  return false;
}

// The time of some runs that follow one another, as in a program: what the host takes to queue the first of
// them is no part of it.
double Engines::Milliseconds(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem,
                             const Engine& engine, Timer& timer) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  void* workspace = engine->workspace_size() > 0 ? WorkspaceOf(problem, engine->workspace_size()) : nullptr;
  if (engine->workspace_size() > 0 && !workspace) return kNever;
  // The first one may load a kernel, and is what the device does while the others are queued.
  bool runs = Queue(handle, problem, *engine, workspace);
  timer.Start();
  for (int run = 0; runs && run < kTimedRuns; ++run) runs = Queue(handle, problem, *engine, workspace);
  const double time = timer.Stop();
  return runs ? time : kNever;
}

void Engines::Time(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem, int64_t tries) {
  if (!SetStream(handle, problem.device, problem.stream)) return;
  std::vector<std::pair<double, Engine>> timed;
  for (size_t place = 0; static_cast<int64_t>(place) < tries; ++place) {
    Engine engine = At(handle, place);
    if (!engine) break;
    timed.emplace_back(std::numeric_limits<double>::infinity(), std::move(engine));
  }
  // In turns: the device's clock and its memory change with what ran before.
  Timer timer(problem.device, problem.stream);
  for (int turn = 0; turn < kTurns; ++turn)
    for (auto& [best, engine] : timed) best = std::min(best, Milliseconds(handle, problem, engine, timer));
  std::stable_sort(timed.begin(), timed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < timed.size(); ++i) engines_[i] = timed[i].second;
}

// Engines by device, shape and wishes. Past some thousand it begins anew: a program whose shapes never come
// again has no use for them.
class Cache {
 public:
  std::shared_ptr<Engines> Find(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem) {
    Wishes wishes = CurrentWishes();
    if (std::shared_ptr<Engines> known = Known(KeyOf(problem, wishes))) return known;
    // What is recorded does not run, so that nothing can be timed: the next call that runs does it.
    if (wishes.tries > 0 && GetCudaDriver().Capturing(problem.device, problem.stream)) {
      wishes.tries = 0;
      if (std::shared_ptr<Engines> known = Known(KeyOf(problem, wishes))) return known;
    }
    auto made = std::make_shared<Engines>(problem.convolution.shape, wishes);
    if (wishes.tries > 0) made->Time(handle, problem, wishes.tries);
    std::lock_guard<std::mutex> lock(mutex_);
    if (engines_.size() >= kMost) engines_.clear();
    return engines_.emplace(KeyOf(problem, wishes), std::move(made)).first->second;
  }

 private:
  static std::string KeyOf(const gpu::ConvolutionProblem& problem, const Wishes& wishes) {
    static_assert(std::has_unique_object_representations_v<ConvolutionShape> &&
                      std::has_unique_object_representations_v<Wishes>,
                  "their bytes are a key");
    const ConvolutionShape& shape = problem.convolution.shape;
    std::string key(reinterpret_cast<const char*>(&problem.device), sizeof problem.device);
    key.append(reinterpret_cast<const char*>(&shape), sizeof shape);
    key.append(reinterpret_cast<const char*>(&wishes), sizeof wishes);
    return key;
  }
  // NULL where there is none.
  std::shared_ptr<Engines> Known(const std::string& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = engines_.find(key);
    return found == engines_.end() ? nullptr : found->second;
  }

  static constexpr size_t kMost = 4096;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Engines>> engines_;
};

Cache& GetCache() {
  static Cache& cache = *new Cache;
  return cache;
}

class CudnnConvolutions final : public gpu::Convolutions {
 public:
  bool Has(int, int32_t dtype) override {
    static const mica::plugin::Setting library(MICA_SETTING_CONVOLUTION_LIBRARY, 1);
    Arithmetic arithmetic{};
    return ArithmeticOf(dtype, &arithmetic) && library.value() != 0 && HasCudnn();
  }
  bool Run(const gpu::ConvolutionProblem& problem) override;
};

bool CudnnConvolutions::Run(const gpu::ConvolutionProblem& problem) {
  static std::atomic<bool> warned{false};
  // Graph::Given promises that.
  const ConvolutionCall& call = problem.convolution;
  for (const void* data : {call.image, call.weight, call.result})
    if (reinterpret_cast<uintptr_t>(data) % 16 != 0) return false;
  Use(problem.device);
  const OutsideOfRecordings outside;
  return TryTwice(problem.device, warned, [&] {
    const CudnnHandle handle(problem.device);
    return handle.get() && GetCache().Find(handle.get(), problem)->Run(handle.get(), problem);
  });
}

}  // namespace

gpu::Convolutions& GetCudnn() {
  static gpu::Convolutions& convolutions = *new CudnnConvolutions;
  return convolutions;
}

}  // namespace cuda
