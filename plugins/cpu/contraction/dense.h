// Operands of the explicit kernels in the layout and dtype a loop or library wants.
//
// A kernel that needs adjacent elements asks for a DenseInput and, for its result, a
// DenseOutput: both are the tensor's own memory where that fits and a converted copy
// where it does not. Not for kernels that can follow strides.
#ifndef MICA_PLUGINS_CPU_CONTRACTION_DENSE_H_
#define MICA_PLUGINS_CPU_CONTRACTION_DENSE_H_

#include <cstdint>

#include <mica/plugin.h>

namespace mica::cpu {

// Memory for the length of a call, from the host's caching allocator.
class Temporary {
 public:
  Temporary() = default;
  explicit Temporary(int64_t bytes);  // throws OUT_OF_MEMORY
  Temporary(Temporary&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  Temporary& operator=(Temporary&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~Temporary();
  template <class T = char>
  T* data() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

// Adjacent elements between dtypes that the engine converts in one step (all pairs of
// a floating type with float32).
void Convert(int32_t from, const void* src, int32_t to, void* dst, int64_t n, int32_t threads);

class DenseInput {
 public:
  // Row-major, in dtype `dtype` (the tensor's own, or float32 for a half type).
  DenseInput(const MicaTensor* tensor, int32_t dtype, int32_t threads);
  template <class T>
  const T* data() const {
    return static_cast<const T*>(data_);
  }

 private:
  const void* data_;
  Temporary copy_;
};

class DenseOutput {
 public:
  DenseOutput(MicaTensor* tensor, int32_t dtype, int32_t threads);
  template <class T>
  T* data() const {
    return static_cast<T*>(data_);
  }
  // Brings the elements to the tensor; call it once, after the last write.
  void Finish();

 private:
  MicaTensor* tensor_;
  int32_t dtype_, threads_;
  void* data_;
  Temporary copy_;
};

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_CONTRACTION_DENSE_H_
