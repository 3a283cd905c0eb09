// copy_ with any strides, dtypes and broadcasting, and reading one element.
#include <cstring>

#include "kernels/portable/lanes.h"
#include "mica/kernels/portable_declarations.h"
#include "tensor/shape.h"

namespace mica::portable {
namespace {

// Complex wins, then floating, then unsigned 64-bit: the lane that holds both.
Lane LaneOfPair(DType from, DType to) {
  if (IsComplex(from)) return Lane::kC128;
  if (IsFloating(from)) return Lane::kF64;
  static_cast<void>(to);
  return LaneOf(from);
}

template <typename T>
void CopySame(const Tensor& to, const Tensor& from, IntSpan strides) {
  Offsets source(to.sizes(), strides, from.itemsize()), target(to);
  int64_t a[Offsets::kBlock], b[Offsets::kBlock];
  for (int64_t i = 0, total = to.numel(); i < total; i += Offsets::kBlock) {
    const int64_t n = std::min(Offsets::kBlock, total - i);
    source.Next(a, n);
    target.Next(b, n);
    for (int64_t j = 0; j < n; ++j)
      *reinterpret_cast<T*>(to.data_as<char>() + b[j]) =
          *reinterpret_cast<const T*>(from.data_as<char>() + a[j]);
  }
}

void CopyConverting(const Tensor& to, const Tensor& from, IntSpan strides) {
  const Lane lane = LaneOfPair(from.dtype(), to.dtype());
  Offsets source(to.sizes(), strides, from.itemsize()), target(to);
  int64_t a[Offsets::kBlock], b[Offsets::kBlock];
  Complex block[Offsets::kBlock];
  for (int64_t i = 0, total = to.numel(); i < total; i += Offsets::kBlock) {
    const int64_t n = std::min(Offsets::kBlock, total - i);
    source.Next(a, n);
    target.Next(b, n);
    LoadLanes(lane, from.dtype(), from.data_as<char>(), a, n, block);
    StoreLanes(lane, to.dtype(), block, to.data_as<char>(), b, n);
  }
}

}  // namespace

void copy_(const Tensor& self, const Tensor& src, bool) {
  MICA_CHECK(CanExpandTo(src.sizes(), self.sizes()),
             "The expanded size of the tensor must match the existing size: the shape ",
             ShapeText(src.sizes()), " of `src` does not broadcast to the shape ", ShapeText(self.sizes()),
             " of `self`.");
  if (self.numel() == 0) return;
  const Dims strides = BroadcastStrides(src, self.sizes());
  const bool plain = self.is_contiguous() && src.is_contiguous() && src.sizes() == self.sizes();
  // Overlapping memory is read whole before it is written.
  if (GetOverlap(self, src) != Overlap::kNo &&
      !(plain && self.data() == src.data() && self.dtype() == src.dtype())) {
    Tensor whole = EmptyTensor(src.sizes(), src.dtype(), src.device());
    VisitSize(src.itemsize(), [&]<typename T>() { CopySame<T>(whole, src, src.strides()); });
    copy_(self, whole, false);
    return;
  }
  if (self.dtype() != src.dtype())
    CopyConverting(self, src, strides);
  else if (plain)
    std::memmove(self.data(), src.data(), static_cast<size_t>(self.numel() * self.itemsize()));
  else
    VisitSize(src.itemsize(), [&]<typename T>() { CopySame<T>(self, src, strides); });
}

Scalar _local_scalar_dense(const Tensor& self) {
  MICA_CHECK(self.numel() == 1, "a Tensor with ", self.numel(),
             " elements cannot be converted to Scalar; its shape is ", ShapeText(self.sizes()), ".");
  const int64_t zero = 0;
  const char* data = self.data_as<char>();
  switch (LaneOf(self.dtype())) {
    case Lane::kC128: {
      Complex c;
      LoadLanes(Lane::kC128, self.dtype(), data, &zero, 1, &c);
      return Scalar(c);
    }
    case Lane::kF64: {
      double d;
      LoadLanes(Lane::kF64, self.dtype(), data, &zero, 1, &d);
      return Scalar(d);
    }
    default: {
      int64_t i;
      LoadLanes(Lane::kI64, self.dtype(), data, &zero, 1, &i);
      if (self.dtype() == DType::kU64) return Scalar(static_cast<uint64_t>(i));
      return self.dtype() == DType::kBool ? Scalar(i != 0) : Scalar(i);
    }
  }
}

}  // namespace mica::portable
