#include "plugins/cpu/contraction/gemm_tiles.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/engine/copy.h"
#include "plugins/cpu/engine/lanes/lanes.h"
#include "plugins/cpu/engine/scratch.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

// Edges of a tile of c, and of a block along k: three packed parts are 3 MB of float32 at most,
// and an element that is packed is multiplied hundreds of times. Along a dimension of which
// nothing is packed a tile is as long as c, so that the other matrix is packed once.
constexpr int64_t kTile = 512;
constexpr int64_t kLeast = 64;  // edge under which threads are not worth a cut

enum class Outcome { kDone, kUnsupported, kNoMemory, kInterrupted };

void CopyPart(int64_t itemsize, int64_t rows, int64_t cols, const Strided& from, const Strided& to) {
  const int64_t sizes[] = {rows, cols}, theirs[] = {from.row, from.col}, mine[] = {to.row, to.col};
  CopyStrided(itemsize, 2, sizes, from.data, theirs, to.data, mine, 1);
}

struct Tiles {
  const Product& p;
  int64_t itemsize;
  bool pack_a, pack_b, pack_c;
  int64_t height, width, depth;

  explicit Tiles(const Product& product)
      : p(product),
        itemsize(DtypeSize(p.dtype)),
        pack_a(!LiesByLines(p.a, p.m, p.k)),
        pack_b(!LiesByLines(p.b, p.k, p.n)),
        pack_c(!LiesByLines(p.c, p.m, p.n)),
        height(pack_a || pack_c ? std::min(p.m, kTile) : p.m),
        width(pack_b || pack_c ? std::min(p.n, kTile) : p.n),
        depth(std::min(std::max<int64_t>(p.k, 1), kTile)) {}
  int64_t across() const { return (p.n + width - 1) / width; }
  int64_t count() const { return (p.m + height - 1) / height * across(); }
  Strided Part(const Strided& x, int64_t row, int64_t col) const {
    return {static_cast<char*>(x.data) + (row * x.row + col * x.col) * itemsize, x.row, x.col};
  }
  Outcome Run(int64_t index) const;
};

Outcome Tiles::Run(int64_t index) const {
  const int64_t i = index / across() * height, j = index % across() * width;
  Product q = p;
  q.m = std::min(height, p.m - i);
  q.n = std::min(width, p.n - j);
  const auto bytes = [&](bool packed, int64_t elements) {
    return packed ? (elements * itemsize + 63) / 64 * 64 : 0;
  };
  const int64_t of_a = bytes(pack_a, height * depth), of_b = bytes(pack_b, depth * width);
  char* packed_a = Scratch(of_a + of_b + bytes(pack_c, height * width));
  if (packed_a == nullptr) return Outcome::kNoMemory;
  char *packed_b = packed_a + of_a, *packed_c = packed_b + of_b;
  const Strided target = Part(p.c, i, j);
  q.c = pack_c ? Strided{packed_c, q.n, 1} : target;
  if (pack_c && (p.beta.real != 0 || p.beta.imaginary != 0)) CopyPart(itemsize, q.m, q.n, target, q.c);
  for (int64_t l = 0; l < p.k || l == 0; l += depth) {
    if (Interrupted()) return Outcome::kInterrupted;
    q.k = std::min(depth, p.k - l);
    q.a = Part(p.a, i, l);
    q.b = Part(p.b, l, j);
    if (pack_a) {
      CopyPart(itemsize, q.m, q.k, q.a, {packed_a, q.k, 1});
      q.a = {packed_a, q.k, 1};
    }
    if (pack_b) {
      CopyPart(itemsize, q.k, q.n, q.b, {packed_b, q.n, 1});
      q.b = {packed_b, q.n, 1};
    }
    if (l > 0) q.beta = {1, 0, 1};
    try {
      if (!Gemm(q, 1)) return Outcome::kUnsupported;
    } catch (...) {
      return Interrupted() ? Outcome::kInterrupted : Outcome::kNoMemory;
    }
  }
  if (pack_c) CopyPart(itemsize, q.m, q.n, q.c, target);
  return Outcome::kDone;
}

}  // namespace

bool LiesByLines(const Strided& x, int64_t rows, int64_t cols) {
  return ((x.col == 1 || cols == 1) && (x.row >= cols || rows == 1)) ||
         ((x.row == 1 || rows == 1) && (x.col >= rows || cols == 1));
}

bool TiledGemm(const Product& product, int32_t threads) {
  Tiles tiles(product);
  while (tiles.count() < threads && std::max(tiles.height, tiles.width) >= 2 * kLeast) {
    int64_t& edge = tiles.height >= tiles.width ? tiles.height : tiles.width;
    edge = (edge / 2 + 15) / 16 * 16;
  }
  std::atomic<Outcome> problem{Outcome::kDone};
  ParallelFor(tiles.count(), 1, 1, threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && problem == Outcome::kDone; ++i)
      if (const Outcome outcome = tiles.Run(i); outcome != Outcome::kDone) problem = outcome;
  });
  if (problem == Outcome::kInterrupted) ThrowInterrupted();
  if (problem == Outcome::kNoMemory) throw std::bad_alloc();
  return problem == Outcome::kDone;
}

}  // namespace mica::cpu
