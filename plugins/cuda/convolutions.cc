// Convolutions by cuDNN: plans for the shapes that were seen.
//
// cuDNN lists its algorithms for a shape, the fastest first as its heuristics see it. A plan keeps those
// whose workspace is small enough, with all descriptors, so that a shape that was seen before costs a look-up
// and a launch. One that cuDNN refuses when it is to run is left out from then on; one whose workspace there
// is no memory for, in that call. Where a program asks for it, a new plan tries them and keeps the fastest.
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
#include "plugins/cuda/host_memory.h"

namespace cuda {
namespace {

using mica::kit::ConvolutionCall;
using mica::kit::ConvolutionKind;
using mica::kit::ConvolutionShape;

// How cuDNN computes with a dtype.
struct Arithmetic {
  cudnnDataType_t type, compute;
  cudnnMathType_t math;
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

bool ArithmeticOf(int32_t dtype, const Wishes& wishes, Arithmetic* arithmetic) {
  switch (dtype) {
    case MICA_F32:
      *arithmetic = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, wishes.tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH};
      return true;
    case MICA_F64:
      *arithmetic = {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_DEFAULT_MATH};
      return true;
    case MICA_F16:
      *arithmetic = {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH};
      return true;
    case MICA_BF16:
      *arithmetic = {CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH};
      return true;
    default:
      return false;
  }
}

// A shape in cuDNN's numbers: four or five dimensions, a missing one is the height.
struct Sizes {
  int ndim = 0, groups = 1;
  bool channels_last = false;
  int image[5] = {}, weight[5] = {}, result[5] = {};
  int stride[3] = {}, padding[3] = {}, dilation[3] = {};
};

// `from` in `to`, with `missing` in front of one spatial dimension; false where a number or the product of
// all is more than cuDNN takes.
bool Narrow(const int64_t* from, int count, int leading, int missing, int* to, bool is_tensor) {
  int64_t product = 1;
  for (int i = 0; i < count; ++i) {
    if (from[i] < 0 || from[i] > INT32_MAX) return false;
    if (is_tensor && (from[i] == 0 || (product *= from[i]) > INT32_MAX)) return false;
    to[i + (missing >= 0 && i >= leading ? 1 : 0)] = static_cast<int>(from[i]);
  }
  if (missing >= 0) to[leading] = missing;
  return true;
}

bool SizesOf(const ConvolutionShape& shape, Sizes* sizes) {
  const int spatial = shape.spatial;
  if (spatial < 1 || spatial > 3 || shape.groups < 1 || shape.groups > INT32_MAX) return false;
  const bool one = spatial == 1;
  sizes->ndim = one ? 4 : spatial + 2;
  sizes->groups = static_cast<int>(shape.groups);
  sizes->channels_last = shape.channels_last != 0;
  const int size = one ? 1 : -1, none = one ? 0 : -1;
  if (!Narrow(shape.image, spatial + 2, 2, size, sizes->image, true) ||
      !Narrow(shape.weight, spatial + 2, 2, size, sizes->weight, true) ||
      !Narrow(shape.result, spatial + 2, 2, size, sizes->result, true) ||
      !Narrow(shape.stride, spatial, 0, size, sizes->stride, false) ||
      !Narrow(shape.padding, spatial, 0, none, sizes->padding, false) ||
      !Narrow(shape.dilation, spatial, 0, size, sizes->dilation, false))
    return false;
  // cuDNN takes the result that the image gives, which an `output_padding` of a stride or more is not.
  for (int d = 0; d < spatial; ++d) {
    const int64_t room =
        shape.image[d + 2] + 2 * shape.padding[d] - shape.dilation[d] * (shape.weight[d + 2] - 1);
    if (shape.stride[d] < 1 || shape.dilation[d] < 1 || room < 1 ||
        (room - 1) / shape.stride[d] + 1 != shape.result[d + 2])
      return false;
  }
  return true;
}

// An algorithm, its workspace in bytes, and the convolution with the arithmetic that it is for.
struct Choice {
  int algorithm;
  size_t workspace;
  cudnnConvolutionDescriptor_t convolution;
};

// Milliseconds that a stream takes from Start to Stop, which waits for it.
class Timer {
 public:
  Timer(int device, uint64_t stream)
      : device_(device), stream_(stream), start_(GetCudaDriver().EventCreate(device)) {
    end_ = GetCudaDriver().EventCreate(device);
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

// What is known of a shape. Threads share it; once it is made, `next_` changes alone, and the order of
// `choices_` in the first call, where they are timed.
class Plan {
 public:
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan();

  // Leaves `choices_` empty where cuDNN does not support the shape.
  void Make(cudnnHandle_t handle, int device, const ConvolutionShape& shape, const Wishes& wishes);
  // Queues an algorithm; false where none is left. Throws where there is no memory for any.
  bool Run(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem);
  // Runs the first `tries` algorithms and puts them in the order of their times. Only before others have the
  // plan; waits for the device.
  void Time(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem, int64_t tries);

 private:
  bool MakeTensor(cudnnTensorDescriptor_t* tensor, const int* size, const Sizes& sizes, int device);
  bool MakeConvolution(cudnnConvolutionDescriptor_t* convolution, cudnnMathType_t math, const Sizes& sizes,
                       int device);
  cudnnStatus_t Queue(cudnnHandle_t handle, const ConvolutionCall& call, const Choice& choice,
                      void* workspace);
  bool SetStream(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem);
  double Milliseconds(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem, const Choice& choice,
                      Timer& timer);

  static constexpr size_t kMostWorkspace = size_t{1} << 30;
  static constexpr int kTurns = 3, kTimedRuns = 4;

  Arithmetic arithmetic_{};
  cudnnTensorDescriptor_t image_ = nullptr, result_ = nullptr;
  cudnnFilterDescriptor_t weight_ = nullptr;
  std::vector<cudnnConvolutionDescriptor_t> convolutions_;
  std::vector<Choice> choices_;
  std::atomic<size_t> next_{0};  // the first choice that was not refused
};

Plan::~Plan() {
  const CudnnApi& api = Cudnn();
  if (image_) api.cudnnDestroyTensorDescriptor(image_);
  if (result_) api.cudnnDestroyTensorDescriptor(result_);
  if (weight_) api.cudnnDestroyFilterDescriptor(weight_);
  for (const cudnnConvolutionDescriptor_t convolution : convolutions_)
    api.cudnnDestroyConvolutionDescriptor(convolution);
}

bool Plan::MakeTensor(cudnnTensorDescriptor_t* tensor, const int* size, const Sizes& sizes, int device) {
  int strides[5], next = 1;
  const auto place = [&](int d) {
    strides[d] = next;
    next *= size[d];
  };
  if (sizes.channels_last) place(1);
  for (int d = sizes.ndim - 1; d >= 2; --d) place(d);
  if (!sizes.channels_last) place(1);
  place(0);
  const CudnnApi& api = Cudnn();
  return Succeeded(api.cudnnCreateTensorDescriptor(tensor), "cudnnCreateTensorDescriptor", device) &&
         Succeeded(api.cudnnSetTensorNdDescriptor(*tensor, arithmetic_.type, sizes.ndim, size, strides),
                   "cudnnSetTensorNdDescriptor", device);
}

bool Plan::MakeConvolution(cudnnConvolutionDescriptor_t* convolution, cudnnMathType_t math,
                           const Sizes& sizes, int device) {
  const CudnnApi& api = Cudnn();
  if (!Succeeded(api.cudnnCreateConvolutionDescriptor(convolution), "cudnnCreateConvolutionDescriptor",
                 device))
    return false;
  convolutions_.push_back(*convolution);
  return Succeeded(api.cudnnSetConvolutionNdDescriptor(*convolution, sizes.ndim - 2, sizes.padding,
                                                       sizes.stride, sizes.dilation, CUDNN_CROSS_CORRELATION,
                                                       arithmetic_.compute),
                   "cudnnSetConvolutionNdDescriptor", device) &&
         Succeeded(api.cudnnSetConvolutionGroupCount(*convolution, sizes.groups),
                   "cudnnSetConvolutionGroupCount", device) &&
         Succeeded(api.cudnnSetConvolutionMathType(*convolution, math), "cudnnSetConvolutionMathType",
                   device);
}

void Plan::Make(cudnnHandle_t handle, int device, const ConvolutionShape& shape, const Wishes& wishes) {
  Sizes sizes;
  if (!ArithmeticOf(shape.dtype, wishes, &arithmetic_) || !SizesOf(shape, &sizes)) return;
  const CudnnApi& api = Cudnn();
  const cudnnTensorFormat_t format = sizes.channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
  cudnnConvolutionDescriptor_t asked = nullptr;
  if (!MakeTensor(&image_, sizes.image, sizes, device) ||
      !MakeTensor(&result_, sizes.result, sizes, device) ||
      !Succeeded(api.cudnnCreateFilterDescriptor(&weight_), "cudnnCreateFilterDescriptor", device) ||
      !Succeeded(api.cudnnSetFilterNdDescriptor(weight_, arithmetic_.type, format, sizes.ndim, sizes.weight),
                 "cudnnSetFilterNdDescriptor", device) ||
      !MakeConvolution(&asked, arithmetic_.math, sizes, device))
    return;

  constexpr int kMost = 16;  // cuDNN 9 has at most 8 of a kind
  ConvolutionAlgoPerf found[kMost] = {};
  int count = 0;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  const char* function = nullptr;
  switch (shape.kind) {
    case ConvolutionKind::kForward:
      function = "cudnnGetConvolutionForwardAlgorithm_v7";
      status = api.cudnnGetConvolutionForwardAlgorithm_v7(handle, image_, weight_, asked, result_, kMost,
                                                          &count, found);
      break;
    case ConvolutionKind::kBackwardInput:
      function = "cudnnGetConvolutionBackwardDataAlgorithm_v7";
      status = api.cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, weight_, result_, asked, image_, kMost,
                                                               &count, found);
      break;
    case ConvolutionKind::kBackwardWeight:
      function = "cudnnGetConvolutionBackwardFilterAlgorithm_v7";
      status = api.cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, image_, result_, asked, weight_,
                                                                 kMost, &count, found);
      break;
  }
  if (!Succeeded(status, function, device)) return;
  for (int i = 0; i < std::min(count, kMost); ++i) {
    // An algorithm is listed with the arithmetic that it is to be called with.
    const ConvolutionAlgoPerf& one = found[i];
    if (one.status != CUDNN_STATUS_SUCCESS || one.memory > kMostWorkspace) continue;
    if (one.mathType == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION) continue;
    if (wishes.deterministic && one.determinism != CUDNN_DETERMINISTIC) continue;
    if (arithmetic_.math == CUDNN_FMA_MATH && one.mathType != CUDNN_FMA_MATH) continue;
    Choice choice{one.algo, one.memory, nullptr};
    if (MakeConvolution(&choice.convolution, one.mathType, sizes, device)) choices_.push_back(choice);
  }
}

cudnnStatus_t Plan::Queue(cudnnHandle_t handle, const ConvolutionCall& call, const Choice& choice,
                          void* workspace) {
  const CudnnApi& api = Cudnn();
  const double double_factors[] = {1, 0};
  const float float_factors[] = {1, 0};
  const bool is_double = arithmetic_.compute == CUDNN_DATA_DOUBLE;
  const void* alpha = is_double ? static_cast<const void*>(&double_factors[0]) : &float_factors[0];
  const void* beta = is_double ? static_cast<const void*>(&double_factors[1]) : &float_factors[1];
  switch (call.shape.kind) {
    case ConvolutionKind::kForward:
      return api.cudnnConvolutionForward(handle, alpha, image_, call.image, weight_, call.weight,
                                         choice.convolution, choice.algorithm, workspace, choice.workspace,
                                         beta, result_, call.result);
    case ConvolutionKind::kBackwardInput:
      return api.cudnnConvolutionBackwardData(handle, alpha, weight_, call.weight, result_, call.result,
                                              choice.convolution, choice.algorithm, workspace,
                                              choice.workspace, beta, image_, call.image);
    case ConvolutionKind::kBackwardWeight:
      return api.cudnnConvolutionBackwardFilter(handle, alpha, image_, call.image, result_, call.result,
                                                choice.convolution, choice.algorithm, workspace,
                                                choice.workspace, beta, weight_, call.weight);
  }
  return CUDNN_STATUS_BAD_PARAM;
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

const char* FunctionOf(ConvolutionKind kind) {
  return kind == ConvolutionKind::kForward         ? "cudnnConvolutionForward"
         : kind == ConvolutionKind::kBackwardInput ? "cudnnConvolutionBackwardData"
                                                   : "cudnnConvolutionBackwardFilter";
}

bool Plan::SetStream(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem) {
  const auto stream = reinterpret_cast<CUstream>(problem.stream);
  return Succeeded(Cudnn().cudnnSetStream(handle, stream), "cudnnSetStream", problem.device);
}

bool Plan::Run(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem) {
  if (next_ >= choices_.size() || !SetStream(handle, problem)) return false;
  bool lacks_memory = false;
  for (size_t i = next_; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    void* workspace = nullptr;
    if (choice.workspace > 0 && !(workspace = WorkspaceOf(problem, choice.workspace))) {
      lacks_memory = true;
      continue;
    }
    const cudnnStatus_t status = Queue(handle, problem.convolution, choice, workspace);
    const char* function = FunctionOf(problem.convolution.shape.kind);
    // A kernel that cuDNN fails to build or to load leaves others.
    const bool others = FailedToLaunch(status) && i + 1 < choices_.size();
    if (!others && Succeeded(status, function, problem.device)) return true;
    if (!lacks_memory) next_ = i + 1;
  }
  if (lacks_memory)
    MICA_PLUGIN_THROW(MICA_ERROR_OUT_OF_MEMORY,
                      "The device (cuda:" + std::to_string(problem.device) +
                          ") has no memory for the workspace of a convolution of cuDNN's.");
  return false;
}

// The time of some runs that follow one another, as in a program: what the host takes to queue the first of
// them is no part of it.
double Plan::Milliseconds(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem, const Choice& choice,
                          Timer& timer) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  void* workspace = choice.workspace > 0 ? WorkspaceOf(problem, choice.workspace) : nullptr;
  if (choice.workspace > 0 && !workspace) return kNever;
  const auto queue = [&] {
    return Queue(handle, problem.convolution, choice, workspace) == CUDNN_STATUS_SUCCESS;
  };
  // The first one may load a kernel, and is what the device does while the others are queued.
  bool runs = queue();
  timer.Start();
  for (int run = 0; runs && run < kTimedRuns; ++run) runs = queue();
  const double time = timer.Stop();
  return runs ? time : kNever;
}

void Plan::Time(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem, int64_t tries) {
  if (choices_.size() < 2 || !SetStream(handle, problem)) return;
  std::vector<std::pair<double, Choice>> timed;
  for (const Choice& choice : choices_)
    if (static_cast<int64_t>(timed.size()) < tries)
      timed.emplace_back(std::numeric_limits<double>::infinity(), choice);
  // In turns: the device's clock and its memory change with what ran before.
  Timer timer(problem.device, problem.stream);
  for (int turn = 0; turn < kTurns; ++turn)
    for (auto& [best, choice] : timed) best = std::min(best, Milliseconds(handle, problem, choice, timer));
  std::stable_sort(timed.begin(), timed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < timed.size(); ++i) choices_[i] = timed[i].second;
}

// Plans by device, shape and wishes. Past some thousand it begins anew: a program whose shapes never come
// again has no use for them.
class Plans {
 public:
  std::shared_ptr<Plan> Find(cudnnHandle_t handle, const gpu::ConvolutionProblem& problem) {
    Wishes wishes = CurrentWishes();
    if (std::shared_ptr<Plan> plan = Known(KeyOf(problem, wishes))) return plan;
    // What is recorded does not run, so that nothing can be timed: the next call that runs does it.
    if (wishes.tries > 0 && GetCudaDriver().Capturing(problem.device, problem.stream)) {
      wishes.tries = 0;
      if (std::shared_ptr<Plan> plan = Known(KeyOf(problem, wishes))) return plan;
    }
    auto plan = std::make_shared<Plan>();
    plan->Make(handle, problem.device, problem.convolution.shape, wishes);
    if (wishes.tries > 0) plan->Time(handle, problem, wishes.tries);
    std::lock_guard<std::mutex> lock(mutex_);
    if (plans_.size() >= kMost) plans_.clear();
    return plans_.emplace(KeyOf(problem, wishes), std::move(plan)).first->second;
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
  std::shared_ptr<Plan> Known(const std::string& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = plans_.find(key);
    return found == plans_.end() ? nullptr : found->second;
  }

  static constexpr size_t kMost = 4096;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Plan>> plans_;
};

Plans& GetPlans() {
  static Plans& plans = *new Plans;
  return plans;
}

class CudnnConvolutions final : public gpu::Convolutions {
 public:
  bool Has(int, int32_t dtype) override {
    static const mica::plugin::Setting library(MICA_SETTING_CONVOLUTION_LIBRARY, 1);
    Arithmetic arithmetic{};
    return ArithmeticOf(dtype, {}, &arithmetic) && library.value() != 0 && HasCudnn();
  }
  bool Run(const gpu::ConvolutionProblem& problem) override;
};

bool CudnnConvolutions::Run(const gpu::ConvolutionProblem& problem) {
  static std::atomic<bool> warned{false};
  Use(problem.device);
  const OutsideOfRecordings outside;
  return TryTwice(problem.device, warned, [&] {
    const CudnnHandle handle(problem.device);
    return handle.get() && GetPlans().Find(handle.get(), problem)->Run(handle.get(), problem);
  });
}

}  // namespace

gpu::Convolutions& GetCudnn() {
  static gpu::Convolutions& convolutions = *new CudnnConvolutions;
  return convolutions;
}

}  // namespace cuda
