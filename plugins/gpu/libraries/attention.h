// A vendor's attention, as plugins/gpu calls it.
//
// CUDA has cuDNN behind it; where a library is missing or does not take a problem, it says so, and the
// kernels of plugins/gpu/attention compute it. Both save the same logarithms of sums, so that either's
// gradients follow either's results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace gpu {

// [batch, heads, rows, width] in a device's memory, whose rows are adjacent elements. Strides are in
// elements, and those of a dimension of size 1 mean nothing.
struct AttentionTensor {
  void* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;
};

// There are no gaps between the bytes.
struct AttentionShape {
  int32_t dtype = 0;      // MICA_F16 or MICA_BF16
  int32_t is_causal = 0;  // whether query i sees the keys 0 to i only
  int64_t batch = 1, heads = 1, key_heads = 1, queries = 1, keys = 1, width = 1;
};

// output = softmax(scale * query key^T) value, where heads / key_heads heads of queries share one of keys
// and values.
struct AttentionProblem {
  int device = 0;
  uint64_t stream = 0;
  AttentionShape shape;
  double scale = 1;
  AttentionTensor query, key, value;
  AttentionTensor output;    // Forward writes it, Backward reads it
  float* log_sum = nullptr;  // [batch, heads, queries], dense: the logarithm of each row's sum; likewise
  // For Backward, which writes the last three.
  AttentionTensor grad_output, grad_query, grad_key, grad_value;
  // Memory of that size on the device for kernels that are queued before the call returns; what is asked for
  // again is given in the former's place. Throws where there is none left.
  std::function<void*(size_t size)> workspace;
};

class Attention {
 public:
  virtual ~Attention() = default;

  // Whether the library may take problems of such a shape. Throws nothing.
  virtual bool Has(int device, const AttentionShape& shape) = 0;
  // Queue the problem on its stream. They return false, and do nothing, where the library does not take it.
  // Products are summed as float. Backward may add up in an order that varies from call to call.
  virtual bool Forward(const AttentionProblem& problem) = 0;
  virtual bool Backward(const AttentionProblem& problem) = 0;
};

}  // namespace gpu
