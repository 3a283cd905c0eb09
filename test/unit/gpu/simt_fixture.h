// The simulated GPU's driver with one module of kernels loaded, for its tests.
//
// Loaded once a process; kernels run on device 0 unless a test says otherwise. Tests leave no
// error behind: a kernel's is thrown by the next wait.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/simt/driver.h"
#include "test/support/mica_test.h"

namespace simt::test {

inline gpu::Driver& Simt() { return GetSimtDriver(); }

// A kernel of kernels.cc.
uint64_t Function(const std::string& name);
// A kernel of a text of its own, on a device.
uint64_t FunctionOf(const std::string& text, const std::string& name, int device = 0);

struct Shape {
  uint32_t blocks, threads;
  uint64_t stream = 0;
  int device = 0;
};

template <typename... A>
void Run(uint64_t function, Shape shape, A... values) {
  void* arguments[] = {&values..., nullptr};
  const size_t sizes[] = {sizeof(A)..., 0};
  gpu::Launch launch;
  launch.function = function;
  launch.blocks[0] = shape.blocks;
  launch.threads[0] = shape.threads;
  launch.arguments = arguments;
  launch.sizes = sizes;
  launch.count = sizeof...(A);
  launch.stream = shape.stream;
  Simt().Run(shape.device, launch);
}

// Elements on a device.
template <typename T>
class Array {
 public:
  explicit Array(size_t count, int device = 0)
      : count_(count), device_(device), data_(static_cast<T*>(Simt().Allocate(device, Bytes()))) {}
  explicit Array(const std::vector<T>& values, int device = 0) : Array(values.size(), device) {
    Simt().CopyToDevice(device, data_, values.data(), Bytes(), 0);
  }
  ~Array() { Simt().Free(device_, data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  T* data() const { return data_; }
  int64_t Bytes() const { return static_cast<int64_t>(count_ * sizeof(T)); }
  std::vector<T> Values(uint64_t stream = 0) const {
    std::vector<T> values(count_);
    Simt().CopyToHost(device_, values.data(), data_, Bytes(), stream);
    return values;
  }

 private:
  const size_t count_;
  const int device_;
  T* const data_;
};

// 0, 1, 2, ...
template <typename T>
std::vector<T> Counted(size_t count) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(i);
  return values;
}

}  // namespace simt::test
