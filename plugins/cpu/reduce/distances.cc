// Distances by tiles of rows that lie side by side: a row's elements meet those of 32 or 16 others in
// vectors, whatever the rows' width. Gradients run along the rows, a sum over the others for each element.
#include "plugins/cpu/reduce/distances.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <vector>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/engine/scratch.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/engine/transpose.h"

namespace mica::cpu {
namespace {

using plugin::OwnedTensor;
using plugin::TensorRef;

// Elements of differences that make a second thread worth waking.
constexpr int64_t kGrain = 32768;
// Rows that meet one tile in a piece of work.
constexpr int64_t kTileRows = 128;
// Elements of differences between two questions for a Ctrl-C.
constexpr int64_t kPatience = 1 << 22;

struct Rows {
  int64_t batch, rows, others, width;
  bool triangle;  // a row meets only the others after it
};

// tile[i][j] = rows[j][i] for `count` rows; the others of the tile are 0.
template <class T>
void PackTile(const T* rows, int64_t count, int64_t width, T* tile) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T)), kTile = kDistanceTile<T>;
  if (count < kTile) std::memset(tile, 0, static_cast<size_t>(width * kTile * kSize));
  Transpose(kSize, reinterpret_cast<char*>(tile), kTile * kSize, reinterpret_cast<const char*>(rows),
            width * kSize, width, count);
}

// Calls put(batch, row, first, count, distances) for each row of x and tile of the others.
template <class T, class Put>
void EachTile(const T* x, const T* others, const Rows& s, DistanceLoop<T> loop, int32_t threads, Put put) {
  constexpr int64_t kTile = kDistanceTile<T>;
  const int64_t tiles = (s.others + kTile - 1) / kTile, chunks = (s.rows + kTileRows - 1) / kTileRows;
  const int64_t grain = std::max<int64_t>(1, kGrain / (std::min(s.rows, kTileRows) * kTile * s.width));
  std::atomic<bool> no_memory{false};
  ParallelSteps(s.batch * tiles * chunks, grain, 1, threads, [&](int64_t begin, int64_t end) {
    T* tile = reinterpret_cast<T*>(Scratch((s.width + 1) * kTile * static_cast<int64_t>(sizeof(T))));
    if (tile == nullptr) {
      no_memory = true;
      return;
    }
    T* found = tile + s.width * kTile;
    Patience patience(kPatience);
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t b = piece / chunks / tiles, first = piece / chunks % tiles * kTile;
      const int64_t count = std::min(kTile, s.others - first), row = piece % chunks * kTileRows;
      const int64_t stop = std::min({row + kTileRows, s.rows, s.triangle ? first + count - 1 : s.rows});
      if (piece == begin || row == 0)
        PackTile(others + (b * s.others + first) * s.width, count, s.width, tile);
      for (int64_t i = row; i < stop; ++i) {
        loop(x + (b * s.rows + i) * s.width, tile, s.width, found);
        put(b, i, first, count, found);
        if (patience.Ends(kTile * s.width)) return;
      }
    }
  });
  if (no_memory) throw std::bad_alloc();
}

// The tiles are of the more numerous rows where x2 would not fill one.
template <class T>
void Between(const T* x1, const T* x2, const Rows& s, DistanceLoop<T> loop, T* out, int32_t threads) {
  if (s.others < kDistanceTile<T> && s.rows > s.others) {
    const Rows exchanged{s.batch, s.others, s.rows, s.width, false};
    EachTile(x2, x1, exchanged, loop, threads,
             [&](int64_t b, int64_t i, int64_t first, int64_t count, const T* found) {
               T* to = out + (b * s.rows + first) * s.others + i;
               for (int64_t j = 0; j < count; ++j) to[j * s.others] = found[j];
             });
  } else {
    EachTile(x1, x2, s, loop, threads,
             [&](int64_t b, int64_t i, int64_t first, int64_t count, const T* found) {
               T* to = out + (b * s.rows + i) * s.others + first;
               std::copy_n(found, count, to);
             });
  }
}

// Row i against those after it; before it stand the distances of i rows.
template <class T>
void Among(const T* x, int64_t rows, int64_t width, DistanceLoop<T> loop, T* out, int32_t threads) {
  EachTile(x, x, {1, rows, rows, width, true}, loop, threads,
           [&](int64_t, int64_t i, int64_t first, int64_t count, const T* found) {
             T* row = out + i * (2 * rows - i - 1) / 2 - i - 1;
             for (int64_t j = std::max<int64_t>(0, i + 1 - first); j < count; ++j) row[first + j] = found[j];
           });
}

// The weights of a row's gradient: `grad`, without those of rows at no distance.
template <class T>
void Weigh(const T* grad, const T* distances, int64_t count, double p, T* weights) {
  for (int64_t j = 0; j < count; ++j)
    weights[j] = distances[j] == 0 ? 0 : p == 2 ? grad[j] / distances[j] : grad[j];
}

// `count` rows with zeros behind each, so that they are `wide` long.
template <class T>
Temporary Widened(const T* rows, int64_t count, int64_t width, int64_t wide) {
  Temporary made(count * wide * static_cast<int64_t>(sizeof(T)));
  T* to = made.data<T>();
  for (int64_t i = 0; i < count; ++i, to += wide, rows += width) {
    std::fill_n(std::copy_n(rows, width, to), wide - width, T{0});
  }
  return made;
}

template <class T>
void GradientOf(const T* grad, const T* distances, const T* x1, const T* x2, const Rows& s, double p,
                DistanceGradientLoop<T> loop, T* out, int32_t threads) {
  const int64_t grain = std::max<int64_t>(1, kGrain / (s.others * s.width));
  std::atomic<bool> no_memory{false};
  ParallelSteps(s.batch * s.rows, grain, 1, threads, [&](int64_t begin, int64_t end) {
    T* weights = reinterpret_cast<T*>(Scratch(s.others * static_cast<int64_t>(sizeof(T))));
    if (weights == nullptr) {
      no_memory = true;
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i * s.others;
      if (p != 1) Weigh(grad + at, distances + at, s.others, p, weights);
      loop(x1 + i * s.width, x2 + i / s.rows * s.others * s.width, p == 1 ? grad + at : weights,
           distances + at, s.others, s.width, out + i * s.width);
    }
  });
  if (no_memory) throw std::bad_alloc();
}

// The same for rows of any width.
template <class T>
void GradientOfAny(const T* grad, const T* distances, const T* x1, const T* x2, const Rows& s, double p,
                   DistanceGradientLoop<T> loop, T* out, int32_t threads) {
  constexpr int64_t kWide = kLeastWidth<T>;
  if (s.width >= kWide) return GradientOf(grad, distances, x1, x2, s, p, loop, out, threads);
  const int64_t rows = s.batch * s.rows;
  const Temporary left = Widened(x1, rows, s.width, kWide);
  const Temporary right = Widened(x2, s.batch * s.others, s.width, kWide);
  const Rows wide{s.batch, s.rows, s.others, kWide, false};
  // Each row of the result lies where its row of x1 was, which no other row reads.
  GradientOf(grad, distances, left.data<T>(), right.data<T>(), wide, p, loop, left.data<T>(), threads);
  for (int64_t i = 0; i < rows; ++i) std::copy_n(left.data<T>() + i * kWide, s.width, out + i * s.width);
}

// Calls f(zero, loop) for a dtype and an order that have a loop, which find(zero) gives.
template <class Find, class F>
void WithLoop(int32_t dtype, Find find, F f) {
  const auto run = [&](auto zero) {
    const auto loop = find(zero);
    if (loop == nullptr) throw plugin::NotImplemented();
    f(zero, loop);
  };
  if (dtype == MICA_F32) return run(float());
  if (dtype == MICA_F64) return run(double());
  throw plugin::NotImplemented();
}

// The sizes of two batches of rows that have one dtype and shape, but for the number of rows.
Rows RowsOf(const TensorRef& a, const TensorRef& b) {
  const int32_t n = a.ndim();
  const bool alike = n >= 2 && b.ndim() == n && b.dtype() == a.dtype() && a.size(-1) == b.size(-1) &&
                     std::equal(a.sizes(), a.sizes() + n - 2, b.sizes());
  if (!alike || a.numel() == 0 || b.numel() == 0) throw plugin::NotImplemented();
  return {a.numel() / (a.size(-1) * a.size(-2)), a.size(-2), b.size(-2), a.size(-1), false};
}

}  // namespace

MicaTensor* Cdist(const MicaCall* call, MicaTensor* x1, MicaTensor* x2, double p) {
  const TensorRef a(x1);
  const Rows rows = RowsOf(a, TensorRef(x2));
  const int32_t dtype = a.dtype(), threads = ThreadsOf(call);
  std::vector<int64_t> sizes(a.sizes(), a.sizes() + a.ndim());
  sizes.back() = rows.others;
  OwnedTensor out;
  const auto find = [&](auto zero) { return DistanceLoopOf<decltype(zero)>(p); };
  WithLoop(dtype, find, [&](auto zero, auto loop) {
    using T = decltype(zero);
    const DenseInput left(x1, dtype, threads), right(x2, dtype, threads);
    out = OwnedTensor::Empty(sizes.data(), a.ndim(), dtype, MicaDevice{0, 0});
    Between(left.data<T>(), right.data<T>(), rows, loop, TensorRef(out.get()).data<T>(), threads);
  });
  return out.release();
}

MicaTensor* CdistBackward(const MicaCall* call, MicaTensor* grad, MicaTensor* x1, MicaTensor* x2, double p,
                          MicaTensor* cdist) {
  const TensorRef a(x1), g(grad), r(cdist);
  const Rows rows = RowsOf(a, TensorRef(x2));
  const int32_t dtype = a.dtype(), threads = ThreadsOf(call);
  for (const TensorRef& t : {g, r}) {
    if (t.dtype() != dtype || t.numel() != rows.batch * rows.rows * rows.others)
      throw plugin::NotImplemented();
  }
  OwnedTensor out;
  const auto find = [&](auto zero) { return DistanceGradientLoopOf<decltype(zero)>(p); };
  WithLoop(dtype, find, [&](auto zero, auto loop) {
    using T = decltype(zero);
    const DenseInput left(x1, dtype, threads), right(x2, dtype, threads);
    const DenseInput by(grad, dtype, threads), distances(cdist, dtype, threads);
    out = OwnedTensor::Empty(a.sizes(), a.ndim(), dtype, MicaDevice{0, 0});
    GradientOfAny(by.data<T>(), distances.data<T>(), left.data<T>(), right.data<T>(), rows, p, loop,
                  TensorRef(out.get()).data<T>(), threads);
  });
  return out.release();
}

MicaTensor* Pdist(const MicaCall* call, MicaTensor* self, double p) {
  const TensorRef in(self);
  const int32_t dtype = in.dtype(), threads = ThreadsOf(call);
  // What is wrong with the call is for the composition to say.
  if (in.ndim() != 2 || in.size(0) < 2 || in.size(1) == 0) throw plugin::NotImplemented();
  const int64_t rows = in.size(0), pairs = rows * (rows - 1) / 2;
  OwnedTensor out;
  const auto find = [&](auto zero) { return DistanceLoopOf<decltype(zero)>(p); };
  WithLoop(dtype, find, [&](auto zero, auto loop) {
    using T = decltype(zero);
    const DenseInput x(self, dtype, threads);
    out = OwnedTensor::Empty(&pairs, 1, dtype, MicaDevice{0, 0});
    Among(x.data<T>(), rows, in.size(1), loop, TensorRef(out.get()).data<T>(), threads);
  });
  return out.release();
}

void RegisterDistances(plugin::Registrar& r) {
  r.Kernel<&Cdist>("_cdist");
  r.Kernel<&CdistBackward>("_cdist_backward");
  r.Kernel<&Pdist>("pdist");
}

}  // namespace mica::cpu
