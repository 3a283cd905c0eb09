// The contraction operators: each names its matrices and calls Gemm. Shapes are the
// host's concern (meta functions); here they fit.
#include "plugins/cpu/contraction/products.h"

#include <algorithm>
#include <atomic>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/contraction/gemm.h"
#include "plugins/cpu/contraction/open_libraries.h"
#include "plugins/cpu/engine/copy.h"
#include "plugins/cpu/engine/lanes/lanes.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

// The matrix in the last two dimensions of a tensor.
Strided Matrix(const TensorRef& t) { return {t.data<void>(), t.stride(-2), t.stride(-1)}; }

void RequireOneDtype(const TensorRef& a, const TensorRef& b, const TensorRef& out) {
  if (a.dtype() != b.dtype() || a.dtype() != out.dtype()) throw plugin::NotImplemented();
}

Product ProductOf(const TensorRef& a, const TensorRef& b, const TensorRef& out) {
  Product p;
  p.dtype = out.dtype();
  p.m = out.size(-2);
  p.n = out.size(-1);
  p.k = a.size(-1);
  p.a = Matrix(a);
  p.b = Matrix(b);
  p.c = Matrix(out);
  return p;
}

void Run(const Product& p, int32_t threads) {
  if (!Gemm(p, threads)) throw plugin::NotImplemented();
}

// out = self, broadcast from the right; the product is then added to it. In place there is
// nothing to do.
void Fill(const TensorRef& self, const TensorRef& out, int32_t threads) {
  int64_t strides[8];
  if (out.ndim() > 8 || self.dtype() != out.dtype()) throw plugin::NotImplemented();
  if (self.data<void>() == out.data<void>()) return;
  for (int32_t d = 0; d < out.ndim(); ++d) {
    const int32_t mine = d - out.ndim() + self.ndim();
    strides[d] = mine < 0 || self.size(mine) == 1 ? 0 : self.stride(mine);
  }
  CopyStrided(out.itemsize(), out.ndim(), out.sizes(), self.data<void>(), strides, out.data<void>(),
              out.strides(), threads);
}

bool IsZero(const Factor& f, int32_t dtype) {
  return IsInteger(dtype) ? f.integer == 0 : f.real == 0 && f.imaginary == 0;
}

// Batches of small products go one to a thread, of large ones one after another.
void RunBatch(Product p, const TensorRef& a, const TensorRef& b, const TensorRef& out, int32_t threads) {
  const int64_t batch = out.size(0), itemsize = out.itemsize(), work = p.m * p.n * std::max<int64_t>(p.k, 1);
  constexpr int64_t kGrain = 1 << 18;  // multiplications that make a second thread worth waking
  const auto at = [&](const Strided& x, const TensorRef& t, int64_t i) {
    return Strided{static_cast<char*>(x.data) + i * t.stride(0) * itemsize, x.row, x.col};
  };
  const auto one = [&](int64_t i, int32_t inner) {
    Product q = p;
    q.a = at(p.a, a, i);
    q.b = at(p.b, b, i);
    q.c = at(p.c, out, i);
    return Gemm(q, inner);
  };
  if (batch == 0) return;
  // The first product alone, on this thread: it opens the libraries and finds out
  // whether the dtype is supported, and errors can leave from here.
  if (!one(0, batch == 1 ? threads : 1)) throw plugin::NotImplemented();
  if (batch < threads) {
    for (int64_t i = 1; i < batch && !Interrupted(); ++i) one(i, threads);
    if (Interrupted()) ThrowInterrupted();
    return;
  }
  std::atomic<bool> failed{false}, stopped{false};
  const int64_t asks_every = std::max<int64_t>(1, (int64_t{1} << 28) / std::max<int64_t>(work, 1));
  ParallelFor(batch - 1, std::max<int64_t>(1, kGrain / std::max<int64_t>(work, 1)), 1, threads,
              [&](int64_t begin, int64_t end) {
                try {
                  for (int64_t i = begin; i < end && !stopped; ++i) {
                    one(i + 1, 1);
                    if (i % asks_every == 0 && Interrupted()) stopped = true;
                  }
                } catch (...) {
                  (Interrupted() ? stopped : failed) = true;
                }
              });
  if (stopped) ThrowInterrupted();
  if (failed) throw std::bad_alloc();  // the one error that a supported product has
}

// A vector as a matrix of one column.
Strided Column(const TensorRef& v) { return {v.data<void>(), v.ndim() == 0 ? 1 : v.stride(0), 1}; }

}  // namespace

void Mm(const MicaCall* call, MicaTensor* self, MicaTensor* mat2, MicaTensor* out) {
  RequireOneDtype(self, mat2, out);
  Run(ProductOf(self, mat2, out), ThreadsOf(call));
}

void Bmm(const MicaCall* call, MicaTensor* self, MicaTensor* mat2, MicaTensor* out) {
  RequireOneDtype(self, mat2, out);
  RunBatch(ProductOf(self, mat2, out), self, mat2, out, ThreadsOf(call));
}

void Addmm(const MicaCall* call, MicaTensor* self, MicaTensor* mat1, MicaTensor* mat2, MicaScalar beta,
           MicaScalar alpha, MicaTensor* out) {
  RequireOneDtype(mat1, mat2, out);
  Product p = ProductOf(mat1, mat2, out);
  p.alpha = FactorOf(alpha);
  p.beta = FactorOf(beta);
  if (!IsZero(p.beta, p.dtype)) Fill(self, out, ThreadsOf(call));
  Run(p, ThreadsOf(call));
}

void Baddbmm(const MicaCall* call, MicaTensor* self, MicaTensor* batch1, MicaTensor* batch2, MicaScalar beta,
             MicaScalar alpha, MicaTensor* out) {
  RequireOneDtype(batch1, batch2, out);
  Product p = ProductOf(batch1, batch2, out);
  p.alpha = FactorOf(alpha);
  p.beta = FactorOf(beta);
  if (!IsZero(p.beta, p.dtype)) Fill(self, out, ThreadsOf(call));
  RunBatch(p, batch1, batch2, out, ThreadsOf(call));
}

void Mv(const MicaCall* call, MicaTensor* self, MicaTensor* vec, MicaTensor* out) {
  RequireOneDtype(self, vec, out);
  const TensorRef a(self), x(vec), y(out);
  Run({y.dtype(), a.size(0), 1, a.size(1), Matrix(a), Column(x), Column(y)}, ThreadsOf(call));
}

void Dot(const MicaCall* call, MicaTensor* self, MicaTensor* tensor, MicaTensor* out) {
  RequireOneDtype(self, tensor, out);
  const TensorRef a(self), b(tensor), y(out);
  const Strided row{a.data<void>(), 1, a.stride(0)};
  Run({y.dtype(), 1, 1, a.size(0), row, Column(b), Column(y)}, ThreadsOf(call));
}

void RegisterContraction(plugin::Registrar& r) {
  r.Kernel<&Mm>("mm.out");
  r.Kernel<&Bmm>("bmm.out");
  r.Kernel<&Addmm>("addmm.out");
  r.Kernel<&Baddbmm>("baddbmm.out");
  r.Kernel<&Mv>("mv.out");
  r.Kernel<&Dot>("dot.out");
}

}  // namespace mica::cpu
