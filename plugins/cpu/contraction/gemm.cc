// Which kernel a product takes, and how threads share it.
//
// float32, GFLOP/s of OpenBLAS / gemm_rows.cc / a matrix-vector product of OpenBLAS for each row, on one
// core, m x n x k, T saying that b lies by columns:
//                     AVX2 kernels   AVX-512 kernels
//   8 x 512 x 512       63/94/47       66/110/50
//   8 x 512 x 512 T     52/70/48       46/55/48
//   4 x 512 x 512 T     34/53/48       30/39/48
//   1 x 1024 x 1024     10/-/43        9/-/40
//   10 x 1024 x 64 T    49/81/-        50/76/-
//   30 x 1000 x 2000    83/105/-       65/50/-
//   64 x 1024 x 512     103/100/-      97/110/-
//   64 x 64 x 64        96/85/-        115/82/-
//   512 x 512 x 512     109/96/-       101/98/-
// bench/cpu_libraries.cc repeats it. AsRows and AsVectors are these rows as rules.
#include "plugins/cpu/contraction/gemm.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "plugins/cpu/contraction/gemm_half.h"
#include "plugins/cpu/contraction/gemm_integers.h"
#include "plugins/cpu/contraction/gemm_rows.h"
#include "plugins/cpu/contraction/gemm_tiles.h"
#include "plugins/cpu/contraction/open_libraries.h"
#include "plugins/cpu/engine/lanes/lanes.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

// Multiplications under which own loops beat a library's call.
constexpr int64_t kTiny = 64;
// Multiplications that make a second thread worth waking.
constexpr int64_t kShare = 1 << 19;
// Multiplications of float32 in one call of a library: some hundredths of a second, after which
// the host is asked for a Ctrl-C. Blocks of 256 or more rows and columns cost no speed.
constexpr int64_t kStep = int64_t{1} << 32;
constexpr int64_t kLeast = 256;
constexpr int64_t kMaxInt = INT32_MAX;

const char* Advance(const MatrixView& v, int64_t rows, int64_t cols, int64_t itemsize) {
  const int64_t steps = v.transposed ? cols * v.stride + rows : rows * v.stride + cols;
  return static_cast<const char*>(v.data) + steps * itemsize;
}

// Rows up to which a matrix that lies by columns is multiplied by each row for itself.
constexpr int64_t kVectors = 4;

// The product, or its transpose, with no more rows than columns.
Product Wide(const Product& p) { return p.n < p.m ? Transposed(p) : p; }

// Few real rows times a matrix, each as a vector: b is read where it lies, and once a row.
bool AsVectors(const LibraryTable& library, const Product& product, int32_t threads) {
  const Product p = Wide(product);
  if (IsComplex(p.dtype) || (p.m > 1 && (p.m > kVectors || p.b.row != 1 || p.k < kLeast / 4))) return false;
  const int64_t itemsize = DtypeSize(p.dtype);
  const auto at = [&](const Strided& x, int64_t i) { return static_cast<char*>(x.data) + i * itemsize; };
  const MatrixView b = View({p.b.data, p.b.col, p.b.row}, p.n, p.k);
  ParallelSteps(p.n, std::max<int64_t>(1, kShare / (p.m * p.k)), 16, threads,
                [&](int64_t begin, int64_t end) {
                  const MatrixView part{Advance(b, begin, 0, itemsize), b.stride, b.transposed};
                  for (int64_t i = 0; i < p.m; ++i)
                    library.blas_gemv(p.dtype, end - begin, p.k, part, at(p.a, i * p.a.row),
                                      std::max<int64_t>(1, p.a.col), at(p.c, i * p.c.row + begin * p.c.col),
                                      std::max<int64_t>(1, p.c.col), p.alpha.real, p.beta.real);
                });
  return true;
}

// Few rows of float32 times a matrix of some width, read once.
bool AsRows(const Product& product, int32_t threads) {
  const Product p = Wide(product);
  if (p.dtype != MICA_F32 || p.m > kMostRows || p.n < 64 || p.k < 32) return false;
  if (p.m > kMostRows / 2 && p.m * p.n * p.k < 1 << 20) return false;
  GemmRows({p.m, p.n, p.k, p.a, p.b, p.c, static_cast<float>(p.alpha.real), static_cast<float>(p.beta.real)},
           threads);
  return true;
}

// Rows and columns of c, and a part of the products' length: after the first part the others are added.
GemmTask Block(const GemmTask& t, int64_t row, int64_t rows, int64_t col, int64_t cols, int64_t from,
               int64_t depth) {
  const int64_t itemsize = DtypeSize(t.dtype);
  GemmTask part = t;
  part.m = std::min(rows, t.m - row);
  part.n = std::min(cols, t.n - col);
  part.k = std::min(depth, t.k - from);
  part.a.data = Advance(t.a, row, from, itemsize);
  part.b.data = Advance(t.b, from, col, itemsize);
  part.c = static_cast<char*>(t.c) + (row * t.c_stride + col) * itemsize;
  if (from > 0) {
    part.beta[0] = 1;
    part.beta[1] = 0;
  }
  return part;
}

// One thread's product, in steps.
void StepwiseBlas(const LibraryTable& library, const GemmTask& task, std::atomic<bool>& stopped) {
  const int64_t cost = (task.dtype == MICA_F32 ? 1 : 2) * (IsComplex(task.dtype) ? 3 : 1),
                step = kStep / cost;
  if (task.m * task.n * task.k <= step) return library.blas_gemm(task);
  const auto fitting = [step](int64_t work) { return std::max(step / work / 16 * 16, kLeast); };
  const auto square = static_cast<int64_t>(std::sqrt(static_cast<double>(step / task.k)));
  const int64_t rows =
      std::min(task.m, fitting(std::clamp(square, kLeast, std::max(kLeast, task.n)) * task.k));
  const int64_t cols = std::min(task.n, fitting(rows * task.k));
  const int64_t depth = std::min(task.k, fitting(rows * cols));
  for (int64_t r = 0; r < task.m; r += rows) {
    for (int64_t c = 0; c < task.n; c += cols) {
      for (int64_t l = 0; l < task.k; l += depth) {
        if (stopped.load(std::memory_order_relaxed)) return;
        library.blas_gemm(Block(task, r, rows, c, cols, l, depth));
        if (Interrupted()) stopped.store(true, std::memory_order_relaxed);
      }
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
      StepwiseBlas(library, Block(task, r, rows, c, cols, 0, task.k), stopped);
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
  if (!AsVectors(*library, p, threads) && !AsRows(p, threads)) DividedBlas(*library, task, threads);
  return true;
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
