// Descriptors of cuDNN's graph API, their attributes, and the choice of a plan.
#include "plugins/cuda/graph.h"

#include <algorithm>
#include <iterator>

namespace cuda {
namespace {

// In the order in which they are asked: the second one's engines take whatever the others refuse.
constexpr cudnnBackendHeurMode_t kHeuristics[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};

}  // namespace

Graph::Layout Graph::Layout::Of(const std::array<int64_t, 4>& sizes, const std::array<int64_t, 4>& strides) {
  Layout layout;
  std::copy(sizes.begin(), sizes.end(), layout.sizes.begin());
  std::copy(strides.begin(), strides.end(), layout.strides.begin());
  return layout;
}

Graph::Layout Graph::Layout::Dense(const std::array<int64_t, 4>& sizes) {
  return Of(sizes, {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1});
}

Graph::Layout Graph::Layout::Transposed() const {
  Layout turned = *this;
  std::swap(turned.sizes[2], turned.sizes[3]);
  std::swap(turned.strides[2], turned.strides[3]);
  return turned;
}

// --- descriptors

cudnnBackendDescriptor_t Graph::Make(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  if (!ok_ || !Took(Cudnn().cudnnBackendCreateDescriptor(type, &made))) return nullptr;
  descriptors_->emplace_back(made);
  return made;
}

void Graph::Set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  if (ok_) Took(Cudnn().cudnnBackendSetAttribute(descriptor, name, type, count, values));
}

void Graph::SetTensor(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                      const Tensor& tensor) {
  SetOne(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, tensor.descriptor);
}

void Graph::Finalize(cudnnBackendDescriptor_t descriptor) {
  if (ok_) Took(Cudnn().cudnnBackendFinalize(descriptor));
}

// --- tensors

Graph::Tensor Graph::Add(int64_t id, cudnnDataType_t type, const Layout& layout, Memory memory) {
  const cudnnBackendDescriptor_t made = Make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  SetOne(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  Set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, layout.ndim, layout.sizes.data());
  Set(made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, layout.ndim, layout.strides.data());
  SetOne(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  SetOne(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, int64_t{16});
  if (memory == Memory::kVirtual) SetOne(made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  if (memory == Memory::kByValue) SetOne(made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  Finalize(made);
  return {made, layout};
}

Graph::Tensor Graph::Given(int64_t id, cudnnDataType_t type, const Layout& layout) {
  return Add(id, type, layout, Memory::kGiven);
}

Graph::Tensor Graph::Number(int64_t id) {
  return Add(id, CUDNN_DATA_FLOAT, Layout::Dense({1, 1, 1, 1}), Memory::kByValue);
}

Graph::Tensor Graph::Between(cudnnDataType_t type, const Layout& layout) {
  return Add(next_id_++, type, layout, Memory::kVirtual);
}

// --- operations

void Graph::AddPointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute, const Tensor& x, const Tensor* y,
                         const Tensor* condition, const Tensor& to, int64_t axis) {
  const cudnnBackendDescriptor_t how = Make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  SetOne(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  SetOne(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compute);
  if (axis >= 0) SetOne(how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
  Finalize(how);
  const cudnnBackendDescriptor_t made = Make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  SetOne(made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, how);
  SetTensor(made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (y) SetTensor(made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *y);
  if (condition) SetTensor(made, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *condition);
  SetTensor(made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);
  Finalize(made);
  operations_.push_back(made);
}

void Graph::Pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor* y, const Tensor& to) {
  AddPointwise(mode, CUDNN_DATA_FLOAT, x, y, nullptr, to);
}

Graph::Tensor Graph::Pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor* y) {
  const Tensor to = Between(CUDNN_DATA_FLOAT, x.layout);
  Pointwise(mode, x, y, to);
  return to;
}

Graph::Tensor Graph::Quotient(const Tensor& x, const Tensor& y, cudnnDataType_t type) {
  const Tensor to = Between(type, x.layout);
  Pointwise(CUDNN_POINTWISE_DIV, x, &y, to);
  return to;
}

Graph::Tensor Graph::Lower(const Tensor& x, const Tensor& other) {
  const Tensor row = Between(CUDNN_DATA_INT32, x.layout), column = Between(CUDNN_DATA_INT32, x.layout);
  AddPointwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, x, nullptr, nullptr, row, 2);
  AddPointwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, x, nullptr, nullptr, column, 3);
  const Tensor is_lower = Between(CUDNN_DATA_BOOLEAN, x.layout);
  AddPointwise(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, row, &column, nullptr, is_lower);
  const Tensor to = Between(CUDNN_DATA_FLOAT, x.layout);
  AddPointwise(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, x, &other, &is_lower, to);
  return to;
}

void Graph::Product(const Tensor& a, const Tensor& b, const Tensor& to) {
  const cudnnBackendDescriptor_t how = Make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  SetOne(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  Finalize(how);
  const cudnnBackendDescriptor_t made = Make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  SetTensor(made, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
  SetTensor(made, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  SetTensor(made, CUDNN_ATTR_OPERATION_MATMUL_CDESC, to);
  SetOne(made, CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, how);
  Finalize(made);
  operations_.push_back(made);
}

Graph::Tensor Graph::Product(const Tensor& a, const Tensor& b, cudnnDataType_t type) {
  const auto& sizes = a.layout.sizes;
  const Tensor to = Between(type, Layout::Dense({sizes[0], sizes[1], sizes[2], b.layout.sizes[3]}));
  Product(a, b, to);
  return to;
}

void Graph::Reduce(cudnnReduceTensorOp_t op, const Tensor& x, const Tensor& to) {
  const cudnnBackendDescriptor_t how = Make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  SetOne(how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op);
  SetOne(how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  Finalize(how);
  const cudnnBackendDescriptor_t made = Make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  SetTensor(made, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  SetTensor(made, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to);
  SetOne(made, CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, how);
  Finalize(made);
  operations_.push_back(made);
}

Graph::Tensor Graph::ReduceRows(cudnnReduceTensorOp_t op, const Tensor& x) {
  const auto& sizes = x.layout.sizes;
  const Tensor to = Between(CUDNN_DATA_FLOAT, Layout::Dense({sizes[0], sizes[1], sizes[2], 1}));
  Reduce(op, x, to);
  return to;
}

// cuDNN calls it a reshape: the same memory, in other strides.
Graph::Tensor Graph::Transpose(const Tensor& x, cudnnDataType_t type) {
  const Tensor to = Between(type, x.layout.Transposed());
  const cudnnBackendDescriptor_t made = Make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  SetTensor(made, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
  SetTensor(made, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, to);
  Finalize(made);
  operations_.push_back(made);
  return to;
}

namespace {

// What cuDNN calls the parts of a convolution, or of a gradient of it.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t how, alpha, beta, image, weight, result;
};

const ConvolutionNames& NamesOf(mica::kit::ConvolutionKind kind) {
  static constexpr ConvolutionNames kForward{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  static constexpr ConvolutionNames kInput{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
  static constexpr ConvolutionNames kWeight{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
  using mica::kit::ConvolutionKind;
  return kind == ConvolutionKind::kForward         ? kForward
         : kind == ConvolutionKind::kBackwardInput ? kInput
                                                   : kWeight;
}

}  // namespace

void Graph::Convolve(mica::kit::ConvolutionKind kind, cudnnDataType_t compute, const Window& window,
                     const Tensor& image, const Tensor& weight, const Tensor& result) {
  const cudnnBackendDescriptor_t how = Make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  SetOne(how, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute);
  SetOne(how, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  SetOne(how, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, window.ndim);
  const auto set = [&](cudnnBackendAttributeName_t name, const std::array<int64_t, 3>& values) {
    Set(how, name, CUDNN_TYPE_INT64, window.ndim, values.data());
  };
  set(CUDNN_ATTR_CONVOLUTION_DILATIONS, window.dilation);
  set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, window.stride);
  set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, window.padding);
  set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, window.padding);
  Finalize(how);
  const ConvolutionNames& names = NamesOf(kind);
  const cudnnBackendDescriptor_t made = Make(names.operation);
  SetOne(made, names.how, CUDNN_TYPE_BACKEND_DESCRIPTOR, how);
  SetTensor(made, names.image, image);
  SetTensor(made, names.weight, weight);
  SetTensor(made, names.result, result);
  if (compute == CUDNN_DATA_DOUBLE) {
    SetOne(made, names.alpha, CUDNN_TYPE_DOUBLE, 1.0);
    SetOne(made, names.beta, CUDNN_TYPE_DOUBLE, 0.0);
  } else {
    SetOne(made, names.alpha, CUDNN_TYPE_FLOAT, 1.0F);
    SetOne(made, names.beta, CUDNN_TYPE_FLOAT, 0.0F);
  }
  Finalize(made);
  operations_.push_back(made);
}

// --- plans

void Graph::AddGraph(cudnnHandle_t handle) {
  graph_ = Make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  SetOne(graph_, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  Set(graph_, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
      static_cast<int64_t>(operations_.size()), operations_.data());
  Finalize(graph_);
  if (!ok_) asked_ = std::size(kHeuristics);  // no plan
}

bool Graph::AskForMore() {
  constexpr int64_t kMost = 10;
  if (asked_ == std::size(kHeuristics)) return false;
  ok_ = true;
  const cudnnBackendDescriptor_t heuristics = Make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  SetOne(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph_);
  SetOne(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, kHeuristics[asked_++]);
  Finalize(heuristics);
  std::vector<cudnnBackendDescriptor_t> found;
  for (int64_t i = 0; i < kMost; ++i) found.push_back(Make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
  int64_t count = 0;
  if (ok_ &&
      Took(Cudnn().cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, kMost, &count, found.data())))
    configurations_.insert(configurations_.end(), found.begin(), found.begin() + std::min(count, kMost));
  return true;
}

// By what cuDNN notes of the configuration's engine.
bool Graph::IsWithin(const PlanLimits& limits, cudnnBackendDescriptor_t configuration) {
  if (limits.rounds && limits.varies) return true;
  constexpr int64_t kMost = 32;
  cudnnBackendNumericalNote_t notes[kMost] = {};
  int64_t engines = 0, count = 0;
  cudnnBackendDescriptor_t engine = Make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  const CudnnApi& api = Cudnn();
  if (!ok_ ||
      !Took(api.cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engines, &engine)) ||
      !Took(api.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                         kMost, &count, notes)))
    return false;
  return std::all_of(notes, notes + std::min(count, kMost), [&](cudnnBackendNumericalNote_t note) {
    if (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return limits.varies;
    return limits.rounds ||
           (note != CUDNN_NUMERICAL_NOTE_TENSOR_CORE && note != CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  });
}

std::unique_ptr<GraphPlan> Graph::Next(cudnnHandle_t handle, const PlanLimits& limits) {
  if (!graph_) AddGraph(handle);
  for (;;) {
    if (next_ == configurations_.size()) {
      if (!AskForMore()) return nullptr;
      continue;
    }
    const cudnnBackendDescriptor_t configuration = configurations_[next_++];
    ok_ = true;  // one that cuDNN fails to compile leaves others
    if (!IsWithin(limits, configuration)) continue;
    const cudnnBackendDescriptor_t made = Make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    SetOne(made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
    SetOne(made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, configuration);
    Finalize(made);
    auto plan = std::make_unique<GraphPlan>();
    if (!ok_ || !plan->Hold(made) || plan->workspace_size_ > kMostWorkspace) continue;
    plan->descriptors_ = descriptors_;
    return plan;
  }
}

bool GraphPlan::Hold(cudnnBackendDescriptor_t plan) {
  int64_t size = 0, count = 0;
  if (Cudnn().cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                       &count, &size) != CUDNN_STATUS_SUCCESS ||
      size < 0)
    return false;
  plan_ = plan;
  workspace_size_ = static_cast<size_t>(size);
  return true;
}

std::string GraphPlan::Bytes() const {
  const auto get = [&](int64_t most, int64_t* count, char* bytes) {
    return Cudnn().cudnnBackendGetAttribute(plan_, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                            CUDNN_TYPE_CHAR, most, count, bytes) == CUDNN_STATUS_SUCCESS;
  };
  int64_t count = 0;
  if (!get(0, &count, nullptr) || count <= 0) return "";
  std::string bytes(static_cast<size_t>(count), '\0');
  return get(count, &count, bytes.data()) && static_cast<size_t>(count) == bytes.size() ? bytes : "";
}

std::unique_ptr<GraphPlan> GraphPlan::FromBytes(cudnnHandle_t handle, const std::string& bytes) {
  const CudnnApi& api = Cudnn();
  cudnnBackendDescriptor_t made = nullptr;
  if (api.cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &made) !=
      CUDNN_STATUS_SUCCESS)
    return nullptr;
  auto plan = std::make_unique<GraphPlan>();
  plan->descriptors_ = std::make_shared<Descriptors>();
  plan->descriptors_->emplace_back(made);
  const bool is_made = api.cudnnBackendSetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
                                                    1, &handle) == CUDNN_STATUS_SUCCESS &&
                       api.cudnnBackendSetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                                    CUDNN_TYPE_CHAR, static_cast<int64_t>(bytes.size()),
                                                    bytes.data()) == CUDNN_STATUS_SUCCESS &&
                       api.cudnnBackendFinalize(made) == CUDNN_STATUS_SUCCESS && plan->Hold(made);
  return is_made && plan->workspace_size_ <= kMostWorkspace ? std::move(plan) : nullptr;
}

bool GraphPlan::Execute(cudnnHandle_t handle, int device, cudnnBackendDescriptor_t pack) const {
  std::lock_guard<std::mutex> lock(running_);
  const cudnnStatus_t status = Cudnn().cudnnBackendExecute(handle, plan_, pack);
  return !FailedToLaunch(status) && Succeeded(status, "cudnnBackendExecute", device);
}

bool GraphPlan::Run(cudnnHandle_t handle, int device, const std::vector<Argument>& arguments,
                    void* workspace) const {
  const CudnnApi& api = Cudnn();
  std::vector<int64_t> ids;
  std::vector<void*> pointers;
  for (const auto& [id, pointer] : arguments) ids.push_back(id), pointers.push_back(pointer);
  cudnnBackendDescriptor_t made = nullptr;
  if (!Succeeded(api.cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &made),
                 "cudnnBackendCreateDescriptor", device))
    return false;
  const Descriptor pack(made);
  const auto set = [&](cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t count,
                       const void* values) {
    return Succeeded(api.cudnnBackendSetAttribute(made, name, type, static_cast<int64_t>(count), values),
                     "cudnnBackendSetAttribute", device);
  };
  return set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids.size(), ids.data()) &&
         set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.size(), pointers.data()) &&
         set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace) &&
         Succeeded(api.cudnnBackendFinalize(made), "cudnnBackendFinalize", device) &&
         Execute(handle, device, made);
}

}  // namespace cuda
