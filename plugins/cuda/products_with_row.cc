// Plans of cuBLASLt by sizes: what its heuristics choose is kept, a thread's own, so that a call looks up and
// launches.
#include "plugins/cuda/products_with_row.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "plugins/cuda/cublas.h"
#include "plugins/cuda/host_memory.h"

namespace cuda {
namespace {

// What it may use of the device's memory, as PyTorch lets it on this hardware.
constexpr size_t kMostWorkspace = size_t{32} << 20;
constexpr size_t kMostPlans = 256;  // of a thread; past them it begins anew
constexpr int32_t kMostAlignment = 256;

// What is known of sizes. One thread has it, for the address of the column is written into it.
class Plan {
 public:
  explicit Plan(const CublasLtApi& api) : api_(api) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan();

  // Whether cuBLASLt takes the product.
  bool Make(cublasLtHandle_t handle, const ProductWithRow& product, const void* column);
  bool Run(cublasLtHandle_t handle, const ProductWithRow& product, const ProductMemory& memory);

 private:
  template <typename T>
  bool Set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return Took(api_.cublasLtMatmulDescSetAttribute(product_, attribute, &value, sizeof value));
  }
  bool Layout(cublasLtMatrixLayout_t* layout, cudaDataType type, int64_t rows, int64_t columns, int64_t ld) {
    return Took(api_.cublasLtMatrixLayoutCreate(layout, type, static_cast<uint64_t>(rows),
                                                static_cast<uint64_t>(columns), ld));
  }
  bool Choose(cublasLtHandle_t handle, const ProductWithRow& product);
  // Descriptions are refused where the library is another than expected: cuBLAS computes then.
  static bool Took(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS; }

  const CublasLtApi& api_;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  const void* column_ = nullptr;
  cublasLtMatmulHeuristicResult_t choice_{};
  bool works_ = false;
};

Plan::~Plan() {
  for (const cublasLtMatrixLayout_t layout : {a_, b_, c_})
    if (layout) api_.cublasLtMatrixLayoutDestroy(layout);
  if (product_) api_.cublasLtMatmulDescDestroy(product_);
}

bool Plan::Make(cublasLtHandle_t handle, const ProductWithRow& p, const void* column) {
  const bool a_transposed = p.a_operation != CUBLAS_OP_N, b_transposed = p.b_operation != CUBLAS_OP_N;
  works_ = Took(api_.cublasLtMatmulDescCreate(&product_, p.compute,
                                              p.compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F)) &&
           Set(CUBLASLT_MATMUL_DESC_TRANSA, p.a_operation) &&
           Set(CUBLASLT_MATMUL_DESC_TRANSB, p.b_operation) &&
           Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS) &&
           Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, column) &&
           Layout(&a_, p.type, a_transposed ? p.k : p.m, a_transposed ? p.m : p.k, p.lda) &&
           Layout(&b_, p.type, b_transposed ? p.n : p.k, b_transposed ? p.k : p.n, p.ldb) &&
           Layout(&c_, p.type, p.m, p.n, p.ldc) && Choose(handle, p);
  column_ = column;
  return works_;
}

bool Plan::Choose(cublasLtHandle_t handle, const ProductWithRow& product) {
  cublasLtMatmulPreference_t preference = nullptr;
  if (!Took(api_.cublasLtMatmulPreferenceCreate(&preference))) return false;
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    return Took(api_.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
  };
  const auto alignment = static_cast<uint32_t>(product.alignment);
  int count = 0;
  const bool found = prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace) &&
                     prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment) &&
                     prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment) &&
                     prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment) &&
                     prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment) &&
                     (!product.is_exact || prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                  CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)) &&
                     Took(api_.cublasLtMatmulAlgoGetHeuristic(handle, product_, a_, b_, c_, c_, preference, 1,
                                                              &choice_, &count)) &&
                     count == 1 && Took(choice_.state);
  api_.cublasLtMatmulPreferenceDestroy(preference);
  return found;
}

bool Plan::Run(cublasLtHandle_t handle, const ProductWithRow& product, const ProductMemory& memory) {
  if (!works_) return false;
  const int device = static_cast<int>(product.device);
  if (column_ != memory.column) {
    works_ = Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, memory.column);
    if (!works_) return false;
    column_ = memory.column;
  }
  std::optional<Scratch> workspace;
  if (choice_.workspaceSize > 0) workspace.emplace(device, choice_.workspaceSize, memory.stream);
  const double double_zero = 0;
  const float float_zero = 0;
  const void* beta =
      product.compute == CUBLAS_COMPUTE_64F ? static_cast<const void*>(&double_zero) : &float_zero;
  const cublasStatus_t status =
      api_.cublasLtMatmul(handle, product_, memory.alpha, memory.a, a_, memory.b, b_, beta, memory.c, c_,
                          memory.c, c_, &choice_.algo, workspace ? workspace->data() : nullptr,
                          choice_.workspaceSize, reinterpret_cast<CUstream>(memory.stream));
  return CublasSucceeded(status, "cublasLtMatmul", device);
}

}  // namespace

bool Run(ProductWithRow product, const ProductMemory& memory) {
  static_assert(std::has_unique_object_representations_v<ProductWithRow>, "its bytes are a key");
  thread_local std::unordered_map<std::string, std::unique_ptr<Plan>> plans;
  const CublasLtApi* api = CublasLt();
  if (!api) return false;
  const auto address = [](const void* data) { return reinterpret_cast<uintptr_t>(data); };
  const uintptr_t bits = address(memory.a) | address(memory.b) | address(memory.c) | address(memory.column);
  product.alignment = static_cast<int32_t>(std::min<uintptr_t>(bits & (~bits + 1), kMostAlignment));
  // The mode is the heuristics' to know, not the handle's.
  const cublasHandle_t cublas =
      CublasHandle(static_cast<int>(product.device), memory.stream, CUBLAS_DEFAULT_MATH);
  if (!cublas) return false;
  const auto handle = reinterpret_cast<cublasLtHandle_t>(cublas);
  std::string key(reinterpret_cast<const char*>(&product), sizeof product);
  auto found = plans.find(key);
  if (found == plans.end()) {
    if (plans.size() >= kMostPlans) plans.clear();
    found = plans.emplace(std::move(key), std::make_unique<Plan>(*api)).first;
    found->second->Make(handle, product, memory.column);
  }
  return found->second->Run(handle, product, memory);
}

}  // namespace cuda
