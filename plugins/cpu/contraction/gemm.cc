// Which kernel a product takes, and how threads share it.
//
// Measured on one AVX2 core, float32, GFLOP/s of OpenBLAS / oneDNN, m x n x k, N or T
// saying how a and b lie (bench/cpu_libraries.cc repeats it):
//   16^3 NN 23/15      32^3 NN 53/53        64^3 NN 79/88       128^3 NN 89/94
//   512^3 NN 91/87     1x1024x1024 NT 5/32  1024x1x1024 NN 7/28 64x10x1024 NN 49/56
//   10x1024x64 NN 47/36, TN 47/34, NT 41/63 512x8x512 NN 55/73, TN 51/42, NT 55/72
//   4096x9x32 NN 46/39, TN 34/21, NT 46/36  512x512x64 NN 86/89, TN 86/62, NT 87/92
// and where rows that a product reads across lie multiples of 1 KiB apart, on the same sets of the cache:
//   128x1024x512 TN 75/55  128x1024x1024 TN 76/34  512x1024x128 TN 69/51, TT 68/48  128x128x512 NN 80/63
//   64x1024x512 NN 68/74   1024x1024x128 TN 71/36, NN 71/74                         192x1024x512 NN 72/50
// PreferDnnl is these rows as rules.
#include "mica/plugins/cpu/contraction/gemm.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "mica/plugins/cpu/contraction/gemm_half.h"
#include "mica/plugins/cpu/contraction/gemm_tiles.h"
#include "mica/plugins/cpu/contraction/open_libraries.h"
#include "mica/plugins/cpu/engine/lanes.h"
#include "mica/plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

// Multiplications under which own loops beat a library's call.
constexpr int64_t kTiny = 64;
// Multiplications that make a second thread worth waking.
constexpr int64_t kShare = 1 << 19;
constexpr int64_t kMaxInt = INT32_MAX;

const char* Advance(const MatrixView& v, int64_t rows, int64_t cols, int64_t itemsize) {
  const int64_t steps = v.transposed ? cols * v.stride + rows : rows * v.stride + cols;
  return static_cast<const char*>(v.data) + steps * itemsize;
}

bool PreferDnnl(const GemmTask& t) {
  if (t.dtype != MICA_F32) return false;
  if (t.m == 1 || t.n == 1) return true;
  const int64_t work = t.m * t.n * t.k;
  if (work <= 32 * 32 * 32 || (work >= 384 * 384 * 384 && std::min({t.m, t.n, t.k}) >= 256)) return false;
  if (t.m <= 16) return t.b.transposed;
  if (t.n <= 16) return t.k >= 64 && (!t.a.transposed || t.m <= 64);
  const auto same_sets = [](const MatrixView& v) { return v.stride >= 512 && v.stride % 256 == 0; };
  if (!t.b.transposed && same_sets(t.b) && t.m > 64 && t.m < 256) return false;
  if (t.a.transposed && same_sets(t.a) && t.n >= 64 && t.n < 256) return false;
  return !(t.a.transposed && !t.b.transposed && t.k > 16 && t.k <= 64);
}

// float64 with a vector: b's (n = 1) or a's (m = 1). OpenBLAS's products are slow here.
bool AsVector(const LibraryTable& library, const GemmTask& t) {
  if (t.dtype != MICA_F64) return false;
  const auto step = [](const MatrixView& v, bool along_rows) {
    return along_rows == v.transposed ? 1 : v.stride;
  };
  if (t.n == 1 && t.c_stride == 1)
    library.blas_gemv(t.dtype, t.m, t.k, t.a, t.b.data, step(t.b, true), t.c, t.alpha[0], t.beta[0]);
  else if (t.m == 1)
    library.blas_gemv(t.dtype, t.n, t.k, {t.b.data, t.b.stride, !t.b.transposed}, t.a.data, step(t.a, false),
                      t.c, t.alpha[0], t.beta[0]);
  else
    return false;
  return true;
}

// Multiplications of one call of a library: some tenths of a second, after which
// the host is asked for a Ctrl-C. Blocks of 256 rows and columns or more cost no speed.
constexpr int64_t kStep = int64_t{1} << 34;
constexpr int64_t kLeast = 256;

GemmTask Block(const GemmTask& t, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  const int64_t itemsize = DtypeSize(t.dtype);
  GemmTask part = t;
  part.m = std::min(rows, t.m - row);
  part.n = std::min(cols, t.n - col);
  part.a.data = Advance(t.a, row, 0, itemsize);
  part.b.data = Advance(t.b, 0, col, itemsize);
  part.c = static_cast<char*>(t.c) + (row * t.c_stride + col) * itemsize;
  return part;
}

// One thread's product, in steps.
void StepwiseBlas(const LibraryTable& library, const GemmTask& task, std::atomic<bool>& stopped) {
  if (task.m * task.n * task.k <= kStep) return library.blas_gemm(task);
  const auto fitting = [](int64_t work) { return std::max(kStep / work / 16 * 16, kLeast); };
  const int64_t rows = std::min(task.m, fitting(task.n * task.k));
  const int64_t cols = std::min(task.n, fitting(rows * task.k));
  for (int64_t r = 0; r < task.m; r += rows) {
    for (int64_t c = 0; c < task.n; c += cols) {
      if (stopped.load(std::memory_order_relaxed)) return;
      library.blas_gemm(Block(task, r, rows, c, cols));
      if (Interrupted()) stopped.store(true, std::memory_order_relaxed);
    }
  }
}

// A grid of blocks of c, one a thread, as square as they come.
void DividedBlas(const LibraryTable& library, const GemmTask& task, int32_t threads) {
  const auto wanted = std::min<int64_t>(threads, task.m * task.n * std::max<int64_t>(task.k, 1) / kShare);
  std::atomic<bool> stopped{false};
  if (wanted <= 1) {
    StepwiseBlas(library, task, stopped);
    if (stopped) ThrowInterrupted();
    return;
  }
  int64_t down = 1;
  double best = INFINITY;
  for (int64_t d = 1; d <= wanted; ++d) {
    if (wanted % d != 0) continue;
    // Half the circumference of a block, which is what its thread reads.
    const double edge = static_cast<double>(task.m) / static_cast<double>(d) +
                        static_cast<double>(task.n) * static_cast<double>(d) / static_cast<double>(wanted);
    if (edge < best) {
      best = edge;
      down = d;
    }
  }
  const int64_t across = wanted / down;
  const auto cut = [](int64_t n, int64_t parts) { return ((n + parts - 1) / parts + 15) / 16 * 16; };
  const int64_t rows = cut(task.m, down), cols = cut(task.n, across);
  ParallelFor(wanted, 1, 1, threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t r = i / across * rows, c = i % across * cols;
      if (r >= task.m || c >= task.n) continue;
      StepwiseBlas(library, Block(task, r, rows, c, cols), stopped);
    }
  });
  if (stopped) ThrowInterrupted();
}

bool LibraryGemm(Product p, int32_t threads) {
  const LibraryTable* library = Libraries();
  if (!library || std::max({p.m, p.n, p.k}) > kMaxInt) return false;
  const bool by_lines =
      LiesByLines(p.a, p.m, p.k) && LiesByLines(p.b, p.k, p.n) && LiesByLines(p.c, p.m, p.n);
  if (!by_lines) return TiledGemm(p, threads);
  const bool rows_adjacent = (p.c.col == 1 || p.n == 1) && (p.c.row >= p.n || p.m == 1);
  if (!rows_adjacent) p = Transposed(p);
  const GemmTask task{p.dtype,
                      p.m,
                      p.n,
                      p.k,
                      View(p.a, p.m, p.k),
                      View(p.b, p.k, p.n),
                      p.c.data,
                      p.m == 1 ? p.n : p.c.row,
                      {p.alpha.real, p.alpha.imaginary},
                      {p.beta.real, p.beta.imaginary}};
  if (std::max({task.a.stride, task.b.stride, task.c_stride}) > kMaxInt) return false;
  if (PreferDnnl(task))
    library->dnnl_gemm(task, p.m * p.n * p.k < kShare ? 1 : threads);
  else if (!AsVector(*library, task))
    DividedBlas(*library, task, threads);
  return true;
}

void IntegerGemm(const Product& p, int32_t threads) {
  const int64_t itemsize = DtypeSize(p.dtype);
  ParallelFor(p.m, std::max<int64_t>(1, kShare / 8 / std::max<int64_t>(1, p.n * p.k)), 1, threads,
              [&](int64_t begin, int64_t end) {
                Product part = p;
                part.m = end - begin;
                part.a.data = static_cast<char*>(p.a.data) + begin * p.a.row * itemsize;
                part.c.data = static_cast<char*>(p.c.data) + begin * p.c.row * itemsize;
                PlainGemm(part);
              });
}

}  // namespace

MatrixView View(const Strided& x, int64_t rows, int64_t cols) {
  if ((x.col == 1 || cols == 1) && (x.row >= cols || rows == 1))
    return {x.data, rows == 1 ? std::max<int64_t>(cols, 1) : x.row, false};
  return {x.data, cols == 1 ? std::max<int64_t>(rows, 1) : x.col, true};
}

Product Transposed(const Product& p) {
  const auto turn = [](const Strided& x) { return Strided{x.data, x.col, x.row}; };
  return {p.dtype, p.n, p.m, p.k, turn(p.b), turn(p.a), turn(p.c), p.alpha, p.beta};
}

Factor FactorOf(const MicaScalar& s) {
  if (s.tag == MICA_SCALAR_COMPLEX) return {s.u.c[0], s.u.c[1], static_cast<int64_t>(s.u.c[0])};
  if (s.tag == MICA_SCALAR_FLOAT) return {s.u.f, 0, static_cast<int64_t>(s.u.f)};
  return {static_cast<double>(s.u.i), 0, s.u.i};
}

bool Gemm(const Product& p, int32_t threads) {
  if (p.m == 0 || p.n == 0) return true;
  const bool real = p.dtype == MICA_F32 || p.dtype == MICA_F64;
  if (real && p.m * p.n * p.k <= kTiny) {
    PlainGemm(p);
    return true;
  }
  if (real || IsComplex(p.dtype)) return LibraryGemm(p, threads);
  if (p.dtype == MICA_F16 || p.dtype == MICA_BF16) return HalfGemm(p, threads);
  if (!IsInteger(p.dtype)) return false;
  IntegerGemm(p, threads);
  return true;
}

}  // namespace mica::cpu
