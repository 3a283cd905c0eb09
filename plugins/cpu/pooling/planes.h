// The planes that pooling reads and writes, where they lie.
//
// A plane in the compute dtype is read with its own strides; one of a half type is widened
// into this thread's scratch memory. A plane of results is made dense: in its place where it
// lies so, else in scratch memory, from where it is brought to its place.
#ifndef MICA_PLUGINS_CPU_POOLING_PLANES_H_
#define MICA_PLUGINS_CPU_POOLING_PLANES_H_

#include <cstdint>

#include <mica/plugin.h>

namespace mica::cpu {

// A plane in memory; strides count elements.
template <class T>
struct PlaneView {
  const T* data;
  int64_t layer, row, column;
  const T& at(int64_t z, int64_t y, int64_t x) const { return data[z * layer + y * row + x * column]; }
};

// Where plane p of the last `spatial` dimensions begins, in elements.
int64_t PlaneOffset(const plugin::TensorRef& t, int32_t spatial, int64_t p);

class PlaneReader {
 public:
  PlaneReader(const MicaTensor* tensor, int32_t spatial, int32_t dtype);
  // Bytes of scratch memory that a plane takes, a multiple of 64.
  int64_t scratch_bytes() const { return widened_ ? (area_ * 4 + 63) / 64 * 64 : 0; }
  template <class T>
  PlaneView<T> Read(int64_t p, char* scratch) const {
    if (widened_) Widen(p, scratch);
    return {widened_ ? reinterpret_cast<const T*>(scratch)
                     : tensor_.data<T>() + PlaneOffset(tensor_, spatial_, p),
            strides_[0], strides_[1], strides_[2]};
  }

 private:
  void Widen(int64_t p, char* to) const;
  plugin::TensorRef tensor_;
  int32_t spatial_;
  bool widened_;
  int64_t area_;
  int64_t strides_[3];
};

class PlaneWriter {
 public:
  PlaneWriter(MicaTensor* tensor, int32_t spatial, int32_t dtype);
  int64_t scratch_bytes() const { return direct_ ? 0 : (area_ * itemsize_ + 63) / 64 * 64; }
  // Memory for the elements of plane p, dense.
  template <class T>
  T* Begin(int64_t p, char* scratch) const {
    return direct_ ? tensor_.data<T>() + p * area_ : reinterpret_cast<T*>(scratch);
  }
  // Brings them to their place.
  void End(int64_t p, const char* scratch) const {
    if (!direct_) Deliver(p, scratch);
  }

 private:
  void Deliver(int64_t p, const char* from) const;
  plugin::TensorRef tensor_;
  int32_t spatial_, dtype_;
  int64_t itemsize_;
  bool direct_;
  int64_t area_;
};

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_POOLING_PLANES_H_
