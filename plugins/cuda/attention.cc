// Attention by cuDNN: the graphs that its engines of attention recognize, and plans for the shapes that were
// seen.
//
// cuDNN 9 has no operation of attention that masks, but finds it in a graph of products, pointwise operations
// and reductions, whose order is the one that NVIDIA's own programs use: another one, though it means the
// same, is refused. Results follow softmax's logarithms of sums, of which Backward makes the shares anew.
#include "plugins/cuda/attention.h"

#include <atomic>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>

#include <mica/plugin.h>

#include "plugins/cuda/context.h"
#include "plugins/cuda/driver.h"
#include "plugins/cuda/graph.h"
#include "plugins/cuda/host_memory.h"
#include "plugins/gpu/cache.h"

namespace cuda {
namespace {

using gpu::AttentionProblem;
using gpu::AttentionShape;
using gpu::AttentionTensor;

// The tensors of a graph that a call gives.
enum Id : int64_t {
  kQuery = 1,
  kKey,
  kValue,
  kOutput,
  kLogSum,
  kGradOutput,
  kGradQuery,
  kGradKey,
  kGradValue,
  kQuerySum,  // float, of which grad_query is the rounded result
  kDelta,     // the product of each row of output and its gradient
  kScale,
  kOne,
  kHidden,  // what a hidden score becomes
};

bool Supports(const AttentionShape& s) {
  constexpr int64_t kMostWidth = 128, kMostRows = 1 << 24;
  return (s.dtype == MICA_F16 || s.dtype == MICA_BF16) && s.width % 8 == 0 && s.width >= 8 &&
         s.width <= kMostWidth && s.queries <= kMostRows && s.keys <= kMostRows && s.keys > 1 &&
         // One query is another kernel of cuDNN's, which older versions have without a mask alone.
         (s.queries > 1 || !s.is_causal);
}

// Whether this cuDNN computes it rightly, as its release notes and its own frontend say. 9.10.0 and 9.10.1
// have wrong results; before 9.6 the caller had to clear float sums; up to 9.15.0 gradients were wrong where
// keys end within a tile.
bool IsKnownGood(const AttentionShape& s, bool is_backward) {
  const size_t version = Cudnn().cudnnGetVersion();
  if (version < 90600 || version == 91000 || version == 91001) return false;
  return !is_backward || (s.queries > 1 && (version > 91500 || s.keys % 128 == 0));
}

// What a plan depends on, without gaps between the bytes. Strides of a dimension of size 1 are made up, so
// that calls that differ in nothing else share a plan.
struct PlanKey {
  int32_t device = 0, is_backward = 0;
  AttentionShape shape;
  int64_t strides[8][3] = {};  // as in TensorsOf

  std::string Bytes() const { return std::string(reinterpret_cast<const char*>(this), sizeof *this); }
};
static_assert(std::has_unique_object_representations_v<PlanKey>, "bytes of a plan's key are its name");

// A tensor of a problem, with its id and sizes.
struct Operand {
  Id id;
  const AttentionTensor* tensor;
  bool has_queries;  // its rows and heads are those of queries, or of keys
};

constexpr size_t kForwardOperands = 4, kOperands = 8;
std::array<Operand, kOperands> OperandsOf(const AttentionProblem& p) {
  return {{{kQuery, &p.query, true},
           {kKey, &p.key, false},
           {kValue, &p.value, false},
           {kOutput, &p.output, true},
           {kGradOutput, &p.grad_output, true},
           {kGradQuery, &p.grad_query, true},
           {kGradKey, &p.grad_key, false},
           {kGradValue, &p.grad_value, false}}};
}

std::array<int64_t, 4> SizesOf(const AttentionShape& s, bool has_queries) {
  return {s.batch, has_queries ? s.heads : s.key_heads, has_queries ? s.queries : s.keys, s.width};
}

// Whether cuDNN takes the strides: rows begin at multiples of 16 bytes, and no two are the same.
bool StridesOf(const AttentionTensor& t, const std::array<int64_t, 4>& sizes, int64_t (&strides)[3]) {
  const int64_t own[3] = {t.batch, t.head, t.row};
  if (reinterpret_cast<uintptr_t>(t.data) % 16 != 0) return false;
  int64_t extent = sizes[3];
  for (int d = 0; d < 3; ++d) {
    const size_t at = static_cast<size_t>(d);
    strides[d] = sizes[at] == 1 ? Graph::Layout::Dense(sizes).strides[at] : own[d];
    if (strides[d] < sizes[3] || strides[d] % 8 != 0) return false;
    extent += (sizes[at] - 1) * strides[d];
  }
  return extent <= std::numeric_limits<int32_t>::max();
}

bool KeyOf(const AttentionProblem& p, bool is_backward, PlanKey* key) {
  key->device = p.device, key->is_backward = is_backward, key->shape = p.shape;
  const auto operands = OperandsOf(p);
  for (size_t i = 0; i < (is_backward ? kOperands : kForwardOperands); ++i)
    if (!StridesOf(*operands[i].tensor, SizesOf(p.shape, operands[i].has_queries), key->strides[i]))
      return false;
  return true;
}

// --- graphs

// What both graphs are made of.
class AttentionGraph {
 public:
  explicit AttentionGraph(const PlanKey& key) : key_(key), s_(key.shape) {}

  // The plan, or NULL.
  std::unique_ptr<GraphPlan> Compile(cudnnHandle_t handle) {
    key_.is_backward ? AddBackward() : AddForward();
    return graph_.Next(handle, {});
  }

 private:
  using Tensor = Graph::Tensor;
  using Layout = Graph::Layout;

  cudnnDataType_t type() const { return s_.dtype == MICA_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF; }
  Layout LayoutOf(Id id) const {
    const auto operands = OperandsOf({});
    size_t i = 0;
    while (operands[i].id != id) ++i;
    const int64_t(&strides)[3] = key_.strides[i];
    return Layout::Of(SizesOf(s_, operands[i].has_queries), {strides[0], strides[1], strides[2], 1});
  }
  Tensor Rows(Id id) { return graph_.Given(id, type(), LayoutOf(id)); }
  Tensor Columns(Id id) { return graph_.Given(id, type(), LayoutOf(id).Transposed()); }
  // A float for each query.
  Tensor Floats(Id id) {
    return graph_.Given(id, CUDNN_DATA_FLOAT, Layout::Dense({s_.batch, s_.heads, s_.queries, 1}));
  }
  // Scores that see what they may see; Backward subtracts the logarithms of sums before.
  Tensor Hide(const Tensor& scores) {
    return s_.is_causal ? graph_.Lower(scores, graph_.Number(kHidden)) : scores;
  }

  void AddForward();
  void AddBackward();
  // The gradient of keys or values: the transpose of `left` times `right`, summed over the heads that share.
  void AddGradient(const Tensor& left, const Tensor& right, Id id);

  const PlanKey& key_;
  const AttentionShape& s_;
  Graph graph_;
};

void AttentionGraph::AddForward() {
  Graph& g = graph_;
  const Tensor query = Rows(kQuery), key = Columns(kKey), value = Rows(kValue), output = Rows(kOutput);
  const Tensor scale = g.Number(kScale);
  const Tensor scores =
      Hide(g.Pointwise(CUDNN_POINTWISE_MUL, g.Product(query, key, CUDNN_DATA_FLOAT), &scale));
  const Tensor most = g.ReduceRows(CUDNN_REDUCE_TENSOR_MAX, scores);
  const Tensor powers = g.Pointwise(CUDNN_POINTWISE_EXP, g.Pointwise(CUDNN_POINTWISE_SUB, scores, &most));
  const Tensor sum = g.ReduceRows(CUDNN_REDUCE_TENSOR_ADD, powers);
  const Tensor log = g.Pointwise(CUDNN_POINTWISE_LOG, sum);
  g.Pointwise(CUDNN_POINTWISE_ADD, most, &log, Floats(kLogSum));
  g.Product(g.Quotient(powers, sum, type()), value, output);
}

void AttentionGraph::AddGradient(const Tensor& left, const Tensor& right, Id id) {
  const Tensor turned = graph_.Transpose(left, type()), to = Rows(id);
  if (s_.heads == s_.key_heads) {
    graph_.Product(turned, right, to);
  } else {
    graph_.Reduce(CUDNN_REDUCE_TENSOR_ADD, graph_.Product(turned, right, type()), to);
  }
}

void AttentionGraph::AddBackward() {
  Graph& g = graph_;
  const Tensor query = Rows(kQuery), key = Columns(kKey), value = Columns(kValue), output = Rows(kOutput);
  const Tensor gradient = Rows(kGradOutput), log_sum = Floats(kLogSum), delta = Floats(kDelta);
  const Tensor scale = g.Number(kScale), one = g.Number(kOne);
  g.Pointwise(CUDNN_POINTWISE_MUL,
              g.ReduceRows(CUDNN_REDUCE_TENSOR_ADD, g.Pointwise(CUDNN_POINTWISE_MUL, gradient, &output)),
              &one, delta);
  const Tensor scores = g.Pointwise(CUDNN_POINTWISE_MUL, g.Product(query, key, CUDNN_DATA_FLOAT), &scale);
  const Tensor shares =
      g.Pointwise(CUDNN_POINTWISE_EXP, Hide(g.Pointwise(CUDNN_POINTWISE_SUB, scores, &log_sum)));
  AddGradient(shares, gradient, kGradValue);
  const Tensor share_gradients =
      g.Pointwise(CUDNN_POINTWISE_SUB, g.Product(gradient, value, CUDNN_DATA_FLOAT), &delta);
  const Tensor score_gradients =
      g.Pointwise(CUDNN_POINTWISE_MUL, g.Pointwise(CUDNN_POINTWISE_MUL, share_gradients, &shares), &scale);
  AddGradient(score_gradients, query, kGradKey);
  const Tensor sum =
      g.Given(kQuerySum, CUDNN_DATA_FLOAT, Layout::Dense({s_.batch, s_.heads, s_.queries, s_.width}));
  g.Product(score_gradients, g.Transpose(key, type()), sum);
  g.Pointwise(CUDNN_POINTWISE_IDENTITY, sum, nullptr, Rows(kGradQuery));
}

// --- plans

// What a plan on disk depends on besides its key. The first number changes with the graphs.
std::string DiskKey(PlanKey key) {
  const gpu::DeviceInfo device = GetCudaDriver().Describe(key.device);
  key.device = 0;
  return "attention by cuDNN 1, " + std::to_string(Cudnn().cudnnGetVersion()) + ", driver " +
         std::to_string(DriverVersion()) + ", " + device.name + ", " + device.architecture + ", " +
         std::to_string(device.multiprocessors) + ", " + key.Bytes();
}

// Plans by their keys; what was compiled is kept on disk (plugins/gpu/cache.h). cuDNN compiles each for some
// tenths of a second, so the first ones are made at once, and later ones for what comes again and again: a
// program whose lengths always vary is served better by Mica's own kernels, which take any. A plan that was
// given is never destroyed: the device, or a recording, may have kernels of its.
class Plans {
 public:
  // NULL where there is none, or not yet.
  const GraphPlan* Find(cudnnHandle_t handle, const PlanKey& key) {
    const std::string name = key.Bytes();
    bool is_first = false, compiles = false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      Entry* const entry = At(name);
      if (!entry) return nullptr;
      if (entry->is_made) return entry->Usable();
      is_first = ++entry->calls == 1;
      compiles = compiled_ < kCompiledAtOnce || entry->calls >= kCallsBefore;
    }
    if (!is_first && !compiles) return nullptr;
    std::unique_ptr<const GraphPlan> plan = Restore(handle, key);
    if (!plan && !compiles) return nullptr;
    const bool is_restored = plan != nullptr;
    if (!is_restored) plan = Compile(handle, key);
    std::lock_guard<std::mutex> lock(mutex_);
    if (!is_restored) ++compiled_;
    Entry& entry = entries_[name];
    if (!entry.is_made) entry.plan = std::move(plan);  // another thread may have been first
    entry.is_made = true;
    return entry.Usable();
  }
  // What cuDNN refuses to run is asked for no more.
  void Refuse(const PlanKey& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    entries_[key.Bytes()].is_refused = true;
  }

 private:
  struct Entry {
    int64_t calls = 0;
    bool is_made = false, is_refused = false;
    std::unique_ptr<const GraphPlan> plan;
    const GraphPlan* Usable() const { return is_refused ? nullptr : plan.get(); }
  };

  // The entry of a name; a new one takes the place of those without a plan where there are many, and is NULL
  // where all have one.
  Entry* At(const std::string& name) {
    const auto found = entries_.find(name);
    if (found != entries_.end()) return &found->second;
    if (entries_.size() >= kMostEntries)
      for (auto entry = entries_.begin(); entry != entries_.end();)
        entry = entry->second.plan ? std::next(entry) : entries_.erase(entry);
    return entries_.size() < kMostEntries ? &entries_[name] : nullptr;
  }
  std::unique_ptr<GraphPlan> Restore(cudnnHandle_t handle, const PlanKey& key) const {
    std::string bytes;
    return disk_.Find(DiskKey(key), &bytes) ? GraphPlan::FromBytes(handle, bytes) : nullptr;
  }
  std::unique_ptr<GraphPlan> Compile(cudnnHandle_t handle, const PlanKey& key) const {
    std::unique_ptr<GraphPlan> plan = AttentionGraph(key).Compile(handle);
    const std::string bytes = plan ? plan->Bytes() : "";
    if (!bytes.empty()) disk_.Keep(DiskKey(key), bytes);
    return plan;
  }

  static constexpr int64_t kCompiledAtOnce = 32, kCallsBefore = 64;
  static constexpr size_t kMostEntries = 4096;
  const gpu::DiskCache disk_{"cuda"};
  std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
  int64_t compiled_ = 0;
};

Plans& GetPlans() {
  static Plans& plans = *new Plans;
  return plans;
}

// Parts of a plan's workspace, one after the other at multiples of 256 bytes.
class Parts {
 public:
  size_t Add(size_t size) {
    const size_t begin = size_;
    size_ += (size + 255) / 256 * 256;
    return begin;
  }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

bool RunPlan(const GraphPlan& plan, cudnnHandle_t handle, const AttentionProblem& p, bool is_backward) {
  float scale = static_cast<float>(p.scale), one = 1, hidden = -std::numeric_limits<float>::infinity();
  if (Cudnn().cudnnGetVersion() < 91000) hidden = std::numeric_limits<float>::lowest();
  Parts parts;
  const size_t rows = static_cast<size_t>(p.shape.batch * p.shape.heads * p.shape.queries);
  const size_t own = parts.Add(plan.workspace_size());
  const size_t query_sum =
      parts.Add(is_backward ? rows * static_cast<size_t>(p.shape.width) * sizeof(float) : 0);
  const size_t delta = parts.Add(is_backward ? rows * sizeof(float) : 0);
  char* const memory = parts.size() > 0 ? static_cast<char*>(p.workspace(parts.size())) : nullptr;

  std::vector<GraphPlan::Argument> arguments{{kLogSum, p.log_sum}, {kScale, &scale}};
  const auto operands = OperandsOf(p);
  for (size_t i = 0; i < (is_backward ? kOperands : kForwardOperands); ++i)
    arguments.emplace_back(operands[i].id, operands[i].tensor->data);
  if (p.shape.is_causal) arguments.emplace_back(kHidden, &hidden);
  if (is_backward) {
    arguments.emplace_back(kOne, &one);
    arguments.emplace_back(kQuerySum, memory + query_sum);
    arguments.emplace_back(kDelta, memory + delta);
  }
  return plan.Run(handle, p.device, arguments, memory + own);
}

// Finds a plan and queues it. False where cuDNN does not take the problem, whose plan is then left alone.
bool RunOnce(const AttentionProblem& problem, const PlanKey& key) {
  const CudnnHandle handle(problem.device);
  if (!handle.get()) return false;
  const GraphPlan* const plan = GetPlans().Find(handle.get(), key);
  if (!plan) return false;
  if (SetStream(handle.get(), problem.device, problem.stream) &&
      RunPlan(*plan, handle.get(), problem, key.is_backward != 0))
    return true;
  GetPlans().Refuse(key);
  return false;
}

// Whether a program lets cuDNN compute attention; its gradients may differ from run to run.
bool IsAllowed(bool is_backward) {
  static const mica::plugin::Setting library(MICA_SETTING_CONVOLUTION_LIBRARY, 1);
  static const mica::plugin::Setting attention(MICA_SETTING_ATTENTION_LIBRARY, 1);
  static const mica::plugin::Setting same(MICA_SETTING_CONVOLUTION_DETERMINISTIC, 0);
  static const mica::plugin::Setting everywhere(MICA_SETTING_DETERMINISTIC, 0);
  return library.value() != 0 && attention.value() != 0 &&
         !(is_backward && (same.value() != 0 || everywhere.value() != 0));
}

class CudnnAttention final : public gpu::Attention {
 public:
  bool Has(int, const AttentionShape& shape) override {
    return Supports(shape) && IsAllowed(false) && HasCudnn();
  }
  bool Forward(const AttentionProblem& problem) override { return Run(problem, false); }
  bool Backward(const AttentionProblem& problem) override { return Run(problem, true); }

 private:
  static bool Run(const AttentionProblem& problem, bool is_backward);
};

bool CudnnAttention::Run(const AttentionProblem& problem, bool is_backward) {
  static std::atomic<bool> warned{false};
  PlanKey key;
  // Its kernels take the maximum before they scale, which a scale that is not positive forbids.
  if (!Supports(problem.shape) || !IsAllowed(is_backward) || !(problem.scale > 0) ||
      !std::isfinite(problem.scale) || !KeyOf(problem, is_backward, &key) || !HasCudnn() ||
      !IsKnownGood(problem.shape, is_backward))
    return false;
  Use(problem.device);
  const OutsideOfRecordings outside;
  return TryTwice(problem.device, warned, [&] { return RunOnce(problem, key); });
}

}  // namespace

gpu::Attention& GetCudnnAttention() {
  static gpu::Attention& attention = *new CudnnAttention;
  return attention;
}

}  // namespace cuda
