// grid_sample where nothing requires grad, linear and nearest: the taps of a block of points are
// computed together, and the channels read them while they are in cache. The numbers are those of
// the composition in native_functions.yaml (grid_sampler_2d and _3d), operation by operation; it
// has the cubic mode, the other dtypes and the gradients.
#include <cmath>

#include "plugins/cpu/resampling/resampling.h"
#include "plugins/cpu/resampling/taps.h"

namespace mica::cpu {
namespace {

using plugin::OwnedTensor;
using plugin::TensorRef;

enum Padding : int64_t { kZeros, kBorder, kReflection };

// How coordinates of one dimension become pixels.
template <class T>
struct Axis {
  int64_t size, padding;
  bool align_corners;

  T Pixel(T at) const {
    return align_corners ? (at + 1) * static_cast<T>(static_cast<double>(size - 1) * 0.5)
                         : ((at + 1) * static_cast<T>(size) - 1) * T(0.5);
  }
  T Reflected(T at) const {
    const T low = align_corners ? T(0) : T(-0.5), span = static_cast<T>(align_corners ? size - 1 : size);
    if (span == 0) return 0;
    const T off = std::abs(at - low), extra = std::fmod(off, span);
    const T turns = std::floor(off / span);
    return turns - 2 * std::floor(turns / 2) == 0 ? extra + low : -extra + (span + low);
  }
  T OnImage(T at) const {
    const T last = static_cast<T>(size - 1);
    if (at > 0 && at < last) return at;
    return at < 0 ? T(0) : at > last ? last : at;
  }
  // The pixels of n coordinates, `step` apart.
  void Pixels(const T* at, int64_t step, int64_t n, T* pixels) const {
    if (padding == kZeros) {
      for (int64_t i = 0; i < n; ++i) pixels[i] = Pixel(at[i * step]);
    } else if (padding == kBorder) {
      for (int64_t i = 0; i < n; ++i) pixels[i] = OnImage(Pixel(at[i * step]));
    } else {
      for (int64_t i = 0; i < n; ++i) pixels[i] = OnImage(Reflected(Pixel(at[i * step])));
    }
  }
};

// The taps of a block of points in D dimensions.
template <class T, int D>
class Block {
 public:
  // Coordinates of a point stand from the last dimension to the first.
  Block(const Axis<T>* axes, const T* grid, int64_t count, bool nearest) : count_(count) {
    for (int d = 0; d < D; ++d) {
      sizes_[d] = axes[d].size;
      axes[d].Pixels(grid + (D - 1 - d), D, count, low_[d]);
    }
    if (nearest)
      Nearest();
    else
      Linear();
  }
  TapList<T, int32_t> list() const { return {indices_, weights_, kTapBlock}; }

 private:
  void Nearest() {
    for (int d = 0; d < D; ++d) {
      for (int64_t i = 0; i < count_; ++i) low_[d][i] = std::nearbyint(low_[d][i]);
      Place(d, 0);
    }
    Corner(0);
    std::fill_n(weights_, count_, T(1));
  }
  void Linear() {
    for (int d = 0; d < D; ++d) {
      for (int64_t i = 0; i < count_; ++i) {
        const T low = std::floor(low_[d][i]);
        shares_[d][1][i] = low_[d][i] - low;
        shares_[d][0][i] = 1 - shares_[d][1][i];
        low_[d][i] = low;
      }
      Place(d, 0);
      Place(d, 1);
    }
    for (int corner = 0; corner < 1 << D; ++corner) {
      T* weight = weights_ + corner * kTapBlock;
      const T* row = shares_[D - 2][Bit(corner, D - 2)];
      const T* column = shares_[D - 1][Bit(corner, D - 1)];
      const T* plane = shares_[0][Bit(corner, 0)];
      for (int64_t i = 0; i < count_; ++i) {
        weight[i] = row[i] * column[i];
        if constexpr (D == 3) weight[i] = weight[i] * plane[i];
      }
      Corner(corner);
    }
  }
  // Whether a corner lies above `low` in dimension d.
  static int Bit(int corner, int d) { return corner >> (D - 1 - d) & 1; }

  // Pixels in dimension d, -1 outside; numbers without branches, which points at random would miss.
  void Place(int d, int bit) {
    const T last = static_cast<T>(sizes_[d] - 1);
    for (int64_t i = 0; i < count_; ++i) {
      const T pixel = low_[d][i] + static_cast<T>(bit);
      const bool inside = (pixel >= 0) & (pixel <= last);
      places_[d][bit][i] = inside ? static_cast<int32_t>(pixel) : -1;
    }
  }
  void Corner(int corner) {
    int32_t* index = indices_ + corner * kTapBlock;
    const auto width = static_cast<int32_t>(sizes_[D - 1]), height = static_cast<int32_t>(sizes_[D - 2]);
    const int32_t* row = places_[D - 2][Bit(corner, D - 2)];
    const int32_t* column = places_[D - 1][Bit(corner, D - 1)];
    const int32_t* plane = places_[0][Bit(corner, 0)];
    for (int64_t i = 0; i < count_; ++i) {
      const int32_t above = D == 3 ? plane[i] * height + row[i] : row[i];
      const int32_t outside = (D == 3 ? plane[i] | row[i] : row[i]) | column[i];  // negative
      index[i] = (above * width + column[i]) | outside >> 31;
    }
  }

  int64_t count_, sizes_[D];
  T low_[D][kTapBlock], shares_[D][2][kTapBlock];
  int32_t places_[D][2][kTapBlock];
  int32_t indices_[(1 << D) * kTapBlock];
  T weights_[(1 << D) * kTapBlock];
};

template <int D>
MicaTensor* GridSample(const MicaCall* call, MicaTensor* input, MicaTensor* grid, int64_t interpolation,
                       int64_t padding, bool align_corners) {
  const TensorRef in(input), points(grid);
  // What is wrong with the call is for the composition to say.
  if (in.ndim() != D + 2 || points.ndim() != D + 2 || in.dtype() != points.dtype() || interpolation < 0 ||
      interpolation > 1 || padding < 0 || padding > 2 || in.size(0) != points.size(0) ||
      points.size(-1) != D || in.numel() == 0 || points.numel() == 0)
    throw plugin::NotImplemented();
  if (in.dtype() != MICA_F32 && in.dtype() != MICA_F64) throw plugin::NotImplemented();
  int64_t sizes[D + 2] = {in.size(0), in.size(1)};
  TapShape s{in.size(0), in.size(1), 1, interpolation == 0 ? 1 << D : 1, 1};
  for (int d = 0; d < D; ++d) {
    s.places *= in.size(d + 2);
    s.length *= sizes[d + 2] = points.size(d + 1);
  }
  if (s.places > INT32_MAX) throw plugin::NotImplemented();
  const int32_t threads = ThreadsOf(call);
  const DenseInput image(input, in.dtype(), threads), places(grid, in.dtype(), threads);
  OwnedTensor out = OwnedTensor::Empty(sizes, D + 2, in.dtype(), MicaDevice{0, 0});
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    Axis<T> axes[D];
    for (int d = 0; d < D; ++d) axes[d] = {in.size(d + 2), padding, align_corners};
    const T* at = places.data<T>();
    GatherTaps(s, image.data<T>(), TensorRef(out.get()).data<T>(), threads,
               [&](int64_t n, int64_t l, int64_t count, auto use) {
                 const Block<T, D> block(axes, at + (n * s.length + l) * D, count, interpolation == 1);
                 use(block.list());
               });
  };
  if (in.dtype() == MICA_F32)
    run(float());
  else
    run(double());
  return out.release();
}

}  // namespace

MicaTensor* GridSampler2d(const MicaCall* call, MicaTensor* input, MicaTensor* grid,
                          int64_t interpolation_mode, int64_t padding_mode, int32_t align_corners) {
  return GridSample<2>(call, input, grid, interpolation_mode, padding_mode, align_corners != 0);
}
MicaTensor* GridSampler3d(const MicaCall* call, MicaTensor* input, MicaTensor* grid,
                          int64_t interpolation_mode, int64_t padding_mode, int32_t align_corners) {
  return GridSample<3>(call, input, grid, interpolation_mode, padding_mode, align_corners != 0);
}

}  // namespace mica::cpu
