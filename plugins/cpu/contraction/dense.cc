#include "plugins/cpu/contraction/dense.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "plugins/cpu/engine/lanes/lanes.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/engine/transpose.h"

namespace mica::cpu {
namespace {

constexpr MicaDevice kCpu{0, 0};
constexpr int32_t kMaxDims = 64;
// Elements that make a second thread worth waking.
constexpr int64_t kGrain = 32768;

struct Box {
  int32_t ndim = 0;
  int64_t sizes[kMaxDims], src[kMaxDims], dst[kMaxDims];
};

// Drops dimensions of size 1 and joins those that lie alike on both sides.
Box Collapse(int32_t ndim, const int64_t* sizes, const int64_t* src, const int64_t* dst) {
  Box box;
  for (int32_t d = 0; d < ndim; ++d) {
    if (sizes[d] == 1) continue;
    const int32_t last = box.ndim - 1;
    if (last >= 0 && box.src[last] == src[d] * sizes[d] && box.dst[last] == dst[d] * sizes[d]) {
      box.sizes[last] *= sizes[d];
      box.src[last] = src[d];
      box.dst[last] = dst[d];
      continue;
    }
    box.sizes[box.ndim] = sizes[d];
    box.src[box.ndim] = src[d];
    box.dst[box.ndim++] = dst[d];
  }
  if (box.ndim == 0) {
    box.ndim = 1;
    box.sizes[0] = 1;
    box.src[0] = box.dst[0] = 1;
  }
  return box;
}

template <class T>
void CopyRow(int64_t n, const T* src, int64_t src_stride, T* dst, int64_t dst_stride) {
  if (src_stride == 1 && dst_stride == 1)
    std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(T));
  else
    for (int64_t i = 0; i < n; ++i) dst[i * dst_stride] = src[i * src_stride];
}

// Transposed where the destination's rows lie together, as they mostly do.
template <class T>
void CopyPlane(int64_t rows, int64_t cols, const T* src, int64_t src_col, T* dst, int64_t dst_row,
               int64_t dst_col) {
  constexpr int64_t kSize = sizeof(T);
  if (dst_col == 1)
    return Transpose(kSize, reinterpret_cast<char*>(dst), dst_row * kSize, reinterpret_cast<const char*>(src),
                     src_col * kSize, rows, cols);
  for (int64_t i = 0; i < rows; ++i) CopyRow(cols, src + i, src_col, dst + i * dst_row, dst_col);
}

template <class T>
void CopyBox(const Box& box, const T* src, T* dst, int32_t threads) {
  const int32_t last = box.ndim - 1;
  // The dimension other than the last in which the source is adjacent, if any.
  int32_t other = -1;
  if (box.src[last] != 1)
    for (int32_t d = 0; d < last; ++d)
      if (box.src[d] == 1) other = d;
  int64_t outer = 1;
  for (int32_t d = 0; d < last; ++d)
    if (d != other) outer *= box.sizes[d];
  // A plane goes by bands of its rows.
  const int64_t rows = other >= 0 ? box.sizes[other] : 1;
  const int64_t band = std::max<int64_t>(16, kTransposeBytes / static_cast<int64_t>(sizeof(T)));
  const int64_t bands = (rows + band - 1) / band;
  const int64_t inner = box.sizes[last] * std::min(rows, band);
  ParallelFor(outer * bands, std::max<int64_t>(1, kGrain / inner), 1, threads,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const T* from = src;
                  T* to = dst;
                  int64_t rest = i / bands;
                  for (int32_t d = last - 1; d >= 0; --d) {
                    if (d == other) continue;
                    from += rest % box.sizes[d] * box.src[d];
                    to += rest % box.sizes[d] * box.dst[d];
                    rest /= box.sizes[d];
                  }
                  if (other < 0) {
                    CopyRow(box.sizes[last], from, box.src[last], to, box.dst[last]);
                    continue;
                  }
                  const int64_t row = i % bands * band;
                  CopyPlane(std::min(band, rows - row), box.sizes[last], from + row, box.src[last],
                            to + row * box.dst[other], box.dst[other], box.dst[last]);
                }
              });
}

struct Wide {
  uint64_t parts[2];
};

void DenseStrides(const plugin::TensorRef& tensor, int64_t* strides) {
  int64_t step = 1;
  for (int32_t d = tensor.ndim() - 1; d >= 0; --d) {
    strides[d] = step;
    step *= tensor.size(d);
  }
}

}  // namespace

Temporary::Temporary(int64_t bytes) {
  const MicaHost* host = plugin::Host();
  if (host && host->allocate)
    plugin::Check(host->allocate(kCpu, bytes, 0, &data_));
  else
    data_ = std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64));
  if (!data_ && bytes) throw std::bad_alloc();
}

Temporary::~Temporary() {
  if (!data_) return;
  const MicaHost* host = plugin::Host();
  if (host && host->allocate)
    host->free(kCpu, data_);
  else
    std::free(data_);
}

void CopyStrided(int64_t itemsize, int32_t ndim, const int64_t* sizes, const void* src,
                 const int64_t* src_strides, void* dst, const int64_t* dst_strides, int32_t threads) {
  for (int32_t d = 0; d < ndim; ++d)
    if (sizes[d] == 0) return;
  const Box box = Collapse(ndim, sizes, src_strides, dst_strides);
  const auto copy = [&](auto unit) {
    using T = decltype(unit);
    CopyBox(box, static_cast<const T*>(src), static_cast<T*>(dst), threads);
  };
  switch (itemsize) {
    case 1:
      return copy(uint8_t{});
    case 2:
      return copy(uint16_t{});
    case 4:
      return copy(uint32_t{});
    case 8:
      return copy(uint64_t{});
    default:
      return copy(Wide{});
  }
}

void Convert(int32_t from, const void* src, int32_t to, void* dst, int64_t n, int32_t threads) {
  const Primitive cast = DirectCast(from, to);
  const int64_t in = DtypeSize(from), out = DtypeSize(to);
  ParallelFor(n, kGrain, kBlock, threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kBlock)
      cast(static_cast<char*>(dst) + i * out, static_cast<const char*>(src) + i * in, nullptr, nullptr,
           std::min(kBlock, end - i));
  });
}

DenseInput::DenseInput(const MicaTensor* tensor, int32_t dtype, int32_t threads) {
  const plugin::TensorRef t(tensor);
  data_ = t.data<void>();
  const int64_t n = t.numel();
  if (!t.contiguous()) {
    int64_t strides[kMaxDims];
    DenseStrides(t, strides);
    copy_ = Temporary(n * t.itemsize());
    CopyStrided(t.itemsize(), t.ndim(), t.sizes(), data_, t.strides(), copy_.data(), strides, threads);
    data_ = copy_.data();
  }
  if (t.dtype() != dtype) {
    Temporary converted(n * DtypeSize(dtype));
    Convert(t.dtype(), data_, dtype, converted.data(), n, threads);
    copy_ = std::move(converted);
    data_ = copy_.data();
  }
}

DenseOutput::DenseOutput(MicaTensor* tensor, int32_t dtype, int32_t threads)
    : tensor_(tensor), dtype_(dtype), threads_(threads) {
  const plugin::TensorRef t(tensor);
  data_ = t.data<void>();
  if (t.contiguous() && t.dtype() == dtype) return;
  copy_ = Temporary(t.numel() * DtypeSize(dtype));
  data_ = copy_.data();
}

void DenseOutput::Finish() {
  const plugin::TensorRef t(tensor_);
  if (data_ == t.data<void>()) return;
  const int64_t n = t.numel();
  const void* from = data_;
  Temporary converted;
  if (t.dtype() != dtype_) {
    void* to = t.data<void>();
    if (!t.contiguous()) {
      converted = Temporary(n * t.itemsize());
      to = converted.data();
    }
    Convert(dtype_, from, t.dtype(), to, n, threads_);
    if (t.contiguous()) return;
    from = to;
  }
  int64_t strides[kMaxDims];
  DenseStrides(t, strides);
  CopyStrided(t.itemsize(), t.ndim(), t.sizes(), from, strides, t.data<void>(), t.strides(), threads_);
}

}  // namespace mica::cpu
