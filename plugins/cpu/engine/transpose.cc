// Transposition; see transpose.h.
//
// The inner step turns a block of 16 bytes by one or two times 16 bytes in
// registers: log2 rounds of interleaving, which every instruction set has within
// 128 bits. The upper half of a 256-bit vector holds a second block, so that no
// element crosses the halves.
//
// A matrix whose rows are long goes by tiles. Each is turned into a buffer in L1 and
// moved from there in whole cache lines: where the pitch is a power of two the lines of
// a tile would else fight for one set of the cache (1,024 x 1,024 float32 on a 2-core
// AVX2 machine: 3.1 ms by scalar tiles of 32, 0.55 ms by blocks written in place,
// 0.25 ms this way; memcpy 0.13 ms).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/engine/transpose.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cstring>

#include "hwy/highway.h"
#include "plugins/cpu/engine/transpose.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Pitches from here on fall on few sets of the cache.
constexpr int64_t kLongPitch = 1024;

// One block: kRows rows of dst, a vector each.
template <class T>
struct Block {
  static constexpr int64_t kRows = 16 / sizeof(T);
  using D = hn::CappedTag<T, 32 / sizeof(T)>;
  using V = hn::Vec<D>;

  static int64_t Columns() { return static_cast<int64_t>(hn::Lanes(D())); }

  static HWY_INLINE V Load(const char* at, int64_t half_distance) {
    const D d;
    const hn::CappedTag<T, 16 / sizeof(T)> d16;
    const auto lower = hn::LoadU(d16, reinterpret_cast<const T*>(at));
#if HWY_TARGET == HWY_SSE4
    (void)d;
    (void)half_distance;
    return lower;
#else
    return hn::Combine(d, hn::LoadU(d16, reinterpret_cast<const T*>(at + half_distance)), lower);
#endif
  }

  static HWY_INLINE void Turn(char* dst, int64_t dst_stride, const char* src, int64_t src_stride) {
    const D d;
    V v[kRows], w[kRows];
    HWY_UNROLL(16)
    for (int64_t i = 0; i < kRows; ++i) v[i] = Load(src + i * src_stride, kRows * src_stride);
    HWY_UNROLL(4)
    for (int64_t round = 1; round < kRows; round *= 2) {
      HWY_UNROLL(8)
      for (int64_t i = 0; i < kRows / 2; ++i) {
        w[2 * i] = hn::InterleaveLower(d, v[i], v[i + kRows / 2]);
        w[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kRows / 2]);
      }
      HWY_UNROLL(16)
      for (int64_t i = 0; i < kRows; ++i) v[i] = w[i];
    }
    HWY_UNROLL(16)
    for (int64_t i = 0; i < kRows; ++i) hn::StoreU(v[i], d, reinterpret_cast<T*>(dst + i * dst_stride));
  }
};

template <class T>
void Plain(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t rows,
           int64_t columns) {
  constexpr int64_t kSize = sizeof(T);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(dst + r * dst_stride + c * kSize, src + c * src_stride + r * kSize, kSize);
  }
}

// Blocks, then what is left below and beside them.
template <class T>
void Tile(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t rows, int64_t columns) {
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kRows = Block<T>::kRows;
  const int64_t step = Block<T>::Columns();
  const int64_t whole_rows = rows / kRows * kRows, whole_columns = columns / step * step;
  for (int64_t c = 0; c < whole_columns; c += step) {
    for (int64_t r = 0; r < whole_rows; r += kRows)
      Block<T>::Turn(dst + r * dst_stride + c * kSize, dst_stride, src + c * src_stride + r * kSize,
                     src_stride);
  }
  Plain<T>(dst + whole_columns * kSize, dst_stride, src + whole_columns * src_stride, src_stride, whole_rows,
           columns - whole_columns);
  Plain<T>(dst + whole_rows * dst_stride, dst_stride, src + whole_rows * kSize, src_stride, rows - whole_rows,
           columns);
}

// Tiles read some lines of the cache at each place of src: pages change less often.
template <class T>
void Matrix(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t rows,
            int64_t columns) {
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kHeight = kTransposeBytes / kSize, kWidth = kSize == 8 ? 32 : 64;
  constexpr int64_t kPitch = kWidth * kSize + 64;  // odd lines: rows fall on different sets
  alignas(64) char buffer[kHeight * kPitch];
  for (int64_t r = 0; r < rows; r += kHeight) {
    for (int64_t c = 0; c < columns; c += kWidth) {
      const int64_t height = std::min(kHeight, rows - r), width = std::min(kWidth, columns - c);
      char* to = dst + r * dst_stride + c * kSize;
      const char* from = src + c * src_stride + r * kSize;
      if (dst_stride < kLongPitch || width < kWidth) {
        Tile<T>(to, dst_stride, from, src_stride, height, width);
        continue;
      }
      Tile<T>(buffer, kPitch, from, src_stride, height, width);
      for (int64_t i = 0; i < height; ++i)
        std::memcpy(to + i * dst_stride, buffer + i * kPitch, kWidth * kSize);
    }
  }
}

struct Pair {
  uint64_t half[2];
};

template <class T, int kStep>
void EachAs(void* dst, const void* src, int64_t n) {
  T* __restrict d = static_cast<T*>(dst);
  const T* __restrict s = static_cast<const T*>(src);
  for (int64_t i = 0; i < n; ++i) d[i] = s[kStep * i];
}

template <int kStep>
void EachOn(int64_t size, void* dst, const void* src, int64_t n) {
  switch (size) {
    case 1:
      return EachAs<uint8_t, kStep>(dst, src, n);
    case 2:
      return EachAs<uint16_t, kStep>(dst, src, n);
    case 4:
      return EachAs<uint32_t, kStep>(dst, src, n);
    case 8:
      return EachAs<uint64_t, kStep>(dst, src, n);
    default:
      return EachAs<Pair, kStep>(dst, src, n);
  }
}
void ReverseOn(int64_t size, void* dst, const void* src, int64_t n) { EachOn<-1>(size, dst, src, n); }
void EverySecondOn(int64_t size, void* dst, const void* src, int64_t n) { EachOn<2>(size, dst, src, n); }

void TransposeOn(int64_t size, char* dst, int64_t dst_stride, const char* src, int64_t src_stride,
                 int64_t rows, int64_t columns) {
  switch (size) {
    case 1:
      return Matrix<uint8_t>(dst, dst_stride, src, src_stride, rows, columns);
    case 2:
      return Matrix<uint16_t>(dst, dst_stride, src, src_stride, rows, columns);
    case 4:
      return Matrix<uint32_t>(dst, dst_stride, src, src_stride, rows, columns);
    case 8:
      return Matrix<uint64_t>(dst, dst_stride, src, src_stride, rows, columns);
    default:
      for (int64_t c = 0; c < columns; c += 16) {
        for (int64_t r = 0; r < rows; r += 16)
          Plain<Pair>(dst + r * dst_stride + c * 16, dst_stride, src + c * src_stride + r * 16, src_stride,
                      std::min<int64_t>(16, rows - r), std::min<int64_t>(16, columns - c));
      }
  }
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(TransposeOn);
HWY_EXPORT(ReverseOn);
HWY_EXPORT(EverySecondOn);
void Reverse(int64_t size, void* dst, const void* src, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ReverseOn)(size, dst, src, n);
}
void EverySecond(int64_t size, void* dst, const void* src, int64_t n) {
  HWY_DYNAMIC_DISPATCH(EverySecondOn)(size, dst, src, n);
}
void Transpose(int64_t size, char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t rows,
               int64_t columns) {
  HWY_DYNAMIC_DISPATCH(TransposeOn)(size, dst, dst_stride, src, src_stride, rows, columns);
}
}  // namespace mica::cpu
#endif
