#include "plugins/cpu/pooling/planes.h"

#include <algorithm>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/engine/iteration.h"
#include "plugins/cpu/engine/lanes/lanes.h"

namespace mica::cpu {
namespace {

int64_t AreaOf(const plugin::TensorRef& t, int32_t spatial) {
  int64_t area = 1;
  for (int32_t d = 1; d <= spatial; ++d) area *= t.size(-d);
  return area;
}

// Plane p alone.
Iteration OnePlane(const plugin::TensorRef& t, int32_t spatial, int64_t p) {
  Iteration it;
  int64_t strides[3];
  for (int32_t d = 0; d < spatial; ++d) strides[d] = t.stride(d - spatial) * t.itemsize();
  it.SetSizes(t.sizes() + t.ndim() - spatial, spatial);
  it.Add(t.data<char>() + PlaneOffset(t, spatial, p) * t.itemsize(), t.itemsize(), strides);
  it.Normalize(false);
  return it;
}

}  // namespace

int64_t PlaneOffset(const plugin::TensorRef& t, int32_t spatial, int64_t p) {
  int64_t offset = 0;
  for (int32_t d = t.ndim() - spatial - 1; d >= 0; --d) {
    offset += p % t.size(d) * t.stride(d);
    p /= t.size(d);
  }
  return offset;
}

PlaneReader::PlaneReader(const MicaTensor* tensor, int32_t spatial, int32_t dtype)
    : tensor_(tensor),
      spatial_(spatial),
      widened_(tensor_.dtype() != dtype),
      area_(AreaOf(tensor_, spatial)) {
  int64_t dense = 1;
  for (int32_t d = 1; d <= 3; ++d) {
    strides_[3 - d] = d > spatial ? 0 : widened_ ? dense : tensor_.stride(-d);
    if (d <= spatial) dense *= tensor_.size(-d);
  }
}

void PlaneReader::Widen(int64_t p, char* to) const {
  const Iteration it = OnePlane(tensor_, spatial_, p);
  const Primitive cast = DirectCast(tensor_.dtype(), MICA_F32);
  alignas(64) char buffer[kBlock * 2];
  for (int64_t position = 0; position < it.numel;) {
    const int64_t n = it.PieceLength(position, it.numel, kBlock);
    cast(to + position * 4, it.Locate(0, 0, position, n, buffer, true), nullptr, nullptr, n);
    position += n;
  }
}

PlaneWriter::PlaneWriter(MicaTensor* tensor, int32_t spatial, int32_t dtype)
    : tensor_(tensor),
      spatial_(spatial),
      dtype_(dtype),
      itemsize_(DtypeSize(dtype)),
      direct_(tensor_.contiguous() && tensor_.dtype() == dtype),
      area_(AreaOf(tensor_, spatial)) {}

void PlaneWriter::Deliver(int64_t p, const char* from) const {
  const Iteration it = OnePlane(tensor_, spatial_, p);
  const Primitive cast = tensor_.dtype() == dtype_ ? nullptr : DirectCast(dtype_, tensor_.dtype());
  alignas(64) char buffer[kBlock * 2];
  for (int64_t position = 0; position < it.numel;) {
    const int64_t n = it.PieceLength(position, it.numel, kBlock);
    const char* piece = from + position * itemsize_;
    if (cast != nullptr) {
      cast(buffer, piece, nullptr, nullptr, n);
      piece = buffer;
    }
    it.Deliver(0, 0, position, n, piece);
    position += n;
  }
}

}  // namespace mica::cpu
