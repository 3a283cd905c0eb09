// Half products by tiles; see gemm_half.h.
//
// A tile of c is made in float32: block by block along k, the parts of a and b that it
// needs are widened into scratch memory, multiplied by the float32 product and added to
// it; at the end the tile is rounded into place. Memory sees half types only, and no
// more than a few MB of float32 exist at a time; two strides are read as they are. A part of a is widened
// once for each column of tiles, which costs little: hundreds of multiplications a conversion. Measured on
// one AVX2 core, bfloat16, GFLOP/s with one factor widened whole / by tiles / in float32: 2,048^3 82/100/104,
// 256 x 256 x 65,536 55/86/93. With vectors (half_vector.cc): 1 x 4,096 x 1,024 15/37/28; line by line 7 x
// 1,024 x 1,024 32, by tiles 21. float32's own speed, 102 here, bounds what is gained over a peer: torch 2.13
// does 1.0 to 1.5 where b lies row by row (20 to 70 times), but 10 to 14 with b transposed (3 to 9 times).
#include "plugins/cpu/contraction/gemm_half.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/contraction/gemm_tiles.h"
#include "plugins/cpu/engine/lanes/lanes.h"
#include "plugins/cpu/engine/scratch.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

constexpr int64_t kTile = 768;    // edge of a tile of c
constexpr int64_t kLeast = 64;    // edge under which threads are not worth a cut
constexpr int64_t kDepth = 512;   // of a block along k
constexpr int64_t kVectors = 7;   // columns, or rows, up to which products with vectors win
constexpr int64_t kSmall = 1024;  // elements of a vector that is widened on the stack

int64_t Even(int64_t n, int64_t most) {
  const int64_t parts = (n + most - 1) / most;
  return std::min(n, ((n + parts - 1) / parts + 15) / 16 * 16);
}

// Half elements as they lie: `lines` of `length`, `step` apart, `unit` between two elements.
struct Lines {
  char* data;
  int64_t step, unit, lines, length;
};

// Whether a line of the part is a column: that dimension whose elements lie closer.
bool ByColumns(const Strided& x, int64_t rows, int64_t cols) {
  if (rows == 1 || cols == 1) return cols == 1;
  return x.col != 1 && x.row < x.col && (x.row == 1 || x.col != 0);
}

// Rows [row, row + rows) and columns [col, col + cols) of a matrix in memory.
Lines PartOf(const Strided& x, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  char* data = static_cast<char*>(x.data) + (row * x.row + col * x.col) * 2;
  return ByColumns(x, rows, cols) ? Lines{data, x.col, x.row, cols, rows}
                                  : Lines{data, x.row, x.col, rows, cols};
}

void WidenInto(float* to, const Lines& from, Primitive cast) {
  if (from.unit == 1 && from.step == from.length)
    return void(cast(to, from.data, nullptr, nullptr, from.lines * from.length));
  uint16_t packed[kTile];
  for (int64_t i = 0; i < from.lines; ++i) {
    const char* line = from.data + i * from.step * 2;
    if (from.unit != 1) GatherStrided(packed, line, from.unit * 2, 2, from.length);
    cast(to + i * from.length, from.unit == 1 ? static_cast<const void*>(line) : packed, nullptr, nullptr,
         from.length);
  }
}
void RoundInto(const Lines& to, const float* from, Primitive cast) {
  uint16_t packed[kTile];
  for (int64_t i = 0; i < to.lines; ++i) {
    char* line = to.data + i * to.step * 2;
    cast(to.unit == 1 ? static_cast<void*>(line) : packed, from + i * to.length, nullptr, nullptr, to.length);
    if (to.unit != 1) ScatterStrided(line, to.unit * 2, packed, 2, to.length);
  }
}
Strided Dense(float* data, const Strided& like, int64_t rows, int64_t cols) {
  return ByColumns(like, rows, cols) ? Strided{data, 1, rows} : Strided{data, cols, 1};
}

enum class Outcome { kDone, kUnsupported, kNoMemory, kInterrupted };

struct Tiles {
  Product p;
  int64_t height, width, depth;
  Primitive widen, round;

  int64_t across() const { return (p.n + width - 1) / width; }
  int64_t count() const { return (p.m + height - 1) / height * across(); }
  Outcome Run(int64_t index) const;
};

Outcome Tiles::Run(int64_t index) const {
  const int64_t i = index / across() * height, j = index % across() * width;
  Product q = p;
  q.dtype = MICA_F32;
  q.m = std::min(height, p.m - i);
  q.n = std::min(width, p.n - j);
  auto* sum = reinterpret_cast<float*>(Scratch((height * width + depth * (height + width)) * 4));
  if (sum == nullptr) return Outcome::kNoMemory;
  float *wide_a = sum + height * width, *wide_b = wide_a + depth * height;
  const Lines target = PartOf(p.c, i, q.m, j, q.n);
  q.c = Dense(sum, p.c, q.m, q.n);
  if (p.beta.real != 0) WidenInto(sum, target, widen);
  for (int64_t l = 0; l < p.k || l == 0; l += depth) {
    if (Interrupted()) return Outcome::kInterrupted;
    q.k = std::min(depth, p.k - l);
    WidenInto(wide_a, PartOf(p.a, i, q.m, l, q.k), widen);
    WidenInto(wide_b, PartOf(p.b, l, q.k, j, q.n), widen);
    q.a = Dense(wide_a, p.a, q.m, q.k);
    q.b = Dense(wide_b, p.b, q.k, q.n);
    if (l > 0) q.beta = {1, 0, 1};
    try {
      if (!Gemm(q, 1)) return Outcome::kUnsupported;
    } catch (...) {
      return Interrupted() ? Outcome::kInterrupted : Outcome::kNoMemory;
    }
  }
  RoundInto(target, sum, round);
  return Outcome::kDone;
}

// c's tiles, cut further until each thread has one.
void Divide(Tiles& t, int32_t threads) {
  t.height = Even(t.p.m, kTile);
  t.width = Even(t.p.n, kTile);
  t.depth = Even(std::max<int64_t>(t.p.k, 1), kDepth);
  while (t.count() < threads && std::max(t.height, t.width) >= 2 * kLeast) {
    int64_t& edge = t.height >= t.width ? t.height : t.width;
    edge = Even(edge, (edge + 1) / 2);
  }
}

// For m = 1 or n = 1, and a matrix that lies by lines.
void VectorGemm(const Product& p, int32_t threads) {
  const bool column = p.n == 1;
  const Strided& matrix = column ? p.a : p.b;
  HalfVectorTask t = {};
  t.dtype = p.dtype;
  t.rows = column ? p.m : p.n;
  t.columns = p.k;
  t.w = View(column ? matrix : Strided{matrix.data, matrix.col, matrix.row}, t.rows, p.k);
  t.y = p.c.data;
  t.y_step = column ? p.c.row : p.c.col;
  t.factor = static_cast<float>(p.alpha.real);
  t.old = static_cast<float>(p.beta.real);
  alignas(64) float own[kSmall];
  alignas(64) uint16_t packed[kSmall];
  const Temporary memory(p.k > kSmall ? p.k * 6 : 0);
  auto* x = p.k > kSmall ? memory.data<float>() : own;
  auto* half = p.k > kSmall ? reinterpret_cast<uint16_t*>(x + p.k) : packed;
  GatherStrided(half, column ? p.b.data : p.a.data, (column ? p.b.row : p.a.col) * 2, 2, p.k);
  DirectCast(p.dtype, MICA_F32)(x, half, nullptr, nullptr, p.k);
  t.x = x;
  HalfVector(t, threads);
}

// The product of column i of b alone, or of row i of a.
Product LineOf(Product p, int64_t i, bool column) {
  const auto move = [i](const Strided& x, int64_t step) {
    return Strided{static_cast<char*>(x.data) + i * step * 2, x.row, x.col};
  };
  if (column) {
    p.n = 1;
    p.b = move(p.b, p.b.col);
    p.c = move(p.c, p.c.col);
  } else {
    p.m = 1;
    p.a = move(p.a, p.a.row);
    p.c = move(p.c, p.c.row);
  }
  return p;
}

}  // namespace

bool HalfGemm(const Product& product, int32_t threads) {
  const bool columns = product.n <= product.m;
  const bool by_lines =
      columns ? LiesByLines(product.a, product.m, product.k) : LiesByLines(product.b, product.k, product.n);
  if (by_lines && std::min(product.m, product.n) <= kVectors) {
    for (int64_t i = 0; i < std::min(product.m, product.n); ++i)
      VectorGemm(LineOf(product, i, columns), threads);
    return true;
  }
  Tiles t;
  t.p = product;
  t.widen = DirectCast(product.dtype, MICA_F32);
  t.round = DirectCast(MICA_F32, product.dtype);
  Divide(t, threads);
  std::atomic<Outcome> problem{Outcome::kDone};
  ParallelFor(t.count(), 1, 1, threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && problem == Outcome::kDone; ++i) {
      if (const Outcome outcome = t.Run(i); outcome != Outcome::kDone) problem = outcome;
    }
  });
  if (problem == Outcome::kInterrupted) ThrowInterrupted();
  if (problem == Outcome::kNoMemory) throw std::bad_alloc();
  if (problem == Outcome::kUnsupported) return false;
  return true;
}

}  // namespace mica::cpu
