// Graphs of operations that cuDNN fuses into kernels: tensors and operations are added one by one, and a
// plan is what runs them.
//
// A graph takes what is added until cuDNN refuses something; from then on it does nothing, and has no plan.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "plugins/cuda/cudnn.h"
#include "plugins/gpu/libraries/convolutions.h"

namespace cuda {

struct DestroyDescriptor {
  void operator()(cudnnBackendDescriptor_t descriptor) const {
    Cudnn().cudnnBackendDestroyDescriptor(descriptor);
  }
};
using Descriptor = std::unique_ptr<void, DestroyDescriptor>;
using Descriptors = std::vector<Descriptor>;

// Plans that need a larger workspace are passed over.
constexpr size_t kMostWorkspace = size_t{1} << 30;

// What a plan may do.
struct PlanLimits {
  bool rounds = true;  // compute float32 with shorter numbers (TF32)
  bool varies = true;  // give other bits in another run
};

// A graph for the device and shapes that it was made for. Threads may share it, and take turns: NVIDIA does
// not promise that every engine of cuDNN runs on several at once.
class GraphPlan {
 public:
  // An id that a tensor was added with, and its memory on the device, or a number of the host's.
  using Argument = std::pair<int64_t, void*>;

  // Bytes of which a process with the same cuDNN and a like device makes the plan again, without compiling;
  // "" where cuDNN has none.
  std::string Bytes() const;
  // NULL where cuDNN refuses them.
  static std::unique_ptr<GraphPlan> FromBytes(cudnnHandle_t handle, const std::string& bytes);

  size_t workspace_size() const { return workspace_size_; }
  // Queues the graph on the handle's stream; false where cuDNN refuses it, or cannot build or launch a
  // kernel. Throws where there is no memory.
  bool Run(cudnnHandle_t handle, int device, const std::vector<Argument>& arguments, void* workspace) const;

 private:
  friend class Graph;
  // Takes the descriptor of a plan; false where it is not finalized.
  bool Hold(cudnnBackendDescriptor_t plan);
  bool Execute(cudnnHandle_t handle, int device, cudnnBackendDescriptor_t pack) const;

  std::shared_ptr<Descriptors> descriptors_;  // what the plan is made of, and itself
  cudnnBackendDescriptor_t plan_ = nullptr;
  size_t workspace_size_ = 0;
  mutable std::mutex running_;
};

class Graph {
 public:
  // Of four dimensions, or five.
  struct Layout {
    std::array<int64_t, 5> sizes{}, strides{};
    int64_t ndim = 4;
    static Layout Of(const std::array<int64_t, 4>& sizes, const std::array<int64_t, 4>& strides);
    static Layout Dense(const std::array<int64_t, 4>& sizes);
    Layout Transposed() const;  // in the third and fourth
  };
  // How a window moves over the spatial dimensions.
  struct Window {
    int64_t ndim = 2;
    std::array<int64_t, 3> stride{}, padding{}, dilation{};
  };
  struct Tensor {
    cudnnBackendDescriptor_t descriptor = nullptr;
    Layout layout{};
  };

  // A tensor that lies at a multiple of 16 bytes, and is given by its id when the plan runs.
  Tensor Given(int64_t id, cudnnDataType_t type, const Layout& layout);
  // A float of the host's, given likewise.
  Tensor Number(int64_t id);

  // Operations: each returns its result, which no memory holds, or writes to a tensor that was given. Numbers
  // are computed as float.
  Tensor Pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor* y = nullptr);
  void Pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor* y, const Tensor& to);
  // x / y as another type.
  Tensor Quotient(const Tensor& x, const Tensor& y, cudnnDataType_t type);
  // x where its row is its column or behind it, `other` elsewhere.
  Tensor Lower(const Tensor& x, const Tensor& other);
  // a b, where some heads of `a` may share one of `b`.
  Tensor Product(const Tensor& a, const Tensor& b, cudnnDataType_t type);
  void Product(const Tensor& a, const Tensor& b, const Tensor& to);
  // Over the dimensions in which `to` is smaller, be it by a divisor.
  void Reduce(cudnnReduceTensorOp_t op, const Tensor& x, const Tensor& to);
  Tensor ReduceRows(cudnnReduceTensorOp_t op, const Tensor& x);
  Tensor Transpose(const Tensor& x, cudnnDataType_t type);
  // A convolution, or a gradient of it; the kind says which of the three tensors is written. As many groups
  // as the image has times the weight's channels.
  void Convolve(mica::kit::ConvolutionKind kind, cudnnDataType_t compute, const Window& window,
                const Tensor& image, const Tensor& weight, const Tensor& result);

  // The next plan that cuDNN can make, in the order of its heuristics; NULL where none is left. Nothing is
  // added from then on. Takes milliseconds, or some tenths of a second where cuDNN compiles kernels.
  std::unique_ptr<GraphPlan> Next(cudnnHandle_t handle, const PlanLimits& limits);

 private:
  // Keeps a new descriptor; NULL where something was refused.
  cudnnBackendDescriptor_t Make(cudnnBackendDescriptorType_t type);
  void Set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
           cudnnBackendAttributeType_t type, int64_t count, const void* values);
  template <typename T>
  void SetOne(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
              cudnnBackendAttributeType_t type, const T& value) {
    Set(descriptor, name, type, 1, &value);
  }
  void SetTensor(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, const Tensor& tensor);
  void Finalize(cudnnBackendDescriptor_t descriptor);
  bool Took(cudnnStatus_t status) { return ok_ = ok_ && status == CUDNN_STATUS_SUCCESS; }

  enum class Memory { kGiven, kByValue, kVirtual };
  Tensor Add(int64_t id, cudnnDataType_t type, const Layout& layout, Memory memory);
  Tensor Between(cudnnDataType_t type, const Layout& layout);
  // The operation of x, y and a condition (each but x may be NULL); `axis` is of an index that is generated.
  void AddPointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute, const Tensor& x, const Tensor* y,
                    const Tensor* condition, const Tensor& to, int64_t axis = -1);
  void AddGraph(cudnnHandle_t handle);
  // Appends what the next of cuDNN's heuristics proposes, the best first; false where there is no next one.
  bool AskForMore();
  bool IsWithin(const PlanLimits& limits, cudnnBackendDescriptor_t configuration);

  bool ok_ = true;
  int64_t next_id_ = 1000;  // of tensors between operations
  std::shared_ptr<Descriptors> descriptors_ = std::make_shared<Descriptors>();
  std::vector<cudnnBackendDescriptor_t> operations_;
  cudnnBackendDescriptor_t graph_ = nullptr;
  size_t asked_ = 0, next_ = 0;  // heuristics, and the configurations of which plans were made
  std::vector<cudnnBackendDescriptor_t> configurations_;
};

}  // namespace cuda
