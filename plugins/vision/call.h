// What the kernels of this plugin share: typed arguments of a boxed call, dense inputs in the
// type of the arithmetic, and results.
#ifndef MICA_PLUGINS_VISION_CALL_H_
#define MICA_PLUGINS_VISION_CALL_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include <mica/plugin.h>

namespace mica::vision {

using plugin::OwnedTensor;
using plugin::TensorRef;

// The tensor row-major and in `dtype`; a copy where it is not.
OwnedTensor Dense(MicaTensor* t, int32_t dtype);

// "(2, 3)"
std::string SizesOf(TensorRef t);

// Throws unless the tensor has this many dimensions; `meaning` tells which.
void CheckDims(TensorRef t, int32_t ndim, const char* name, const char* meaning);

// The dtype that arithmetic of the tensor's dtype runs in: float32 for half types.
int32_t ComputeType(TensorRef t, const char* op);

// Hands out a tensor, in `dtype`.
void Give(MicaValue* result, OwnedTensor t, int32_t dtype);

inline OwnedTensor New(std::initializer_list<int64_t> sizes, int32_t dtype) {
  return OwnedTensor::Empty(sizes.begin(), static_cast<int64_t>(sizes.size()), dtype, MicaDevice{0, 0});
}

// Calls f(float{}) or f(double{}).
template <class F>
void VisitReal(int32_t compute, F f) {
  if (compute == MICA_F64)
    f(double{});
  else
    f(float{});
}

// body(begin, end) over [0, n) on the host's threads; it must not throw.
template <class Body>
void Parallel(int64_t n, Body body) {
  plugin::Host()->parallel_for(
      0, n, 1, [](void* context, int64_t begin, int64_t end) { (*static_cast<Body*>(context))(begin, end); },
      &body);
}

}  // namespace mica::vision

#endif  // MICA_PLUGINS_VISION_CALL_H_
