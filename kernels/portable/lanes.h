// Lanes: any dtype as one of four wide types, and back.
//
// The portable kernels compute in the widest type of a kind (int64, uint64,
// double, complex<double>) and round once on the way out. That keeps them few and
// makes them the reference for faster ones. Do not use them where speed matters.
#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/portable/patience.h"
#include "tensor/tensor.h"

namespace mica::portable {

using Complex = std::complex<double>;

enum class Lane : uint8_t { kI64, kU64, kF64, kC128 };
Lane LaneOf(DType compute);

// n elements at `base + offsets[i]` (bytes) of dtype `d`, to or from an array of
// the lane's C++ type. Complex to real takes the real part; float to integer
// truncates, and gives the least int64 (then cut to size) when it does not fit.
void LoadLanes(Lane lane, DType d, const char* base, const int64_t* offsets, int64_t n, void* out);
void StoreLanes(Lane lane, DType d, const void* in, char* base, const int64_t* offsets, int64_t n);

// Calls f.operator()<T>() with the lane's C++ type.
template <typename F>
decltype(auto) VisitLane(Lane lane, F&& f) {
  switch (lane) {
    case Lane::kI64:
      return f.template operator()<int64_t>();
    case Lane::kU64:
      return f.template operator()<uint64_t>();
    case Lane::kF64:
      return f.template operator()<double>();
    case Lane::kC128:
      return f.template operator()<Complex>();
  }
  __builtin_unreachable();
}
template <typename T>
constexpr Lane kLaneFor = Lane::kI64;
template <>
inline constexpr Lane kLaneFor<uint64_t> = Lane::kU64;
template <>
inline constexpr Lane kLaneFor<double> = Lane::kF64;
template <>
inline constexpr Lane kLaneFor<Complex> = Lane::kC128;

// Byte offsets of a tensor's elements in row-major order, a block at a time.
class Offsets {
 public:
  static constexpr int64_t kBlock = 256;
  // `strides` in elements of `itemsize` bytes, one for each size.
  Offsets(IntSpan sizes, IntSpan strides, int64_t itemsize);
  explicit Offsets(const Tensor& t) : Offsets(t.sizes(), t.strides(), t.itemsize()) {}
  // Writes the next (at most n) offsets.
  void Next(int64_t* out, int64_t n);

 private:
  Dims sizes_, strides_, at_;
  int64_t offset_ = 0;
};

// The strides (in elements) with which `t` is read as `shape`: 0 where it is
// broadcast.
Dims BroadcastStrides(const Tensor& t, IntSpan shape);

// All elements in row-major order, and back. Both ask for a Ctrl-C (patience.h).
template <typename T>
std::vector<T> ToLanes(const Tensor& t) {
  std::vector<T> out(static_cast<size_t>(t.numel()));
  Offsets at(t);
  int64_t offsets[Offsets::kBlock];
  const int64_t total = t.numel();
  Patience patience;
  for (int64_t i = 0; i < total; i += Offsets::kBlock) {
    const int64_t n = std::min(Offsets::kBlock, total - i);
    at.Next(offsets, n);
    LoadLanes(kLaneFor<T>, t.dtype(), t.data_as<char>(), offsets, n, out.data() + i);
    patience.Spend(n);
  }
  return out;
}
template <typename T>
void FromLanes(const std::vector<T>& in, const Tensor& t) {
  Offsets at(t);
  int64_t offsets[Offsets::kBlock];
  const int64_t total = t.numel();
  Patience patience;
  for (int64_t i = 0; i < total; i += Offsets::kBlock) {
    const int64_t n = std::min(Offsets::kBlock, total - i);
    at.Next(offsets, n);
    StoreLanes(kLaneFor<T>, t.dtype(), in.data() + i, t.data_as<char>(), offsets, n);
    patience.Spend(n);
  }
}

// A block of memory of one element, for kernels that only move elements.
struct alignas(16) Bytes16 {
  uint64_t low, high;
};
template <typename F>
decltype(auto) VisitSize(int64_t itemsize, F&& f) {
  switch (itemsize) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<Bytes16>();
  }
}

// Byte offsets of all elements in row-major order.
std::vector<int64_t> AllOffsets(const Tensor& t);

// A tensor seen as [outer, size of dim, inner] in row-major order.
struct Around {
  int64_t outer = 1, size = 1, inner = 1;
  Around(IntSpan sizes, int64_t dim) {
    for (int64_t i = 0; i < sizes.size(); ++i) (i < dim ? outer : i == dim ? size : inner) *= sizes[i];
  }
};

// The index as a position in a dimension of size `size`. Out of bounds throws
// kIndex; gather and the scatters throw kRuntime as torch does.
int64_t CheckedIndex(int64_t index, int64_t size, int64_t dim, bool wrap, ErrorKind kind = ErrorKind::kIndex);
// The index tensor's values, checked (and wrapped, where torch wraps).
std::vector<int64_t> CheckedIndices(const Tensor& index, int64_t size, int64_t dim, bool wrap,
                                    ErrorKind kind = ErrorKind::kIndex);

inline int64_t Wrapped(int64_t dim, int64_t ndim) { return dim < 0 ? dim + std::max<int64_t>(ndim, 1) : dim; }

}  // namespace mica::portable
