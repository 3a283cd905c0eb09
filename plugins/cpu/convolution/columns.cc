// col2im: columns added up where their windows lie, plane by plane and tap by tap, so that the
// innermost loop runs along a row of windows; and unfold_backward, the same along one dimension. Half
// types add up in float32.
#include <algorithm>
#include <complex>
#include <cstring>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/convolution/convolution.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

// Elements that make a second thread worth waking.
constexpr int64_t kGrain = 32768;

// A dimension of the image and the windows along it.
struct Side {
  int64_t size, windows, kernel, dilation, padding, stride;
  // The windows [first, last) whose tap `k` lies inside, and the place of the first one's.
  struct Range {
    int64_t first, last, place;
  };
  Range Inside(int64_t k) const {
    const int64_t shift = k * dilation - padding;
    const int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    const int64_t last = shift >= size ? 0 : std::min(windows, (size - 1 - shift) / stride + 1);
    return {first, last, first * stride + shift};
  }
};

template <class T>
void AddRow(const T* from, int64_t n, T* to, int64_t stride) {
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] += from[i];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * stride] += from[i];
  }
}

// `from` has a row of windows for each tap, `distance` apart.
template <class T>
void AddPlane(const T* from, int64_t distance, const Side& rows, const Side& columns, T* to) {
  std::memset(to, 0, static_cast<size_t>(rows.size * columns.size) * sizeof(T));
  for (int64_t ky = 0; ky < rows.kernel; ++ky)
    for (int64_t kx = 0; kx < columns.kernel; ++kx, from += distance) {
      const Side::Range y = rows.Inside(ky), x = columns.Inside(kx);
      for (int64_t row = y.first; row < y.last && x.first < x.last; ++row)
        AddRow(from + row * columns.windows + x.first, x.last - x.first,
               to + (y.place + (row - y.first) * rows.stride) * columns.size + x.place, columns.stride);
    }
}

template <class T>
void AddPlanes(const T* from, int64_t windows, const Side& rows, const Side& columns, const TensorRef& out,
               T* to, int32_t threads) {
  const int64_t area = rows.size * columns.size, taps = rows.kernel * columns.kernel;
  const int64_t work = taps * windows + area;
  ParallelSteps(out.numel() / area, std::max<int64_t>(1, kGrain / work), 1, threads,
                [&](int64_t begin, int64_t end) {
                  for (int64_t p = begin; p < end; ++p)
                    AddPlane(from + p * taps * windows, windows, rows, columns, to + p * area);
                });
}

// A dimension that windows lie along: `inner` elements stand between its places, and in `from` each window
// has them before its own `length`.
struct Windows {
  int64_t outer, size, inner, count, length, step;
};

template <class T>
void AddWindows(const T* from, const Windows& w, T* to, int32_t threads) {
  const int64_t taken = w.count * w.inner * w.length, area = w.size * w.inner;
  ParallelSteps(w.outer, std::max<int64_t>(1, kGrain / (taken + area)), 1, threads,
                [&](int64_t begin, int64_t end) {
                  std::fill(to + begin * area, to + end * area, T{0});
                  for (int64_t o = begin; o < end; ++o) {
                    const T* window = from + o * taken;
                    for (int64_t c = 0; c < w.count; ++c, window += w.inner * w.length) {
                      T* place = to + o * area + c * w.step * w.inner;
                      for (int64_t i = 0; i < w.inner; ++i)
                        AddRow(window + i * w.length, w.length, place + i, w.inner);
                    }
                  }
                });
}

// Calls f(zero) for the dtypes that are added up as they are, or (half types) in float32.
template <class F>
void VisitSums(int32_t dtype, F f) {
  switch (dtype) {
    case MICA_F16:
    case MICA_BF16:
    case MICA_F32:
      return f(float{});
    case MICA_F64:
      return f(double{});
    case MICA_C64:
      return f(std::complex<float>{});
    case MICA_C128:
      return f(std::complex<double>{});
    default:
      throw plugin::NotImplemented();
  }
}

int32_t SumDtype(int32_t dtype) { return dtype == MICA_F16 || dtype == MICA_BF16 ? MICA_F32 : dtype; }

}  // namespace

void Col2im(const MicaCall* call, MicaTensor* self, MicaIntSpan output_size, MicaIntSpan kernel_size,
            MicaIntSpan dilation, MicaIntSpan padding, MicaIntSpan stride, MicaTensor* out) {
  const TensorRef in(self), to(out);
  const int32_t dtype = in.dtype(), threads = ThreadsOf(call);
  // The portable kernel adds up where a strided result lies, and reads strided columns where they lie.
  const bool dense = to.contiguous() && (in.contiguous() || in.numel() == 0);
  if (to.dtype() != dtype || !dense) throw plugin::NotImplemented();
  if (to.numel() == 0) return;
  Side sides[2];
  for (int32_t d = 0; d < 2; ++d) {
    const auto at = [d](MicaIntSpan list, int64_t otherwise) {
      return list.size == 0 ? otherwise : list.data[list.size == 1 ? 0 : d];
    };
    Side& s = sides[d];
    s = {at(output_size, 1), 0, at(kernel_size, 1), at(dilation, 1), at(padding, 0), at(stride, 1)};
    s.windows = (s.size + 2 * s.padding - s.dilation * (s.kernel - 1) - 1) / s.stride + 1;
  }
  VisitSums(dtype, [&](auto zero) {
    using T = decltype(zero);
    const DenseInput from(self, SumDtype(dtype), threads);
    DenseOutput sums(out, SumDtype(dtype), threads);
    AddPlanes(from.data<T>(), in.size(-1), sides[0], sides[1], to, sums.data<T>(), threads);
    sums.Finish();
  });
}

void UnfoldBackward(const MicaCall* call, MicaTensor* grad_in, MicaIntSpan, int64_t dim, int64_t size,
                    int64_t step, MicaTensor* out) {
  const TensorRef in(grad_in), to(out);
  const int32_t dtype = in.dtype(), threads = ThreadsOf(call);
  if (to.dtype() != dtype || to.ndim() == 0 || in.ndim() != to.ndim() + 1) throw plugin::NotImplemented();
  if (to.numel() == 0) return;
  const auto d = static_cast<int32_t>(dim < 0 ? dim + to.ndim() : dim);
  Windows w{1, to.size(d), 1, in.size(d), size, step};
  for (int32_t k = 0; k < to.ndim(); ++k) {
    if (k < d) w.outer *= to.size(k);
    if (k > d) w.inner *= to.size(k);
  }
  VisitSums(dtype, [&](auto zero) {
    using T = decltype(zero);
    const DenseInput from(grad_in, SumDtype(dtype), threads);
    DenseOutput sums(out, SumDtype(dtype), threads);
    AddWindows(from.data<T>(), w, sums.data<T>(), threads);
    sums.Finish();
  });
}

}  // namespace mica::cpu
