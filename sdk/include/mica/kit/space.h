// The index space of a kernel: dimensions, and where each operand lies in them.
//
// Dimensions of size 1 go, neighbours that every operand walks as one are merged,
// and, where order does not matter, dimensions are sorted by the first operand's
// strides. What is left is few: 1 for dense operands, 2 or 3 for a broadcast.
#pragma once

#include <string>
#include <vector>

#include <mica/plugin.h>

namespace opencl_device {

struct Operand {
  void* data;
  int32_t dtype;
  std::vector<int64_t> strides;  // in elements, one for each dimension
};

struct Space {
  std::vector<int64_t> sizes;
  std::vector<Operand> operands;

  int64_t Count() const {
    int64_t n = 1;
    for (const int64_t size : sizes) n *= size;
    return n;
  }
  // A tensor that is broadcast to the sizes.
  void Add(const MicaTensor* tensor);
  void Simplify(bool may_sort);
  // Whether every index and offset fits 31 bits.
  bool IsSmall() const;
};

inline int32_t DtypeOf(const MicaTensor* tensor) { return mica::plugin::TensorRef(tensor).dtype(); }

}  // namespace opencl_device
