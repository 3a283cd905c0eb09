// col2im: columns added up where their windows lie, plane by plane and tap by tap, so that the
// innermost loop runs along a row of windows.
#include <algorithm>
#include <cstring>

#include "plugins/cpu/convolution/convolution.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

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
void AddPlanes(const TensorRef& in, const Side& rows, const Side& columns, const TensorRef& out,
               int32_t threads) {
  const int64_t area = rows.size * columns.size, taps = rows.kernel * columns.kernel;
  const int64_t channels = out.size(-3), work = taps * in.size(-1) + area;
  ParallelSteps(out.numel() / area, std::max<int64_t>(1, 32768 / work), 1, threads,
                [&](int64_t begin, int64_t end) {
                  for (int64_t p = begin; p < end; ++p) {
                    const int64_t image = in.ndim() == 3 ? p / channels * in.stride(0) : 0;
                    AddPlane(in.data<T>() + image + p % channels * taps * in.stride(-2), in.stride(-2), rows,
                             columns, out.data<T>() + p * area);
                  }
                });
}

}  // namespace

void Col2im(const MicaCall* call, MicaTensor* self, MicaIntSpan output_size, MicaIntSpan kernel_size,
            MicaIntSpan dilation, MicaIntSpan padding, MicaIntSpan stride, MicaTensor* out) {
  const TensorRef in(self), to(out);
  const int32_t dtype = in.dtype();
  // Half types add up in float32, and other layouts are rare: the portable kernel's.
  if ((dtype != MICA_F32 && dtype != MICA_F64) || to.dtype() != dtype || !to.contiguous() ||
      (in.size(-1) > 1 && in.stride(-1) != 1))
    throw plugin::NotImplemented();
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
  (dtype == MICA_F32 ? AddPlanes<float> : AddPlanes<double>)(in, sides[0], sides[1], to, ThreadsOf(call));
}

}  // namespace mica::cpu
