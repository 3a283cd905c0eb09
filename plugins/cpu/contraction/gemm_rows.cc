// A few rows times a wide matrix; see gemm_rows.h.
//
// A library packs both matrices, which pays when each element of w is multiplied by hundreds of
// rows. Here w is read once, as it lies: a tile of c, a few rows by two or three vectors, stands
// in registers while a strip of w and the rows of x run by. A strip of a w that lies column by
// column, or that is narrower than a vector, is packed. Measured on one core, GFLOP/s of
// OpenBLAS / this, AVX2: 8 x 512 x 512 63/94, with w by columns 52/70; 10 x 256 x 128 55/101;
// AVX-512: 66/110, 46/55, 116/103.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/contraction/gemm_rows.cc"
#include "hwy/foreach_target.h"
//
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "plugins/cpu/contraction/gemm_rows.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/engine/transpose.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
constexpr int64_t kMaxLanes = 16;
using TagF = hn::CappedTag<float, kMaxLanes>;

// Rows and vectors of a tile: sums for two thirds of the registers.
#if HWY_TARGET <= HWY_AVX3
constexpr int64_t kRows = 8, kVectors = 3;
#else
constexpr int64_t kRows = 6, kVectors = 2;
#endif
constexpr int64_t kWidth = kVectors * kMaxLanes;
constexpr int64_t kDepth = 128;  // of a strip along k: with the rows of x it stays in L1 and L2

// sums = x @ w for x of `depth` columns of R elements, and V vectors of each row of w.
template <int R, int V>
HWY_INLINE void Tile(const float* HWY_RESTRICT x, const float* HWY_RESTRICT w, int64_t step, int64_t depth,
                     float* HWY_RESTRICT sums) {
  const TagF d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<TagF> s[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) s[r][v] = hn::Zero(d);
  for (int64_t l = 0; l < depth; ++l, w += step, x += R) {
    hn::Vec<TagF> line[V];
    for (int v = 0; v < V; ++v) line[v] = hn::LoadU(d, w + v * lanes);
    for (int r = 0; r < R; ++r) {
      const auto factor = hn::Set(d, x[r]);
      for (int v = 0; v < V; ++v) s[r][v] = hn::MulAdd(factor, line[v], s[r][v]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) hn::StoreU(s[r][v], d, sums + r * kWidth + v * lanes);
}

template <int V, int R = kRows>
void TileOf(int64_t rows, const float* x, const float* w, int64_t step, int64_t depth, float* sums) {
  if constexpr (R > 1) {
    if (rows < R) return TileOf<V, R - 1>(rows, x, w, step, depth, sums);
  }
  Tile<R, V>(x, w, step, depth, sums);
}

// Part of a task: the columns [begin, end) of w.
class Strips {
 public:
  Strips(const RowsTask& t, int64_t begin, int64_t end) : t_(t), begin_(begin), end_(end) {
    const int64_t tiles = (t.m + kRows - 1) / kRows;
    rows_ = (t.m + tiles - 1) / tiles;
  }

  // False when the user asked to stop.
  bool Run() {
    const int64_t widest = kVectors * static_cast<int64_t>(hn::Lanes(TagF()));
    int64_t done = 0;
    for (int64_t l = 0; l < t_.k; l += kDepth) {
      const int64_t depth = std::min(kDepth, t_.k - l);
      PackRows(l, depth);
      for (int64_t j = begin_; j < end_; j += widest) Strip(l, depth, j, std::min(widest, end_ - j));
      done += depth * (end_ - begin_) * t_.m;
      if (done >= int64_t{1} << 30) {
        done = 0;
        if (Interrupted()) return false;
      }
    }
    return true;
  }

 private:
  // x's columns [l, l + depth), tile by tile.
  void PackRows(int64_t l, int64_t depth) {
    float* to = x_;
    for (int64_t i = 0; i < t_.m; i += rows_) {
      const int64_t rows = std::min(rows_, t_.m - i);
      const float* from = static_cast<const float*>(t_.x.data) + i * t_.x.row + l * t_.x.col;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 0; k < depth; ++k) to[k * rows + r] = from[r * t_.x.row + k * t_.x.col];
      to += rows * depth;
    }
  }

  void Strip(int64_t l, int64_t depth, int64_t j, int64_t width) {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(TagF()));
    const int64_t vectors = (width + lanes - 1) / lanes;
    const float* w = static_cast<const float*>(t_.w.data) + l * t_.w.row + j * t_.w.col;
    int64_t step = t_.w.row;
    if (t_.w.col != 1 || width % lanes != 0) {
      step = vectors * lanes;
      Pack(w, depth, width, step);
      w = w_;
    }
    const float* x = x_;
    for (int64_t i = 0; i < t_.m; i += rows_) {
      const int64_t rows = std::min(rows_, t_.m - i);
      switch (vectors) {
        case 1:
          TileOf<1>(rows, x, w, step, depth, sums_);
          break;
        case 2:
          TileOf<2>(rows, x, w, step, depth, sums_);
          break;
        default:
          TileOf<kVectors>(rows, x, w, step, depth, sums_);
      }
      Add(i, rows, j, width, l == 0 ? t_.beta : 1);
      x += rows * depth;
    }
  }

  void Pack(const float* w, int64_t depth, int64_t width, int64_t step) {
    if (t_.w.col == 1) {
      for (int64_t k = 0; k < depth; ++k)
        std::memcpy(w_ + k * step, w + k * t_.w.row, static_cast<size_t>(width) * sizeof(float));
    } else {
      Transpose(sizeof(float), reinterpret_cast<char*>(w_), step * 4, reinterpret_cast<const char*>(w),
                t_.w.col * 4, depth, width);
    }
    for (int64_t k = 0; k < depth && width < step; ++k)
      std::fill(w_ + k * step + width, w_ + (k + 1) * step, 0.0F);
  }

  // c = alpha * sums + old * c for a tile.
  void Add(int64_t i, int64_t rows, int64_t j, int64_t width, float old) const {
    const TagF d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto alpha = hn::Set(d, t_.alpha), beta = hn::Set(d, old);
    float* tile = static_cast<float*>(t_.c.data) + i * t_.c.row + j * t_.c.col;
    const auto put = [&](int64_t r, int64_t n) {
      float& c = tile[r * t_.c.row + n * t_.c.col];
      const float value = t_.alpha * sums_[r * kWidth + n];
      c = old == 0 ? value : value + old * c;
    };
    if (t_.c.col != 1) {
      for (int64_t n = 0; n < width; ++n)
        for (int64_t r = 0; r < rows; ++r) put(r, n);
      return;
    }
    for (int64_t r = 0; r < rows; ++r) {
      float* to = tile + r * t_.c.row;
      int64_t n = 0;
      for (; n + lanes <= width; n += lanes) {
        const auto value = hn::Mul(alpha, hn::LoadU(d, sums_ + r * kWidth + n));
        hn::StoreU(old == 0 ? value : hn::MulAdd(beta, hn::LoadU(d, to + n), value), d, to + n);
      }
      for (; n < width; ++n) put(r, n);
    }
  }

  const RowsTask& t_;
  const int64_t begin_, end_;
  int64_t rows_;
  alignas(64) float x_[kMostRows * kDepth];
  alignas(64) float w_[kWidth * kDepth];
  alignas(64) float sums_[kRows * kWidth];
};

bool RunStrips(const RowsTask& task, int64_t begin, int64_t end) { return Strips(task, begin, end).Run(); }

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <atomic>

namespace mica::cpu {
HWY_EXPORT(RunStrips);
void GemmRows(const RowsTask& task, int32_t threads) {
  const int64_t grain = std::max<int64_t>(64, (1 << 19) / std::max<int64_t>(task.m * task.k, 1));
  std::atomic<bool> stopped{false};
  // Divided at a multiple of every tile's width.
  ParallelFor(task.n, grain, 48, threads, [&](int64_t begin, int64_t end) {
    if (!HWY_DYNAMIC_DISPATCH(RunStrips)(task, begin, end)) stopped = true;
  });
  if (stopped) ThrowInterrupted();
}
}  // namespace mica::cpu
#endif
